"""Runs one subject's cases on the simulated device: `language_worker.py SUBJECT [PART OF A NAME]` prints a line per
case, the word case, a tab and JSON: kernels and Triton print other things."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from language_cases import Case, results_of


def main(subject: str, part: str = "") -> None:
    cases: list[Case] = importlib.import_module(f"language_{subject}").CASES
    for case in cases:
        if part not in case.name:
            continue
        for result in results_of(case):
            print(f"case\t{json.dumps(result._asdict())}", flush=True)
    print("finished", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
