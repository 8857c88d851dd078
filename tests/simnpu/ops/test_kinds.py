"""Kinds of tensors and modes besides plain numbers: sparse, complex, generators, lower precision by autocast.

What the device has agrees with the CPU; what it does not have is refused by name, and the process stays usable.
"""

from __future__ import annotations

import pytest
from isolated import on_simulator


@on_simulator(torch=True)
def test_sparse_tensors_coalesce_and_train_as_on_the_cpu():
    import torch

    indices, values = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0]]), torch.randn(4, 3)
    for dtype in (torch.float32, torch.float16):
        on_cpu = torch.sparse_coo_tensor(indices, values.to(dtype), (2, 2, 3))
        on_npu = torch.sparse_coo_tensor(indices.npu(), values.to(dtype).npu(), (2, 2, 3))
        found, expected = on_npu.coalesce(), on_cpu.coalesce()
        assert torch.equal(found.indices().cpu(), expected.indices())
        torch.testing.assert_close(found.values().cpu(), expected.values())
        torch.testing.assert_close(on_npu.to_dense().cpu(), on_cpu.to_dense())
    ends = []
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        words = torch.nn.Embedding(5, 3, sparse=True).to(device)
        optimizer = torch.optim.SGD(words.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            words(torch.tensor([1, 2, 1], device=device)).pow(2).sum().backward()
            assert words.weight.grad is not None
            assert words.weight.grad.is_sparse
            optimizer.step()
        ends.append(words.weight.detach().cpu())
    torch.testing.assert_close(*ends)


@on_simulator(torch=True)
def test_what_sparse_tensors_cannot_do_is_refused_by_name():
    import torch

    sparse = torch.eye(3).npu().to_sparse()
    refused = {
        "addmm": lambda: torch.sparse.mm(sparse, torch.eye(3).npu()),
        "_sparse_softmax": lambda: torch.sparse.softmax(sparse, 1),
        "sparse_sampled_addmm": lambda: torch.sparse.sampled_addmm(
            torch.eye(3).npu().to_sparse_csr(), torch.eye(3).npu(), torch.eye(3).npu()
        ),
    }
    for name, call in refused.items():
        with pytest.raises((RuntimeError, NotImplementedError), match=name):
            call()
        torch.npu.synchronize()
        assert (torch.ones(3, device="npu") * 2).tolist() == [2.0] * 3


@on_simulator(torch=True)
def test_complex_numbers_agree_with_the_cpu():
    import torch

    generator = torch.Generator().manual_seed(0)
    x, y, square = (torch.randn(s, dtype=torch.complex64, generator=generator) for s in ((3, 4), (3, 4), (4, 4)))
    real = torch.randn(3, 4, generator=generator)

    def answers(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, r: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        return {
            "arithmetic": [x + y, x - y, x * y, x / y, x + 2j, x * r, r * (1 + 2j), -x, x**2, 2**x],
            "parts": [x.abs(), x.angle(), x.real, x.imag, torch.view_as_real(x), x.sgn()],
            "made": [torch.complex(r, r), torch.polar(r.abs(), r), r.to(x.dtype), torch.full_like(x, 1j)],
            "conjugates": [x.conj(), x.conj() + y, x.conj() * x, torch.conj_physical(x)],
            "functions": [x.exp(), x.log(), x.sin(), x.cos(), x.sqrt(), x.reciprocal()],
            "reductions": [x.sum(), x.sum(0), x.mean(), x.prod(), x.cumsum(0), s.trace()],
            "comparison": [x == y, x != y],
            "movement": [x.t().contiguous(), torch.cat([x, y]), x.flip(0), torch.where(r > 0, x, y)],
            "transforms": [torch.fft.fft(x), torch.fft.irfft(x), torch.fft.rfft2(r), torch.fft.fftn(x)],
        }

    found, expected = answers(*(z.npu() for z in (x, y, square, real))), answers(x, y, square, real)
    for name, wanted in expected.items():
        for actual, value in zip(found[name], wanted, strict=True):
            torch.testing.assert_close(actual.cpu(), value, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    gradients = {
        "product": lambda a, b: (a * b).abs().sum(),
        "quotient": lambda a, b: (a / b).abs().sum(),
        "transform": lambda a, b: (torch.fft.fft(a) * b).abs().sum(),
        "parts": lambda a, b: (a.real * b.imag).sum() + torch.polar(a.abs(), b.angle()).real.sum(),
    }
    for name, function in gradients.items():
        ends = []
        for device in ("npu", "cpu"):
            a, b = (z.clone().to(device).requires_grad_() for z in (x, y))
            function(a, b).backward()
            ends.append([z.grad.cpu() for z in (a, b) if z.grad is not None])
        assert len(ends[1]) == 2
        torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


# With its task queue on, torch_npu drops what is enqueued after a failure.
@on_simulator(torch=True, environment={"TASK_QUEUE_ENABLE": "0"})
def test_what_complex_numbers_cannot_do_is_refused_by_name():
    import torch

    torch.manual_seed(0)

    x = torch.randn(3, 4, dtype=torch.complex64).npu()
    refused = {
        "aclnnLinalgVectorNorm": lambda: torch.linalg.vector_norm(x),
        "aclnnIsFinite": x.isfinite,
        "aclnnTanh": x.tanh,
        "aclnnNonzero": x.nonzero,
        "aclnnAny": x.any,
        "aclnnIndex": lambda: x[x.real > 0],
        "aclnnMatmul": lambda: x @ x.mH,
        "aclnnBatchMatMul": lambda: torch.bmm(x[None], x.mT[None]),
        "aclnnStd:": x.std,
        "aclnnVarCorrection": x.var,
        "aclnnVarMean": lambda: torch.var_mean(x),
        "aclnnStdMeanCorrection": lambda: torch.std_mean(x),
        "svd": lambda: torch.linalg.svdvals(x),
        "aclnnMaxDim": lambda: x.max(0),
        "aclnnSort": x.sort,
    }
    for name, call in refused.items():
        with pytest.raises(RuntimeError, match=name):
            _ = call(), torch.npu.synchronize()
        assert (torch.ones(3, device="npu") * 2).tolist() == [2.0] * 3


@on_simulator(torch=True)
def test_the_state_of_generators_is_kept_and_restored():
    import torch

    torch.manual_seed(0)

    def drawn(device: str = "npu:0", generator: torch.Generator | None = None) -> torch.Tensor:
        return torch.randn(9, device=device, generator=generator).cpu()

    torch.npu.manual_seed(5)
    first, state = drawn(), torch.npu.get_rng_state()
    second = drawn()
    torch.npu.set_rng_state(state)
    assert torch.equal(drawn(), second)
    torch.manual_seed(5)
    assert torch.equal(drawn(), first)
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.npu.manual_seed(77)
        drawn()
    assert torch.equal(drawn(), second)

    ours, theirs = (torch.Generator(f"npu:{i}").manual_seed(3) for i in range(2))
    assert torch.equal(drawn("npu:0", ours), drawn("npu:1", theirs)), "equal seeds, unequal devices"
    state = ours.get_state()
    before = drawn(generator=ours)
    ours.set_state(state)
    assert torch.equal(drawn(generator=ours), before)
    torch.npu.manual_seed_all(4)
    assert torch.npu.initial_seed() == 4
    assert torch.equal(drawn("npu:0"), drawn("npu:1"))
    states = torch.npu.get_rng_state_all()
    before = drawn("npu:1")
    torch.npu.set_rng_state_all(states)
    assert torch.equal(drawn("npu:1"), before)
    with pytest.raises(RuntimeError, match="Expected a 'npu' device type for generator"):
        drawn(generator=torch.Generator())


@on_simulator(torch=True)
def test_autocast_lowers_products_and_keeps_sums_and_losses_in_float():
    import copy

    import torch

    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    kernel, x, image = torch.nn.Conv2d(3, 4, 3), torch.randn(5, 6), torch.randn(2, 3, 6, 6)
    on_npu, kernel_on_npu = copy.deepcopy(layers).to("npu"), copy.deepcopy(kernel).to("npu")
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("npu", dtype):
            y, z = on_npu(x.npu()), kernel_on_npu(image.npu())
            kept = [y.softmax(-1), y.exp(), y.sum(), torch.layer_norm(y, (3,))]
            kept.append(torch.nn.functional.cross_entropy(y, torch.zeros(5, dtype=torch.long, device="npu")))
            with torch.autocast("npu", enabled=False):
                assert (x.npu() @ x.npu().T).dtype is torch.float32
        assert (y.dtype, z.dtype) == (dtype, dtype)
        assert {value.dtype for value in kept} == {torch.float32}
        torch.testing.assert_close(y.float().cpu(), layers(x), rtol=0.03, atol=0.03)
        torch.testing.assert_close(z.float().cpu(), kernel(image), rtol=0.03, atol=0.03)
        y.float().pow(2).sum().backward()
        assert {parameter.grad.dtype for parameter in on_npu.parameters() if parameter.grad is not None} == {
            torch.float32
        }


@on_simulator(torch=True)
def test_pieces_of_tensors_are_padded_and_joined():
    import torch

    torch.manual_seed(0)

    from simnpu import calls

    parts = [torch.randn(4, 3), torch.randn(5, 2)]
    found = torch._chunk_cat([part.npu() for part in parts], 0, 2)
    assert torch.equal(found.cpu(), torch._chunk_cat(parts, 0, 2))
    assert calls.counts()["aclnnChunkCat"] == 1


@on_simulator(torch=True)
def test_a_refusal_is_the_call_s_own_and_spoils_nothing():
    import torch

    a = torch.ones(2, 2, device="npu")
    refused = {
        "aclnnMm": lambda: torch.mm(a, a.bfloat16()),
        "aclnnBatchMatMul": lambda: torch.bmm(a[None], a[None].half()),
    }
    for name, call in refused.items():
        try:
            call()
        except RuntimeError as error:
            assert name in str(error), error  # noqa: PT017 - as a program that falls back does it
            answer = a @ a
        else:
            raise AssertionError(f"{name} was accepted")
        assert answer.tolist() == [[2.0, 2.0]] * 2


@on_simulator(torch=True)
def test_types_that_a_device_does_not_take_are_refused_by_operator_argument_and_type():
    import torch

    d = torch.arange(3, dtype=torch.float64, device="npu")
    c = torch.ones(3, dtype=torch.complex64).npu()
    refused = {
        r"161002[^$]*aclnnExpm1: argument 0 \(self\) has type Double, .* takes Float, Half, Long, Bool": d.expm1,
        r"aclnnRepeatInterleaveIntWithDim: argument 0 \(self\) has type Double": lambda: d.repeat_interleave(2, dim=0),
        r"aclnnIndex: argument 0 \(self\) has type ComplexFloat": lambda: c[torch.tensor([2, 0], device="npu")],
        r"aclnnInplaceNormal: argument 0 \(self\) has type ComplexHalf": lambda: torch.randn(
            2, dtype=torch.complex32, device="npu"
        ),
        r"aclnnMm: argument 1 \(mat2\) has type Double": lambda: torch.mm(torch.ones(3, 3, device="npu"), d[:, None]),
    }
    for message, call in refused.items():
        with pytest.raises(RuntimeError, match=message):
            call()
    assert (d * 2).tolist() == [0.0, 2.0, 4.0]


@on_simulator(torch=True)
def test_types_that_the_cpu_lacks_are_computed_in_another_as_a_device_takes_them():
    import torch

    for dtype in (torch.int8, torch.int32, torch.int64, torch.uint8):
        counts = torch.histc(torch.tensor([0, 1, 1, 3], dtype=dtype, device="npu"), bins=4, min=0, max=3)
        assert counts.tolist() == [1, 2, 0, 1]
        assert counts.dtype == dtype


@on_simulator(torch=True)
def test_mixed_types_among_the_arguments_of_a_normalisation_are_refused_by_name():
    import torch
    import torch.nn.functional as F

    x = torch.arange(16.0, device="npu").view(2, 8)
    weight = torch.ones(8, device="npu")
    for name, norm in {
        "aclnnLayerNorm": lambda x, w: F.layer_norm(x, (8,), w, None),
        "aclnnGroupNorm": lambda x, w: F.group_norm(x, 2, w, None),
        "aclnnBatchNorm": lambda x, w: F.batch_norm(x, None, None, w, None, training=True),
    }.items():
        with pytest.raises(RuntimeError, match=f"{name}: mixed types: .* BFloat16, the input Float"):
            norm(x, weight.bfloat16())
        torch.testing.assert_close(norm(x.bfloat16(), weight).float(), norm(x, weight), rtol=1e-2, atol=1e-2)


@on_simulator(torch=True)
def test_what_takes_several_steps_is_rounded_once_in_half_precision():
    import torch
    import torch.nn.functional as F

    generator = torch.Generator().manual_seed(0)
    x, t, w = (torch.rand(1000, generator=generator, dtype=torch.float64) for _ in range(3))
    functions = {
        "binary_cross_entropy_with_logits": lambda x, t, w: F.binary_cross_entropy_with_logits(
            x, t, w, pos_weight=w, reduction="none"
        ),
        "kl_div": lambda x, t, _: F.kl_div(x, t, reduction="none"),
        "soft_margin_loss": lambda x, t, _: F.soft_margin_loss(x, t, reduction="none"),
        "celu": lambda x, _, __: F.celu(-x, 2.0),
        "log_sigmoid": lambda x, _, __: F.logsigmoid(x),
        "logsumexp": lambda x, _, __: torch.logsumexp(x.view(10, 100), 1),
        "in place": lambda x, _, __: F.celu(-x, 2.0, inplace=True),
    }
    for dtype in (torch.float16, torch.bfloat16):
        given = [z.to(dtype) for z in (x, t, w)]
        for name, function in functions.items():
            found, wanted = function(*(z.npu() for z in given)), function(*(z.double() for z in given))
            torch.testing.assert_close(
                found.cpu().double(),
                wanted,
                rtol=torch.finfo(dtype).eps * 0.51,
                atol=1e-6,
                msg=lambda m, name=name, dtype=dtype: f"{name} {dtype}: {m}",
            )
