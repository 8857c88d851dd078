"""Tools and benches refuse a number or rule that they cannot work with, before anything is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("tools/simnpu/opcoverage.py --jobs 0", "--jobs and --timeout must be 1 or more"),
        ("tools/simnpu/opcoverage.py --timeout 0", "--jobs and --timeout must be 1 or more"),
        ("tools/simnpu/faults.py --jobs 0", "--jobs must be 1 or more"),
        ("tools/simnpu/sanitize.py --repeat 0", "--repeat must be 1 or more"),
        ("tools/simnpu/stress.py --minutes 0", "is not above 0"),
        ("tools/simnpu/stress.py --fault aclrtMalloc", "SIMNPU_FAULT=aclrtMalloc cannot be understood"),
        ("bench/compile_cost.py --rounds 0", "--rounds must be 1 or more"),
        ("bench/import_cost.py --rounds 0", "--rounds must be 1 or more"),
        ("bench/lazy_calls.py --rounds 1", "at least 2 rounds"),
        ("bench/suite_cost.py --points 1", "--points must be 2 or more"),
    ],
)
def test_what_cannot_work_is_refused(command: str, said: str) -> None:
    program, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
