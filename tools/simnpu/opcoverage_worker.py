"""A worker of tools/simnpu/opcoverage.py: runs PyTorch's operators on the simulated NPU and on the CPU, and compares.

Reads tasks and writes records, a JSON object per line. Every task has a forked process of its own: whatever it breaks,
the next one finds the fresh interpreter that imported torch but never touched the device.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[2])
from simnpu import calls  # noqa: E402 - found by the line above

Record = dict[str, Any]
Judge = Callable[[Record, Callable[[str], None]], Record]

# Whose results differ from call to call: shape, dtype and device are compared, not the numbers.
RANDOM = [
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal*", "rand*", "uniform"),
    *("empty*", "new_empty*", "pca_lowrank", "svd_lowrank"),
    *("nn.functional.*dropout*", "nn.functional.fractional_max_pool*", "nn.functional.rrelu"),
    *("nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention"),
]
# Computed in another way than on the CPU: (operators, dtypes, relative, absolute tolerance).
OTHER_WAY = [
    ("fft.*", "*", 1e-5, 1e-4),  # torch_npu multiplies with the matrix of the discrete Fourier transform
    ("nn.functional.linear_cross_entropy.chunked*", "*float16", 0.1, 0.01),  # torch keeps float32 sums on the CPU only
]
# Whose tensor arguments stay on the CPU, on any device.
ARGUMENTS_ON_CPU = ("tensor_split",)
RAN_ON_CPU = re.compile(r"(?:operator|kernel) \W?([\w:.]+)[^\n]* (?:fall ?back to run|running) on (?:the )?CPU")
# The operators for whose arguments CANN's pages list types.
TYPES = Path(__file__).parents[2] / "simnpu" / "csrc" / "ops" / "types.inc"
DOCUMENTED = set(re.findall(r"^TYPES\((\w+),", TYPES.read_text(encoding="utf-8"), re.MULTILINE))
KEPT = 200  # different failures of one operator


def is_random(operator: str) -> bool:
    """Whether two runs of the operator may differ."""
    return any(fnmatch.fnmatch(operator, pattern) for pattern in RANDOM)


def in_fork(judge: Judge, task: Record) -> Record:
    """The record that `judge` returns in a child process; record["died"] names the signal or timeout that ended it."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _child(judge, task, writer, output.fileno())
        os.close(writer)
        lines = _read_until(reader, started + task["timeout"])
        os.close(reader)
        if lines is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        said = (lines if lines is not None else b"").decode().splitlines()
        record: Record = {"seconds": round(time.monotonic() - started, 2)}
        if lines is None:
            return record | {"died": f"no end after {task['timeout']} s"}
        if said and said[-1].startswith("{"):
            return record | json.loads(said[-1])
        output.seek(0)
        tail = output.read().decode(errors="replace").strip().splitlines()[-12:]
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return record | {"died": f"{how} in {said[-1] if said else 'the beginning'}", "output": tail}


def _read_until(reader: int, deadline: float) -> bytes | None:
    # Everything up to the end of file, or None when the deadline comes first.
    data = b""
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            chunk = os.read(reader, 1 << 16)
            if not chunk:
                return data
            data += chunk
    return None


def _child(judge: Judge, task: Record, writer: int, output: int) -> None:
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        task["output"] = output
        record = judge(task, lambda at: void(os.write(writer, f"{at}\n".encode())))
        os.write(writer, json.dumps(record).encode())
    except BaseException:
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def void(_: object) -> None:
    """Drops a value."""


def serve(judge: Judge, hello: Record) -> None:
    """Answers the tasks on standard input, one line each; `hello` first."""
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)  # whatever prints must not get between the records

        def alone(task: Record, at: Callable[[str], None]) -> Record:
            os.close(answers.fileno())  # else the parent waits for a child whose worker is dead
            return judge(task, at)

        answers.write(json.dumps(hello) + "\n")
        for line in sys.stdin:
            answers.write(json.dumps(in_fork(alone, json.loads(line))) + "\n")


