"""One process that compiles and runs kernels: `kernel_worker.py STEP ARGUMENT…`; see stack.py for what surrounds it."""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
from pathlib import Path
from typing import Any

import torch
import torch_npu  # noqa: F401 - brings the device

PLACE = Path(os.environ["PLACE"])
SOURCE = """import triton
import triton.language as tl

@triton.jit
def {name}(out, given, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(given + at) * 2 + 1)

@triton.jit
def writes_outside(out, given, far, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at + far, tl.load(given + at))

@triton.jit
def reads_outside(out, given, far, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(given + at + far))

@triton.jit
def synchronizes(out, given, far, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.sync_block_all("all", 8)
    tl.store(out + at, tl.load(given + at + far))
"""


def kernel(name: str, made: str = "") -> Any:
    """A kernel under a name of its own, so that no cache holds it yet."""
    path = PLACE / f"module_{name}.py"
    if not path.exists():
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(SOURCE.format(name=name))
        new.rename(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, made or name)


def check(made: Any) -> None:
    given = torch.arange(64, dtype=torch.float32).npu()
    out = torch.zeros_like(given)
    made[(1,)](out, given, SIZE=64)
    assert out.tolist() == [2.0 * i + 1 for i in range(64)], out.tolist()


def fails(made: Any, *words: str, what: type[Exception] | None = None) -> None:
    """The kernel does not compile, or not run, and the error says all the words."""
    from triton.compiler.errors import MLIRCompilationError

    expected = MLIRCompilationError if what is None else what
    text = None
    try:
        check(made)
    except expected as error:
        text = str(error)
    assert text is not None, "it ran"
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in {text}"


def plan(name: str) -> None:
    (PLACE / "plan").write_text(name)


FAULTS = {
    # How the compiler goes wrong, and what the error must say.
    "error": ["out of order today"],
    "killed": ["SIGKILL"],
    "silent": ["kernel.o", "No such file"],
    "hang": ["not done after 1 s", "SIMNPU_COMPILE_TIMEOUT"],
    "crash": ["the compiler was ended by signal 11", "Segmentation fault"],
    "full": ["kernel k_full cannot be compiled", "File too large"],
}


def faults() -> None:
    """Each fault is an error of the launch that met it; the next one compiles, here and, for `later_`, elsewhere."""
    for fault, words in FAULTS.items():
        made = kernel(f"k_{fault}")
        plan(fault)
        fails(made, *words)
        plan("right")
        check(made)
        plan(fault)
        fails(kernel(f"later_{fault}"))
    plan("right")


def after_faults() -> None:
    for fault in FAULTS:
        check(kernel(f"k_{fault}"))
        check(kernel(f"later_{fault}"))


def full_disk() -> None:
    """No room in Triton's cache: files cannot grow."""
    check(kernel("before"))
    made = kernel("no_room")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (7000, before[1]))
    try:
        fails(made, "File too large", what=OSError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    check(made)


def run(*names: str) -> None:
    for name in names:
        check(kernel(name))


def refused(name: str) -> None:
    """A kernel whose binary was damaged is not run. What follows in this process torch_npu's queue drops."""
    words = [f"binary of {name} cannot be loaded", "its checksum is wrong", "TRITON_CACHE_DIR"]
    fails(kernel(name), *words, what=RuntimeError)


def out_of_bounds() -> None:
    """A kernel that leaves its tensors is told at the synchronization; the process goes on."""
    given = torch.arange(64, dtype=torch.float32).npu()
    for name, did in (("writes_outside", "wrote out of bounds"), ("reads_outside", "read out of bounds")):
        made = kernel("outside", name)
        out = torch.zeros_like(given)
        made[(1,)](out, given, 1 << 12, SIZE=64)
        text = None
        try:
            torch.npu.synchronize()
        except RuntimeError as error:
            text = str(error)
        assert text is not None, f"{name} was not noticed"
        assert f"kernel {name} {did}" in text, text
        made[(1,)](out, given, 0, SIZE=64)
        assert out.tolist() == given.tolist()
    check(kernel("inside"))
    del given, out


def not_simulated() -> None:
    """The error of the compile names the operation and the kernel."""
    from triton.compiler.errors import MLIRCompilationError

    given = torch.arange(64, dtype=torch.float32).npu()
    text = ""
    try:
        kernel("unknown", "synchronizes")[(1,)](given, given, 0, SIZE=64)
    except MLIRCompilationError as error:
        text = str(error)
    assert "hivm.hir.sync_block" in text, text
    assert "not simulated" in text, text
    assert "kernel synchronizes cannot be compiled" in text, text
    check(kernel("known"))


def inductor() -> None:
    """A model whose kernel does not compile is an error with the compiler's words; the next attempt is right."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2 + 1

    def attempt() -> None:
        torch._dynamo.reset()
        given = torch.arange(64, dtype=torch.float32)
        found = torch.compile(function, backend="inductor")(given.npu()).cpu()
        torch.testing.assert_close(found, function(given))

    if (PLACE / "plan").read_text() != "right":
        text = ""
        try:
            attempt()
        except Exception as error:
            text = str(error)
        print(text)
        assert "out of order today" in text, text
        plan("right")
    attempt()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    print("finished", flush=True)
