"""What a torch.compile with Inductor costs on the simulated NPU: a softmax with empty caches, with those of Triton and
Inductor empty alone, and with warm ones.

Each is a fresh process; its own CPU seconds and those of the processes it started are told apart. `cold`: no kernel was
ever compiled on this machine. `known`: the simulator has compiled these kernels before, in another process. The
launchers' shared cache is warm in all, as after `make setup`. Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import simnpu  # noqa: E402 - found by the line above

PROGRAM = """
import json
import resource

import torch
import torch_npu


def cpu(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


before = cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
x = torch.linspace(-3, 3, 6400).reshape(64, 100)
compiled = torch.compile(lambda x: torch.softmax(x * 2, -1), backend="inductor", fullgraph=True)
torch.testing.assert_close(compiled(x.npu()).cpu(), torch.softmax(x * 2, -1))
print(json.dumps([cpu(resource.RUSAGE_SELF) - before[0], cpu(resource.RUSAGE_CHILDREN) - before[1]]))
"""
STATES = ("cold", "known", "warm")
WAYS = {
    "as by default, in one process": {},
    "one configuration of each kernel": {"FAST_RUN_WITH_MAX_TILING_NUM": "1"},
}


def measured(environment: dict[str, str]) -> tuple[float, float]:
    """CPU seconds of the process and of its children, after the imports."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if result.returncode:
        raise SystemExit(f"error: the program ended with {result.returncode}:\n{result.stderr[-3000:]}")
    own, children = json.loads(result.stdout.splitlines()[-1])
    return own, children


def main() -> None:
    """Measures every way, in all states one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default: %(default)s)")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds must be 1 or more")
    columns = "".join(f"{state + ': itself':>15}{'started':>10}" for state in STATES)
    print(f"{'':34}{columns}   CPU seconds, medians")
    for name, variables in WAYS.items():
        samples: list[tuple[float, ...]] = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="compile-cost-") as caches:
                environment = simnpu.environ() | variables
                # All that is shared between processes, but no kernel.
                Path(caches, "launchers").symlink_to(Path(environment["SIMNPU_CACHE"], "launchers"))
                environment |= {"SIMNPU_CACHE": caches, "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCH_WARM_POOL": "0"}
                empty, again = (
                    environment
                    | {"TRITON_CACHE_DIR": f"{caches}/triton-{i}", "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor-{i}"}
                    for i in range(2)
                )
                samples.append((*measured(empty), *measured(again), *measured(again)))
        medians = [statistics.median(column) for column in zip(*samples, strict=True)]
        print(f"{name:34}" + "".join(f"{medians[i]:15.1f}{medians[i + 1]:10.1f}" for i in (0, 2, 4)), flush=True)


if __name__ == "__main__":
    os.environ.pop("FAST_RUN_WITH_MAX_TILING_NUM", None)
    main()