class Operators:
    """PyTorch's operator database, and the judgement of one operator."""

    def __init__(self) -> None:
        # The database comes with torch's test utilities, which want a package for a feature that is not used here.
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase  # type: ignore[attr-defined]
        import torch
        import torch_npu  # noqa: F401
        from torch.testing._internal.common_methods_invocations import op_db

        torch.set_num_threads(1)
        self.torch: Any = torch
        self.by_name = {info.full_name: info for info in op_db}

    def hello(self) -> Record:
        """Which operators there are, with the dtypes that the CPU takes forward and backward."""

        def names(dtypes: Any) -> list[str]:
            return sorted(str(dtype).removeprefix("torch.") for dtype in dtypes)

        return {
            "operators": {
                name: {
                    "forward": names({*info.dtypes, *info.dtypesIfCUDA}),  # devices take more
                    "backward": names(info.supported_backward_dtypes("cpu")),
                    "compiled": names(info.dtypes),
                }
                for name, info in self.by_name.items()
            }
        }

    def judge(self, task: Record, at: Callable[[str], None]) -> Record:
        """The record of one operator, dtype and direction: how many samples agree, and what the others say."""
        torch = self.torch
        torch.set_warn_always(True)
        warnings.simplefilter("always")
        info = self.by_name[task["op"]]
        dtype = getattr(torch, task["dtype"])
        backward = task["direction"] == "backward"
        record: Record = {"samples": 0, "passed": 0, "refused": 0, "random": is_random(info.full_name)}
        errors: dict[str, int] = {}
        wrong: dict[str, int] = {}
        run = self._gradients if backward else self._results
        compiled = task["direction"] == "compiled"
        on_npu = self._compiled if compiled else run
        at("its samples")
        for index, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=backward)):
            if task["samples"] and record["samples"] >= task["samples"]:
                break
            at(f"sample {index}")
            if not self._names_device(sample):
                continue  # stays on the CPU
            try:
                if compiled:  # what torch cannot compile is not asked of a device
                    self._compiled(info, self._placed(info.full_name, sample, "cpu"), "aot_eager")
                expected = run(info, self._placed(info.full_name, sample, "cpu"))
            except Exception:
                expected = None if dtype in info.dtypes else self._in_float64(info, sample, dtype)
                if expected is None:
                    record["refused"] += 1
                    continue
            record["samples"] += 1
            try:
                actual = on_npu(info, self._placed(info.full_name, sample, "npu"))
                torch.npu.synchronize()
                message = self._difference(
                    self._tolerances(info, dtype),
                    expected,
                    actual,
                    numbers=not record["random"],
                    exact=functools.cache(lambda sample=sample: self._leaves(run(info, self._raised(sample)))),
                )
            except Exception as error:
                with contextlib.suppress(Exception):  # what the stream still has to report belongs to this sample
                    torch.npu.synchronize()
                text = f"{type(error).__name__}: {error}"
                errors[text] = errors.get(text, 0) + 1
            else:
                if message:
                    plain = {
                        name: value for name, value in sample.kwargs.items() if isinstance(value, (bool, int, str))
                    }
                    message = f"sample {index} {', '.join(f'{name}={plain[name]!r}' for name in plain)}: {message}"
                    wrong[message] = wrong.get(message, 0) + 1
                record["passed"] += not message
        os.lseek(task["output"], 0, os.SEEK_SET)
        with os.fdopen(os.dup(task["output"]), errors="replace") as output:
            record["on_cpu"] = sorted(set(RAN_ON_CPU.findall(output.read())))
        reached = {name for name in calls.counts() if name.startswith("aclnn") and not name.endswith("WorkspaceSize")}
        record["undocumented"] = sorted(reached - DOCUMENTED)
        record["kernels"] = calls.counts().get("rtKernelLaunch", 0)
        record["errors"] = [text[:1500] for text in list(errors)[:KEPT]]
        record["wrong"] = [text[:300] for text in list(wrong)[:KEPT]]
        record["differing"] = sum(wrong.values())
        return record

    def _names_device(self, sample: Any) -> bool:
        leaves = self._leaves((sample.input, sample.args, sample.kwargs))
        return any(isinstance(leaf, (self.torch.Tensor, self.torch.device)) or leaf == "cpu" for leaf in leaves)

    def _placed(self, name: str, sample: Any, device: str) -> Any:
        # A copy of the sample on a device: its tensors, and the arguments that name a device.
        torch = self.torch
        torch.manual_seed(7)

        def place(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return leaf.detach().to(device, copy=True).requires_grad_(leaf.requires_grad)
            if isinstance(leaf, torch.device) and leaf.type == "cpu":
                return torch.device(device)
            return device if isinstance(leaf, str) and leaf == "cpu" else leaf

        placed = self._mapped(place, sample)
        if name in ARGUMENTS_ON_CPU:
            placed.args, placed.kwargs = sample.args, sample.kwargs
        return placed

    def _mapped(self, function: Callable[[Any], Any], sample: Any) -> Any:
        tree = (sample.input, tuple(sample.args), dict(sample.kwargs))
        input, args, kwargs = self.torch.utils._pytree.tree_map(function, tree)
        return types.SimpleNamespace(
            input=input, args=args, kwargs=kwargs, output_process_fn_grad=sample.output_process_fn_grad
        )

    def _results(self, info: Any, sample: Any) -> Any:
        # What the operator returns, and its arguments afterwards: some are written.
        with self.torch.no_grad():
            returned = info.op(sample.input, *sample.args, **sample.kwargs)
        written = sample.input if info.full_name in ARGUMENTS_ON_CPU else (sample.input, sample.args, sample.kwargs)
        arguments = self._leaves(written)
        return returned, [leaf for leaf in arguments if isinstance(leaf, self.torch.Tensor)]

    def _compiled(self, info: Any, sample: Any, backend: str = "inductor") -> Any:
        # As _results, but compiled. One graph for each sample: what is compared is the code for its very shapes.
        self.torch._dynamo.reset()
        operator = self.torch.compile(info.op, backend=backend, fullgraph=True, dynamic=False)
        return self._results(types.SimpleNamespace(op=operator, full_name=info.full_name), sample)

    def _gradients(self, info: Any, sample: Any) -> Any:
        torch = self.torch
        leaves = self._leaves
        call = info.gradcheck_wrapper  # makes of an argument what the operator asks of it, as a symmetric matrix
        returned = call(info.op, sample.input, *sample.args, **sample.kwargs)
        if sample.output_process_fn_grad:
            returned = sample.output_process_fn_grad(returned)
        outputs = [leaf for leaf in leaves(returned) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        arguments = leaves((sample.input, sample.args, sample.kwargs))
        inputs = [leaf for leaf in arguments if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if not outputs or not inputs:
            raise ValueError("nothing to differentiate")
        generator = torch.Generator().manual_seed(7)
        weights = []
        for out in outputs:
            kind = torch.complex64 if out.is_complex() else torch.float32
            weights.append(torch.randn(out.shape, dtype=kind, generator=generator).to(out.device, out.dtype))
        return list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))

    def _leaves(self, tree: Any) -> list:
        return self.torch.utils._pytree.tree_leaves(tree)

    def _in_float64(self, info: Any, sample: Any, dtype: Any) -> Any:
        # What the CPU computes in float64 for a dtype that it lacks, as that dtype. None if it does not.
        torch = self.torch

        def cast(source: Any, target: Any) -> Callable[[Any], Any]:
            return lambda leaf: leaf.to(target) if isinstance(leaf, torch.Tensor) and leaf.dtype == source else leaf

        try:
            results = self._results(info, self._mapped(cast(dtype, torch.float64), sample))
        except Exception:
            return None
        return torch.utils._pytree.tree_map(cast(torch.float64, dtype), results)

    def _difference(
        self, tolerances: Callable[[Any], dict], expected: Any, actual: Any, *, numbers: bool, exact: Callable[[], list]
    ) -> str:
        # What is wrong with the NPU's results; "" if nothing is. `exact` computes them in a higher precision.
        torch = self.torch
        wanted, shape = torch.utils._pytree.tree_flatten(expected)
        found, found_shape = torch.utils._pytree.tree_flatten(actual)
        if len(wanted) != len(found) or str(shape) != str(found_shape):
            return f"returns {found_shape}, expected {shape}"
        for place, (want, have) in enumerate(zip(wanted, found, strict=True)):
            if not isinstance(want, torch.Tensor):
                same = str(want) == str(have)  # also for "not a number"
                if not same and want != torch.device("cpu") and numbers:
                    return f"{have!r}, expected {want!r}"
                continue
            if not isinstance(have, torch.Tensor):
                return f"{have!r}, expected a tensor"
            if have.device.type != "npu":
                return f"the result is on {have.device}"
            if have.dtype != want.dtype or have.shape != want.shape or have.layout != want.layout:
                return (
                    f"{have.dtype} {tuple(have.shape)} {have.layout}, "
                    f"expected {want.dtype} {tuple(want.shape)} {want.layout}"
                )
            if numbers:
                try:
                    torch.testing.assert_close(have.cpu(), want, equal_nan=True, **tolerances(want.dtype))
                except AssertionError as error:
                    if not want.is_floating_point() or not self._as_exact(have.cpu(), want, exact()[place]):
                        return " ".join(str(error).split())
        return ""

    def _as_exact(self, have: Any, want: Any, exact: Any) -> bool:
        # Two ways of rounding may be further apart than the tolerance: then the NPU must not be worse than the CPU.
        exact = exact.double()
        error, allowed = (have.double() - exact).abs(), (want.double() - exact).abs()
        if not exact.isfinite().all():
            return False
        allowed = allowed.where(allowed.isfinite(), 0)  # where a step of the CPU's overflows
        return bool((error <= 2 * allowed.max() + 4 * self.torch.finfo(want.dtype).eps * exact.abs()).all())

    def _raised(self, sample: Any) -> Any:
        # The sample in the next higher precision.
        torch = self.torch
        higher = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}

        def lift(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                dtype = higher.get(leaf.dtype, leaf.dtype)
                return leaf.detach().to(dtype, copy=True).requires_grad_(leaf.requires_grad)
            return higher.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf

        return self._mapped(lift, sample)

    def _tolerances(self, info: Any, dtype: Any) -> Callable[[Any], dict[str, float]]:
        # For a result's dtype: the operator's own for comparisons with a reference, at least those of assert_close.
        from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride

        own_rtol = own_atol = 0.0
        for decorate in info.decorators:
            test = getattr(decorate, "test_name", None) or "any reference"
            if "reference" not in test or getattr(decorate, "device_type", None) not in (None, "cpu"):
                continue
            for decorator in getattr(decorate, "decorators", [decorate]):
                if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                    own_atol, own_rtol = max(own_atol, decorator.d[dtype].atol), max(own_rtol, decorator.d[dtype].rtol)
                elif isinstance(decorator, precisionOverride) and dtype in decorator.d:
                    own_atol = max(own_atol, decorator.d[dtype])
        for pattern, dtypes, rtol, atol in OTHER_WAY:
            if fnmatch.fnmatch(info.full_name, pattern) and fnmatch.fnmatch(str(dtype), dtypes):
                own_rtol, own_atol = max(rtol, own_rtol), max(atol, own_atol)

        def for_result(result: Any) -> dict[str, float]:
            if not result.is_floating_point and not result.is_complex:
                return {}
            rtol, atol = self.torch.testing._comparison.default_tolerances(result)
            return {"rtol": max(rtol, own_rtol), "atol": max(atol, own_atol)}

        return for_result


if __name__ == "__main__":
    operators = Operators()
    serve(operators.judge, operators.hello())
