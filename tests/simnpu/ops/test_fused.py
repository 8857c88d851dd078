"""What torch_npu adds to torch for language models: each operator against its definition, computed on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from isolated import on_simulator

if TYPE_CHECKING:
    from torch import Tensor


def _agree(
    on_npu: Callable[..., Any], definition: Callable[..., Any], *inputs: Tensor, names: str, grad: bool = True
) -> None:
    """Compares the results, and the gradients with respect to the floating inputs; `names`: the operators reached."""
    import torch

    from simnpu import calls

    before = calls.counts()
    runs = []
    for function, device in ((on_npu, "npu"), (definition, "cpu")):
        values = [x.detach().clone().to(device) for x in inputs]
        wanted = [x.requires_grad_() for x in values if x.is_floating_point() and grad]
        results = function(*values)
        results = results if isinstance(results, tuple) else (results,)
        if grad:
            weight = torch.linspace(0.5, 1.5, results[0].numel()).reshape(results[0].shape).to(results[0])
            results[0].backward(weight)
        runs.append([x.detach().cpu() for x in results] + [x.grad.cpu() for x in wanted if x.grad is not None])
        assert len(runs[-1]) == len(results) + len(wanted), f"{names}: an input has no gradient"
    for found, expected in zip(*runs, strict=True):
        low = 2e-2 if expected.dtype in (torch.float16, torch.bfloat16) else 1e-4
        torch.testing.assert_close(found, expected, rtol=low, atol=low, msg=lambda m: f"{names}: {m}")
    after = calls.counts()
    for name in names.split():
        assert after.get(name, 0) > before.get(name, 0), f"{name} was not called"


@on_simulator(torch=True)
def test_root_mean_square_norms_of_a_sum():
    import torch
    import torch_npu

    torch.manual_seed(0)

    def rms(x: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = (x.float().pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
        return (x.float() * scale * gamma.float()).to(x.dtype), scale

    def of_sum(a: torch.Tensor, b: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return *rms(a + b, gamma), a + b

    def cast(a: torch.Tensor, b: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, scale = rms((a.float() + b.float()), gamma)
        return y, y.to(a.dtype), scale, a + b

    a, b, gamma = torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(8)
    add = lambda *x: torch_npu.npu_add_rms_norm(*x, 1e-5)  # noqa: E731
    _agree(add, of_sum, a, b, gamma, names="aclnnAddRmsNorm", grad=False)
    _agree(add, of_sum, a.half(), b.half(), gamma.half(), names="aclnnAddRmsNorm", grad=False)
    add_cast = lambda *x: torch_npu.npu_add_rms_norm_cast(*x, 1e-5)  # noqa: E731
    _agree(add_cast, cast, a.half(), b.half(), gamma.half(), names="aclnnAddRmsNormCast", grad=False)
    gemma = lambda *x: torch_npu.npu_gemma_rms_norm(*x, 1e-5)  # noqa: E731
    _agree(gemma, lambda x, g: rms(x, g + 1), a, gamma, names="aclnnGemmaRmsNorm", grad=False)


@on_simulator(torch=True)
def test_rotary_positions_turn_halves_and_neighbours():
    import torch
    import torch_npu

    torch.manual_seed(0)

    def halves(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([-b, a], -1)

    def neighbours(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)

    x, cos, sin = torch.randn(2, 5, 3, 64), torch.randn(1, 5, 1, 64), torch.randn(1, 5, 1, 64)
    for mode, turn in (("half", halves), ("interleave", neighbours)):
        _agree(
            lambda x, c, s, m=mode: torch_npu.npu_rotary_mul(x, c, s, rotary_mode=m),
            lambda x, c, s, t=turn: x * c + t(x) * s,
            x,
            cos,
            sin,
            names="aclnnRotaryPositionEmbedding aclnnRotaryPositionEmbeddingGrad",
        )


@on_simulator(torch=True)
def test_gated_activations():
    import torch
    import torch_npu
    from torch.nn.functional import gelu, group_norm, silu

    torch.manual_seed(0)

    x = torch.randn(3, 4, 8)
    for left in (False, True):
        for kind, approximate in enumerate(("none", "tanh")):

            def gated(x: torch.Tensor, left: bool = left, how: str = approximate) -> tuple[torch.Tensor, torch.Tensor]:
                a, b = x.chunk(2, -1)
                gate = gelu(a if left else b, approximate=how)
                return gate * (b if left else a), gate

            _agree(
                lambda x, left=left, kind=kind: torch_npu.npu_geglu(x, -1, kind, left),
                gated,
                x,
                names="aclnnGeGluV3 aclnnGeGluV3Backward",
            )
    _agree(
        lambda x: torch_npu.npu_gelu_mul(x, approximate="tanh"),
        lambda x: gelu(x[..., :4], approximate="tanh") * x[..., 4:],
        x,
        names="aclnnGeluMul",
        grad=False,
    )
    _agree(
        lambda x, w, b: torch_npu.npu_group_norm_silu(x, w, b, 2, 1e-5)[0],
        lambda x, w, b: silu(group_norm(x, 2, w, b)),
        x,
        torch.randn(4),
        torch.randn(4),
        names="aclnnGroupNormSilu",
        grad=False,
    )


@on_simulator(torch=True, environment={"TASK_QUEUE_ENABLE": "0"})
def test_operators_of_the_legacy_path_and_their_gradients():
    import torch
    import torch_npu
    from torch.nn.functional import silu

    torch.manual_seed(0)

    from simnpu import calls

    _agree(torch_npu.npu_silu, silu, torch.randn(3, 5), names="aclopCompileAndExecute")
    mask = torch.rand(2, 1, 16, 32) > 0.6
    mask[0, 0, 3] = True  # a row that sees nothing
    _agree(
        lambda x, m: torch_npu.npu_scaled_masked_softmax(x, m, 0.5, False),
        lambda x, m: (x * 0.5).masked_fill(m, -10000).softmax(-1),
        torch.randn(2, 3, 16, 32),
        mask,
        names="aclopCompileAndExecute",
    )
    assert calls.counts()["aclopCompileAndExecute"] == 4


@on_simulator(torch=True)
def test_distances_have_the_gradients_of_the_cpu():
    import torch

    from simnpu import calls

    shapes = [
        ((5, 3), (4, 3)),
        ((2, 5, 3), (2, 4, 3)),
        ((2, 1, 5, 3), (3, 4, 3)),
        ((5, 3), (2, 4, 3)),
        ((0, 3), (4, 3)),
    ]
    for order in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        for first, second in shapes:
            torch.manual_seed(0)
            values, ends = (torch.randn(first), torch.randn(second)), []
            for device in ("cpu", "npu"):
                a, b = (x.detach().clone().to(device).requires_grad_() for x in values)
                distance = torch.cdist(a, b, order)
                weight = torch.linspace(0.5, 1.5, distance.numel()).reshape(distance.shape).to(device)
                distance.backward(weight)
                assert a.grad is not None
                assert b.grad is not None
                ends.append([x.detach().cpu() for x in (distance, a.grad, b.grad)])
            torch.testing.assert_close(
                *reversed(ends), rtol=1e-4, atol=1e-5, msg=lambda m, w=(order, first, second): f"{w}: {m}"
            )
    assert calls.counts()["aclopCompileAndExecute"] > 0, "the gradient is not of the legacy path any more"


@on_simulator(torch=True)
def test_attention_to_packed_sequences_stays_within_each():
    import torch
    import torch_npu

    torch.manual_seed(0)

    def alone(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """[sequence, head, element]; groups of query heads share a key head."""
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
        scores = q @ k.mT * 0.25
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        return (scores.softmax(-1) @ v).transpose(0, 1)

    ends = [5, 12]
    hidden = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
    for causal in (False, True):
        how = {"sparse_mode": 2, "atten_mask": hidden} if causal else {}
        for key_heads in (4, 2):
            _agree(
                lambda q, k, v, how=how: torch_npu.npu_fusion_attention(
                    q, k, v, 4, "TND", scale=0.25, actual_seq_qlen=ends, actual_seq_kvlen=ends, **how
                )[0],
                lambda q, k, v, c=causal: torch.cat(
                    [alone(*(x[i:j] for x in (q, k, v)), causal=c) for i, j in ((0, 5), (5, 12))]
                ),
                torch.randn(12, 4, 16),
                torch.randn(12, key_heads, 16),
                torch.randn(12, key_heads, 16),
                names="aclnnFlashAttentionVarLenScore aclnnFlashAttentionUnpaddingScoreGrad",
            )
    _agree(
        lambda q, k, v: torch_npu.npu_fusion_attention_v2(q, k, v, 4, "BSND", scale=0.25)[0],
        lambda q, k, v: torch.stack([alone(*(x[i] for x in (q, k, v)), causal=False) for i in range(2)]),
        *(torch.randn(2, 5, 4, 16) for _ in range(3)),
        names="aclnnFlashAttentionScoreV2 aclnnFlashAttentionScoreGradV2",
    )


@on_simulator(torch=True)
def test_batch_normalisation_in_steps_equals_that_of_the_whole_batch():
    import torch
    import torch_npu

    torch.manual_seed(0)
    whole = torch.nn.BatchNorm1d(3)
    torch.nn.init.normal_(whole.weight)
    x = torch.randn(4, 3, 5)
    on_cpu = x.clone().requires_grad_()
    expected = whole(on_cpu)
    grad = torch.randn_like(x)
    expected.backward(grad)
    assert on_cpu.grad is not None

    def close(found: torch.Tensor, wanted: torch.Tensor | None) -> None:
        assert wanted is not None
        torch.testing.assert_close(found.detach().cpu(), wanted.detach(), rtol=1e-4, atol=1e-5)

    # Two processes of different batch sizes, as the sums that they exchange and as the statistics.
    parts = (x[:1].npu(), x[1:].npu())
    counts = torch.tensor([5.0, 15.0]).npu()
    weight, bias = whole.weight.detach().npu(), whole.bias.detach().npu()
    for of_sums in (True, False):
        running = torch.zeros(3).npu(), torch.ones(3).npu()
        if of_sums:
            sums = [torch_npu.batch_norm_reduce(part.reshape(len(part), 3, 1, 5), 1e-5) for part in parts]
            gathered = [torch.stack(values) for values in zip(*sums, strict=True)]
            mean, invstd = torch_npu.batch_norm_gather_stats_update(
                parts[0], gathered[0], gathered[1], *running, 0.1, 1e-5, counts
            )
        else:
            statistics = [torch.batch_norm_stats(part, 1e-5) for part in parts]
            gathered = [torch.stack(values) for values in zip(*statistics, strict=True)]
            mean, invstd = torch.batch_norm_gather_stats_with_counts(
                parts[0], gathered[0], gathered[1], *running, 0.1, 1e-5, counts
            )
        close(running[0], whole.running_mean)
        close(running[1], whole.running_var)
        y = [torch.batch_norm_elemt(part, weight, bias, mean, invstd, 1e-5) for part in parts]
        close(torch.cat(y), expected)
    grads = (grad[:1].npu(), grad[1:].npu())
    each = [
        torch.batch_norm_backward_reduce(dy, part, mean, invstd, weight, True, True, True)
        for dy, part in zip(grads, parts, strict=True)
    ]
    sum_dy, sum_dy_xmu, grad_weight, grad_bias = (torch.stack(values).sum(0) for values in zip(*each, strict=True))
    close(grad_weight, whole.weight.grad)
    close(grad_bias, whole.bias.grad)
    back = [
        torch.batch_norm_backward_elemt(dy, part, mean, invstd, weight, sum_dy, sum_dy_xmu, counts.int())
        for dy, part in zip(grads, parts, strict=True)
    ]
    close(torch.cat(back), on_cpu.grad)
