"""A model compiled ahead of time by one process runs in another, which has no compiler and no caches of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import simnpu
from toolchain.compiling.stack import NEEDS_KERNELS, SECONDS

pytestmark = NEEDS_KERNELS

WORKER = Path(__file__).with_name("ahead_of_time_worker.py")
QUICK = {"FAST_RUN_WITH_MAX_TILING_NUM": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCH_WARM_POOL": "0"}


def test_a_package_of_one_process_runs_in_another(tmp_path: Path) -> None:
    for step in ("compile", "run"):
        caches = {name: str(tmp_path / step / name) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
        calls = tmp_path / f"{step}.log"
        done = subprocess.run(
            [sys.executable, str(WORKER), step, str(tmp_path / "model.pt2")],
            env=simnpu.environ(log=str(calls)) | caches | QUICK,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{step} ended with {done.returncode}:\n{done.stdout}"
    assert not (tmp_path / "run" / "TRITON_CACHE_DIR").exists(), "nothing is left to compile"
    assert "aclrtLaunchKernelWithHostArgs" in (tmp_path / "run.log").read_text(), "the package's own kernels ran"
