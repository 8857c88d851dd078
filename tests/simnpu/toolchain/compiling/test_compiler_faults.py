"""The kernel compiler goes wrong: the launch that needed it says so, and the next one compiles."""

from __future__ import annotations

import os
import shutil
import signal

from deadlines import HANG

from toolchain.compiling.stack import NEEDS_KERNELS, Stack, finish, stack  # noqa: F401 - the fixture

pytestmark = NEEDS_KERNELS


def test_each_fault_is_told_at_its_launch_and_nothing_of_it_is_kept(stack: Stack) -> None:  # noqa: F811
    stack.run("faults")
    stack.run("after_faults")
    before = len(stack.calls())
    stack.run("after_faults")
    assert len(stack.calls()) == before, "what was compiled must have been kept"


def test_a_full_disk_is_told_and_nothing_half_written_is_kept(stack: Stack) -> None:  # noqa: F811
    stack.run("full_disk")
    stack.run("run", "no_room")


def test_a_damaged_binary_in_tritons_cache_is_refused_by_name(stack: Stack) -> None:  # noqa: F811
    stack.run("run", "mine")
    (binary,) = (stack.place / "triton").glob("*/mine.npubin")
    content = bytearray(binary.read_bytes())
    content[len(content) // 2] ^= 1
    binary.write_bytes(content)
    stack.run("refused", "mine")
    shutil.rmtree(binary.parent)
    stack.run("run", "mine")


def test_processes_share_a_cache_and_one_that_is_killed_at_work_harms_no_other(stack: Stack) -> None:  # noqa: F811
    for name in ("at_gate", "gate"):
        os.mkfifo(stack.place / name)
    stack.plan("gate")
    victim = stack.start("run", "same")
    with (stack.place / "at_gate").open(encoding="ascii") as gate:
        assert int(gate.readline()) == victim.pid
    stack.plan("right")
    others = [stack.start("run", "same", f"own_{number}") for number in range(2)]
    victim.kill()
    (stack.place / "gate").write_text("go on\n")  # its compiler ends as it would have
    finish(others)
    victim.communicate(timeout=HANG)
    assert victim.returncode == -signal.SIGKILL
    before = len(stack.calls())
    stack.run("run", "same", "own_0", "own_1")
    assert len(stack.calls()) == before


def test_kernels_that_leave_their_tensors_or_use_what_is_not_simulated_are_told(stack: Stack) -> None:  # noqa: F811
    stack.run("out_of_bounds", PYTORCH_NO_NPU_MEMORY_CACHING="1")
    stack.run("not_simulated")


def test_a_fault_under_inductor_is_told_and_leaves_nothing_in_its_caches(stack: Stack) -> None:  # noqa: F811
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(stack.place / "inductor"),
        "FAST_RUN_WITH_MAX_TILING_NUM": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCH_WARM_POOL": "0",
    }
    stack.plan("error")
    stack.run("inductor", **environment)
    stack.run("inductor", **environment)
