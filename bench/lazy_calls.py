"""What torch_npu_lazy costs where it runs per call, beside the wheel's own: the settled path of run_once, entering and
leaving the backend scope, a call through torch's wrapper of Inductor.

Both sides live in one process on the simulated NPU and take turns: the wheel's utils/_dynamo.py is executed a second
time under a name of its own, without the overlay. Everything that either side calls and that is not in question (NPU
Inductor's loading, torch's own wrapper) is settled or does nothing, so what is left is the mechanism.
A ratio is the median over rounds of ours by the wheel's; each round times a batch of either. Times are processor time.
Exit code 1 if a ratio's median is above 1."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import simnpu

TARGET = 1.0


# --- What runs in a child process on the simulator -------------------------------------------------------------------


def both_sides() -> dict[str, ModuleType]:
    """The module with the overlay, and the wheel's own body beside it."""
    import torch_npu_lazy  # noqa: F401  # isort: skip
    import torch
    import torch_npu  # noqa: F401

    import torch_npu.utils._dynamo as ours  # isort: skip
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("wheel_dynamo", ours.__file__)
    assert spec is not None
    assert spec.loader is not None
    wheel = module_from_spec(spec)
    spec.loader.exec_module(wheel)
    torch.compile(lambda x: x, backend="eager")(torch.ones(1))
    return {"reference": ours, "wheel": wheel}


def settle(side: Any) -> None:
    """Have done what a scope would do the first time."""
    side._InductorNpuRegistry._loaded_backend = "default"
    for setup in (side._lazy_inductor_setup, side._lazy_dynamo_setup):
        setup.has_run = True


def wrapper_class(side: Any) -> type:
    """A class like torch's wrapper whose own methods do nothing, patched by the side."""
    import torch
    from torch.utils._config_module import ConfigModule

    class Wrapper:
        # Named as torch's are: a patch may pass them by name.
        def __init__(self, mode: Any, options: Any, dynamic: Any, name: Any = None) -> None:  # noqa: ARG002
            self.config: dict[str, Any] = {}

        def __call__(self, model: Any, inputs: Any) -> None: ...

        def apply_options(self, options: Any) -> None: ...

    kept = torch._TorchCompileInductorWrapper, ConfigModule.get_config_copy
    torch._TorchCompileInductorWrapper = Wrapper
    try:
        side.patch_inductor_wrapper()
    finally:
        torch._TorchCompileInductorWrapper, ConfigModule.get_config_copy = kept
    return Wrapper


def settled(side: Any) -> Callable[[int], None]:
    setup = side.run_once(lambda: None)
    setup()

    def batch(times: int) -> None:
        for _ in range(times):
            setup()

    return batch


def scope(side: Any) -> Callable[[int], None]:
    kind = side._NpuBackendScope

    def batch(times: int) -> None:
        for _ in range(times):
            with kind("default"):
                pass

    return batch


def nested_scope(side: Any) -> Callable[[int], None]:
    kind = side._NpuBackendScope

    def batch(times: int) -> None:
        with kind("default"):
            for _ in range(times):
                with kind("default"):
                    pass

    return batch


def wrapper_made(side: Any) -> Callable[[int], None]:
    kind = wrapper_class(side)

    def batch(times: int) -> None:
        for _ in range(times):
            kind(None, None, None)

    return batch


def wrapper_called(side: Any) -> Callable[[int], None]:
    wrapper = wrapper_class(side)(None, None, None)

    def batch(times: int) -> None:
        for _ in range(times):
            wrapper(None, None)

    return batch


CASES = {
    "run_once, settled": settled,
    "backend scope, enter and leave": scope,
    "backend scope inside another": nested_scope,
    "Inductor wrapper made": wrapper_made,
    "Inductor wrapper called": wrapper_called,
}


def measure(rounds: int, batch: int) -> list[dict[str, Any]]:
    sides = both_sides()
    for side in sides.values():
        settle(side)
    rows = []
    for name, case in CASES.items():
        batches = {side: case(module) for side, module in sides.items()}
        times: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(rounds + 1):
            # Which side goes first alternates; the first round warms up.
            for side in sorted(batches, reverse=bool(number % 2)):
                begun = time.process_time_ns()
                batches[side](batch)
                spent = (time.process_time_ns() - begun) / batch
                if number:
                    times[side].append(spent)
        ratios = [ours / theirs for ours, theirs in zip(times["reference"], times["wheel"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows.append(
            {
                "name": name,
                "reference_ns": statistics.median(times["reference"]),
                "wheel_ns": statistics.median(times["wheel"]),
                "ratio": middle,
                "quartiles": [low, high],
                "rounds": rounds,
            }
        )
    return rows


# --- The parent ------------------------------------------------------------------------------------------------------


def show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Per call, processor time: torch_npu_lazy beside the wheel", title_justify="left")
    for column in ("", "reference", "wheel", "ratio", "quartiles", ""):
        table.add_column(column, justify="left" if column == "" else "right")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['reference_ns']:.0f} ns",
            f"{row['wheel_ns']:.0f} ns",
            f"{row['ratio']:.2f}",
            f"{row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f}",
            "" if row["ratio"] <= TARGET else "slower",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41, help="rounds per case (default %(default)s)")
    parser.add_argument("--batch", type=int, default=2000, help="calls per round and side (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds < 2 or options.batch < 1:
        parser.error("a spread needs at least 2 rounds of at least 1 call")
    if options.measure:
        print(json.dumps(measure(options.rounds, options.batch)))
        return 0
    command = [sys.executable, __file__, "--measure", f"--rounds={options.rounds}", f"--batch={options.batch}"]
    environment = simnpu.environ({**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=900)
    if ended.returncode:
        print(f"the measuring process ended with {ended.returncode}; its error is above", file=sys.stderr)
        return 2
    rows = json.loads(ended.stdout.splitlines()[-1])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    show(rows)
    return int(any(row["ratio"] > TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
