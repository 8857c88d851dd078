"""What `import torch_npu` costs after `import torch`: the wheel as released, with torch_npu_lazy, and its C extension
alone, which is the least that any implementation pays.

The three take turns, each time in a fresh process on the simulated NPU, so that load hits them alike; the first round
warms the page cache and is not counted. Measured inside the process, from the end of `import torch` to the end of the
import: modules in sys.modules, processor time of the process, resident memory. Given are the median and the quartiles
of the rounds; the ratio is that of the medians. The floor is torch_npu._C under a package object with nothing in it.

Writes build/import_cost.json and build/import_cost.svg."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from rich.console import Console
from rich.table import Table

import simnpu

SIDES = {"floor": "C extension alone", "lazy": "with torch_npu_lazy", "stock": "wheel as released"}
MEASURES = {"modules": ("modules", 0), "seconds": ("CPU s", 3), "megabytes": ("memory MB", 1)}
MODULES, RATIO, MEGABYTES = 150, 0.25, 80.0
BUILD = Path(__file__).parents[1] / "build"

PROGRAM = """
import importlib.util, json, os, sys, time, types
import torch

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

modules, megabytes, seconds = len(sys.modules), resident(), time.process_time()
if sys.argv[1] == "floor":
    package = types.ModuleType("torch_npu")
    package.__path__ = list(importlib.util.find_spec("torch_npu").submodule_search_locations)
    sys.modules["torch_npu"] = package
    import torch_npu._C
else:
    import torch_npu
seconds = time.process_time() - seconds
print(json.dumps({"modules": len(sys.modules) - modules, "seconds": seconds, "megabytes": resident() - megabytes}))
sys.stdout.flush()
os._exit(0)  # a bare package cannot be shut down, and the end is not measured
"""


def once(side: str) -> dict[str, float]:
    """One import in a process of its own. Raises RuntimeError with what it said if it fails."""
    environment = simnpu.environ() | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    # Where torch_npu_lazy is enabled for the whole environment, only this keeps it out.
    environment["TORCH_NPU_LAZY"] = "1" if side == "lazy" else "0"
    # The first round leaves bytecode of every module, as an installed package has it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    program = ("import torch_npu_lazy\n" if side == "lazy" else "") + PROGRAM
    done = subprocess.run(
        [sys.executable, "-s", "-c", program, side], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{SIDES[side]}: the import failed with exit code {done.returncode}\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def measure(rounds: int) -> dict[str, Any]:
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):
        print(f"import_cost: round {number} of {rounds}", file=sys.stderr, flush=True)
        for side, each in taken.items():
            result = once(side)
            if number:
                each.append(result)
    sides: dict[str, Any] = {
        side: {name: spread([one[name] for one in each]) for name in MEASURES} | {"rounds": each}
        for side, each in taken.items()
    }
    ratio = sides["lazy"]["seconds"]["median"] / sides["stock"]["seconds"]["median"]
    targets = [
        {"name": "modules", "value": sides["lazy"]["modules"]["median"], "target": MODULES},
        {"name": "CPU, lazy by stock", "value": ratio, "target": RATIO},
        {"name": "memory MB", "value": sides["lazy"]["megabytes"]["median"], "target": MEGABYTES},
    ]
    for row in targets:
        row["met"] = row["value"] <= row["target"]
    return {"build": simnpu.build_id(), "python": sys.version.split()[0], "sides": sides, "targets": targets}


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles; with one value it is all three."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"low": low, "median": median, "high": high}


def show(report: dict[str, Any], console: Console) -> None:
    table = Table(title=f"import torch_npu after torch, {report['build']}")
    table.add_column("")
    for title, _ in MEASURES.values():
        table.add_column(title, justify="right")
        table.add_column("quartiles", justify="right", style="dim")
    for side, title in SIDES.items():
        cells = []
        for name, (_, digits) in MEASURES.items():
            row = report["sides"][side][name]
            cells += [f"{row['median']:.{digits}f}", f"{row['low']:.{digits}f} - {row['high']:.{digits}f}"]
        table.add_row(title, *cells)
    console.print(table)
    for row in report["targets"]:
        verdict = "[green]met[/]" if row["met"] else "[red]MISSED[/]"
        console.print(f"{row['name']:20} {row['value']:8.2f}   target <= {row['target']:g}   {verdict}")


def picture(report: dict[str, Any]) -> str:
    """Bars by measure as SVG: the length is the median, the line at its end goes from quartile to quartile."""
    left, width, bar, gap = 190, 420, 18, 6
    colours = {"floor": "#8a9199", "lazy": "#2f7d4f", "stock": "#b5563c"}
    parts, y = [], 34
    for name, (title, digits) in MEASURES.items():
        rows = {side: report["sides"][side][name] for side in SIDES}
        scale = width / max(row["high"] for row in rows.values())
        parts.append(f'<text x="{left}" y="{y}" font-weight="600">{escape(title)}</text>')
        y += 10
        for side, row in rows.items():
            middle = y + bar / 2
            ends = [left + row[end] * scale for end in ("low", "median", "high")]
            parts += [
                f'<text x="{left - 10}" y="{middle + 4}" text-anchor="end">{escape(SIDES[side])}</text>',
                f'<rect x="{left}" y="{y}" width="{ends[1] - left:.1f}" height="{bar}" fill="{colours[side]}"/>',
                f'<path d="M{ends[0]:.1f} {middle}H{ends[2]:.1f}" stroke="currentColor" stroke-width="1.5"/>',
                f'<text x="{ends[2] + 8:.1f}" y="{middle + 4}">{row["median"]:.{digits}f}</text>',
            ]
            y += bar + gap
        y += 26
    title = f"import torch_npu after torch ({report['build']}, Python {report['python']})"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" height="{y}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="currentColor" color="#24292f">'
        f"<title>{escape(title)}</title><style>@media (prefers-color-scheme: dark) {{ svg {{ color: #e6edf3; }} }}"
        f"</style>{''.join(parts)}</svg>\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="processes per side (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two rounds, to see that it works")
    parser.add_argument("--output", type=Path, default=BUILD, metavar="DIR", help="for the files (default: build)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    report = measure(2 if options.quick else options.rounds)
    show(report, Console(width=None if os.isatty(1) else 120))
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "import_cost.json": json.dumps(report, indent=2) + "\n",
        "import_cost.svg": picture(report),
    }.items():
        (options.output / name).write_text(text)
        print(f"written: {options.output / name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
