"""What the judge costs: processor time per point beyond the case's own, as the difference between two runs of pytest
on a case that does nothing, so that start-up cancels out. Needs neither torch nor a device."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CASE = '''"""Nothing is wrong with nothing."""
# /// script
# [tool.conformance]
# rule = "cost/nothing/1"
# level = "must"
# matrix = {{ number = {numbers} }}
# ///
from harness import probe

probe.check(True, "nothing is wrong")
'''

CONFTEST = """
from harness import devices

devices.DEVICES["bare"] = lambda prepare: devices.Device("bare", "no device", 0, frozenset(), dict)
"""

TARGET = 0.15  # processor seconds per point


@dataclass(frozen=True)
class Cost:
    """One run of pytest: processor and wall seconds of everything, and what the cases themselves took."""

    points: int
    cpu: float
    wall: float
    cases: float


def measure(points: int, workers: int) -> Cost:
    with tempfile.TemporaryDirectory(prefix="suite-cost-") as name:
        root = Path(name)
        for file, text in {
            "cases/cost/nothing.py": CASE.format(numbers=json.dumps(list(range(points)))),
            "conftest.py": CONFTEST,
            "pytest.ini": "[pytest]\n",
            "packages/torch-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n",
            "packages/torch_npu-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch_npu\nVersion: 1.0\n",
        }.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, "-m", "pytest", "cases", "--device=bare", "--subject-path=packages", "-q"]
        command += ["-p", "no:cacheprovider", *(["-n", str(workers)] if workers else [])]
        before, began = os.times(), time.monotonic()
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
        after, ended = os.times(), time.monotonic()
        report = json.loads((root / "build/conformance/report.json").read_text())
        cases = sum(point["cpu_seconds"] for rule in report["rules"] for point in rule["points"])
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return Cost(points, cpu, ended - began, cases)


def bare_interpreter(times: int = 20) -> float:
    """Processor seconds of an interpreter that ends at once."""
    before = os.times()
    for _ in range(times):
        subprocess.run([sys.executable, "-s", "-c", "pass"], check=True)
    after = os.times()
    return (after.children_user + after.children_system - before.children_user - before.children_system) / times


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Prints processor seconds; other load hardly changes them."
    )
    parser.add_argument("--points", type=int, default=60, help="points of the longer run (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="run under pytest-xdist with N workers")
    options = parser.parse_args()
    if options.points < 2:
        parser.error("--points must be 2 or more: the cost is the difference between two runs")

    short, long = measure(1, options.workers), measure(options.points, options.workers)
    further = long.points - short.points
    judge = ((long.cpu - long.cases) - (short.cpu - short.cases)) / further
    case = (long.cases - short.cases) / further
    start = bare_interpreter()
    print(
        f"judge, per point           {judge:7.4f} s CPU   target < {TARGET} s   {'met' if judge < TARGET else 'MISSED'}"
    )
    print(f"case that does nothing     {case:7.4f} s CPU   {case / start:.1f} x an empty interpreter ({start:.4f} s)")
    print(f"pytest, start to end       {short.cpu - short.cases - judge:7.4f} s CPU   once per run")
    print(f"wall time of {long.points:4d} points   {long.wall:7.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
