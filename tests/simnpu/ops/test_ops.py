"""The operator library as torch uses it: agreement with the CPU, printing, random numbers, errors, graph replay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG
from isolated import on_simulator

import simnpu
from harness.inside import collecting

CORPUS = Path(__file__).with_name("corpus.py")
FAMILIES = {
    # family: the least number of comparisons, so that an emptied table is noticed
    "unary": 350,
    "activation": 65,
    "binary": 500,
    "reduce": 150,
    "matmul": 35,
    "norm": 18,
    "loss": 35,
    "index": 100,
    "shape": 110,
    "creation": 50,
    "vision": 13,
    "foreach": 40,
    "attention": 10,
    "own": 4,
    "linalg": 2,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:
    """One run of the whole corpus in one process, by family."""
    report = tmp_path_factory.mktemp("corpus") / "report.jsonl"
    # With its task queue on, torch_npu drops what is enqueued after a failure: the failures would not be told apart.
    environment = simnpu.environ() | {"TASK_QUEUE_ENABLE": "0", "PYTHONPATH": str(CORPUS.parents[2])}
    done = subprocess.run(
        [sys.executable, collecting.__file__, str(CORPUS), str(report)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"the corpus ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    families: dict[str, list[dict]] = {}
    for line in report.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        families.setdefault(record["family"], []).append(record)
    return families


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_agree_with_the_cpu(family: str, corpus: dict[str, list[dict]]):
    records = corpus[family]
    failures = [f"{record['what']}: {record['error']}" for record in records if not record["ok"]]
    assert not failures, f"{len(failures)} of {len(records)} {family} operators:\n" + "\n".join(failures)
    assert len(records) >= FAMILIES[family]


def test_every_family_is_judged(corpus: dict[str, list[dict]]):
    assert set(corpus) == set(FAMILIES)


@on_simulator(torch=True)
def test_tensors_print_as_on_the_cpu():
    import torch

    nan, inf = float("nan"), float("inf")
    values = [
        torch.arange(6.0).reshape(2, 3) / 7,
        torch.tensor([1e10, 1e-5, -3.0]),
        torch.tensor([nan, inf, -inf, 0.0]),
        torch.linspace(-1, 1, 5, dtype=torch.float16),
        torch.linspace(-1, 1, 5).bfloat16(),
        torch.tensor([[1, -2], [300, 4]]),
        torch.tensor([1, 2], dtype=torch.uint8),
        torch.tensor([True, False]),
        torch.tensor(3.5),
        torch.zeros(0, 3),
        torch.arange(2000.0),
        torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2),
        torch.tensor([1 + 2j, -1j]),
    ]
    for value in values:
        printed = repr(value.npu())
        assert "device='npu:0'" in printed
        bare = printed.replace(", device='npu:0'", "").replace("device='npu:0', ", "").replace("device='npu:0'", "")
        assert "".join(bare.split()).replace(",,", ",") == "".join(repr(value).split()), printed
    assert f"{torch.tensor(2.5).npu():.2f}" == "2.50"


@on_simulator(torch=True)
def test_random_numbers_repeat_for_equal_seeds_and_differ_otherwise():
    import torch

    from simnpu import calls

    makers = {
        "InplaceNormal": lambda: torch.randn(100, device="npu"),
        "InplaceUniform": lambda: torch.rand(100, device="npu"),
        "InplaceRandom": lambda: torch.randint(0, 1000, (100,), device="npu"),
        "Randperm": lambda: torch.randperm(100, device="npu"),
        "InplaceBernoulli": lambda: torch.empty(100, device="npu").bernoulli_(0.5),
        "InplaceBernoulliTensor": lambda: torch.bernoulli(torch.full((100,), 0.5, device="npu")),
        "Multinomial": lambda: torch.multinomial(torch.ones(9, device="npu"), 100, replacement=True),
        "NormalTensorTensor": lambda: torch.normal(torch.zeros(100, device="npu"), torch.ones(100, device="npu")),
        "NormalFloatTensor": lambda: torch.normal(0.0, torch.ones(100, device="npu")),
        "NormalTensorFloat": lambda: torch.normal(torch.zeros(100, device="npu"), 1.0),
        "DropoutDoMask": lambda: torch.nn.functional.dropout(torch.ones(100, device="npu"), 0.5),
    }
    for name, make in makers.items():
        torch.npu.manual_seed(11)
        first, second = make().cpu(), make().cpu()
        torch.npu.manual_seed(11)
        again = make().cpu()
        torch.npu.manual_seed(12)
        other = make().cpu()
        assert torch.equal(first, again), name
        assert not torch.equal(first, second), name
        assert not torch.equal(first, other), name
        assert calls.counts()[f"aclnn{name}"] == 4, name


@on_simulator(torch=True)
def test_random_numbers_have_the_wanted_distribution():
    import torch

    torch.npu.manual_seed(5)
    count = 20000
    normal = torch.empty(count, device="npu").normal_(5, 2)
    uniform = torch.empty(count, device="npu").uniform_(2, 4)
    integers = torch.empty(count, dtype=torch.int64, device="npu").random_(3, 7)
    coins = torch.empty(count, device="npu").bernoulli_(0.3)
    waits = torch.empty(count, device="npu").exponential_(2.0)
    assert abs(normal.mean().item() - 5) < 0.1
    assert abs(normal.std().item() - 2) < 0.1
    assert abs(uniform.mean().item() - 3) < 0.05
    assert (uniform.min().item() >= 2, uniform.max().item() <= 4) == (True, True)
    assert sorted(integers.unique().tolist()) == [3, 4, 5, 6]
    assert abs(coins.mean().item() - 0.3) < 0.02
    assert abs(waits.mean().item() - 0.5) < 0.02
    assert sorted(torch.randperm(50, device="npu").tolist()) == list(range(50))
    without_replacement = torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 3.0], device="npu"), 3)
    assert sorted(without_replacement.tolist()) == [0, 1, 3]


@on_simulator(torch=True)
def test_dropout_scales_what_it_keeps_and_its_gradient_uses_the_same_mask():
    import torch
    from torch.nn.functional import dropout

    for dtype in (torch.float32, torch.float16):
        x = torch.ones(10, 1001, device="npu", dtype=dtype, requires_grad=True)
        y = dropout(x, 0.3)
        y.backward(torch.ones_like(y))
        assert x.grad is not None
        assert torch.equal(x.grad, y)
        kept = (y != 0).float().mean().item()
        assert abs(kept - 0.7) < 0.02
        torch.testing.assert_close(y.max().item(), 1 / 0.7, rtol=1e-3, atol=1e-3)
    assert torch.equal(dropout(x, 0.0), x)
    assert dropout(x, 1.0).abs().max().item() == 0
    assert torch.equal(dropout(x, 0.5, training=False), x)


@on_simulator(torch=True)
def test_an_operator_that_is_not_simulated_is_an_error_with_its_name():
    import torch
    import torch_npu

    x = torch.randn(4, 6, device="npu")
    with pytest.raises(RuntimeError, match="aclnnRotateQuant"):
        torch_npu.npu_rotate_quant(x.bfloat16(), torch.eye(6, device="npu").bfloat16())


@on_simulator(torch=True, environment={"TASK_QUEUE_ENABLE": "0"})
def test_a_legacy_operator_that_is_not_simulated_is_an_error_with_its_name():
    import torch
    import torch_npu

    with pytest.raises(RuntimeError, match="operator SignBitsPack of the legacy path is not simulated"):
        torch_npu.npu_sign_bits_pack(torch.rand(16, device="npu"), 2)


@on_simulator(torch=True)
def test_views_are_copied_between_devices():
    # torch_npu makes such a copy of operators of the legacy path, each for its kind of view.
    import torch

    from simnpu import calls

    views = {
        "whole": lambda x: x,
        "rows": lambda x: x[1:4],
        "columns": lambda x: x[:, 1:],
        "every other row": lambda x: x[::2],
        "every third column from the second": lambda x: x[:, 1::3],
        "transposed": lambda x: x.t(),
        "a part, transposed": lambda x: x.t()[::3, 1:],
        "expanded": lambda x: x[:1].expand(5, 8),
        "windows": lambda x: x.unfold(1, 3, 2),
        "permuted": lambda x: x.view(6, 2, 4).permute(2, 0, 1),
        "empty": lambda x: x[:, :0].t(),
        "one element": lambda x: x[2, 3],
    }
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        cpu = torch.arange(48).view(6, 8).remainder(5).to(dtype)
        first = cpu.to("npu:0")
        torch.npu.synchronize()
        for name, view in views.items():
            assert torch.equal(view(first).to("npu:1").cpu(), view(cpu)), (name, dtype)
            if name in ("expanded", "windows"):
                continue  # more than one element lies at one place
            there, expected = torch.zeros_like(cpu).to("npu:1"), torch.zeros_like(cpu)
            view(there).copy_(view(first))
            view(expected).copy_(view(cpu))
            assert torch.equal(there.cpu(), expected), (name, dtype)
    assert calls.counts()["aclopCompileAndExecute"] > 0, "such copies are not of the legacy path any more"


@on_simulator(torch=True)
def test_recurrent_layers_and_their_gradients_agree_with_the_cpu():
    import copy
    import itertools

    import torch

    torch.manual_seed(1)
    networks = []
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for layers, bidirectional, batch_first, bias in itertools.product((1, 2), *[(False, True)] * 3):
            networks.append(kind(3, 5, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias))
    cells = [cell(3, 5, bias=bias) for cell in (torch.nn.LSTMCell, torch.nn.GRUCell) for bias in (True, False)]
    for network in [*networks, *cells]:
        x = torch.randn((6, 3) if network in cells else (6, 2, 3), requires_grad=True)
        on_npu, x_npu = copy.deepcopy(network).to("npu"), x.detach().npu().requires_grad_()
        outputs, outputs_npu = (torch.utils._pytree.tree_leaves(net(y)) for net, y in ((network, x), (on_npu, x_npu)))
        weights = [torch.randn_like(output) for output in outputs]
        grads = torch.autograd.grad(outputs, [x, *network.parameters()], weights)
        grads_npu = torch.autograd.grad(
            outputs_npu, [x_npu, *on_npu.parameters()], [weight.npu() for weight in weights]
        )
        for actual, expected in zip([*outputs_npu, *grads_npu], [*outputs, *grads], strict=True):
            torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


@on_simulator(torch=True)
def test_packed_sequences_of_different_lengths_go_through_an_lstm():
    import copy

    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    x, lengths = torch.randn(6, 3, 4), torch.tensor([6, 4, 1])
    for bidirectional in (False, True):
        on_cpu = torch.nn.LSTM(4, 5, bidirectional=bidirectional)
        on_npu = copy.deepcopy(on_cpu).to("npu")
        expected, (h, c) = on_cpu(pack_padded_sequence(x, lengths))
        actual, (h_npu, c_npu) = on_npu(pack_padded_sequence(x.npu(), lengths))
        torch.testing.assert_close(pad_packed_sequence(actual)[0].cpu(), pad_packed_sequence(expected)[0])
        torch.testing.assert_close((h_npu.cpu(), c_npu.cpu()), (h, c))


@on_simulator(torch=True)
def test_an_operator_that_fails_on_the_device_fails_the_stream_with_its_name():
    import torch

    x = torch.arange(4.0, device="npu")
    x[torch.tensor([9], device="npu")]
    with pytest.raises(RuntimeError, match="aclnnIndex: index 9 is out of bounds"):
        torch.npu.synchronize()


@on_simulator(torch=True)
def test_gradient_scaling_backs_off_and_grows():
    import torch

    scaler = torch.amp.GradScaler("npu", init_scale=8.0, growth_interval=2)
    layer = torch.nn.Linear(3, 4).to("npu")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scales = []
    for factor in (1.0, 1.0, 1.0, 1.0, float("inf")):
        loss = layer(torch.ones(2, 3, device="npu")).sum() * factor
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 16.0, 32.0, 16.0]


@on_simulator(torch=True)
def test_a_captured_chain_reads_the_buffers_of_the_day():
    import torch

    from simnpu import calls

    weight = torch.randn(4, 4, device="npu")
    x = torch.zeros(3, 4, device="npu")
    torch.relu(x @ weight + 1).sum(0)  # what is allocated on the first use is allocated
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = torch.relu(x @ weight + 1).sum(0)
    captured = calls.counts()
    for seed in range(3):
        x.copy_(torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)))
        graph.replay()
        torch.testing.assert_close(y.cpu(), torch.relu(x.cpu() @ weight.cpu() + 1).sum(0))
    after = calls.counts()
    assert captured["aclnnRelu"] == after["aclnnRelu"] == 2, "replay does not call the operator again"
    assert captured["aclnnReduceSum"] == after["aclnnReduceSum"] == 2


@on_simulator(torch=True)
def test_captured_random_numbers_go_on_from_replay_to_replay():
    import torch

    torch.npu.manual_seed(3)
    graph = torch.npu.NPUGraph()
    x = torch.empty(50, device="npu")
    with torch.npu.graph(graph):
        x.normal_()
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(x.cpu())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


@on_simulator(torch=True)
def test_two_streams_work_on_tensors_in_the_order_of_their_events():
    import torch

    side = torch.npu.Stream()
    x = torch.ones(1000, device="npu")
    for _ in range(50):
        x = x * 2
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            x = x / 2 + 1
        torch.npu.current_stream().wait_stream(side)
    assert x.tolist() == [51.0] * 1000


@on_simulator(torch=True)
def test_a_small_network_learns():
    import torch

    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    network = torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 2)
    ).to("npu")
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(network(x.npu()), y.npu())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 < losses[0]
