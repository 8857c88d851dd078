"""The operations of triton.language on the simulated device: equal to torch on the CPU, or refused in known words."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from deadlines import HANG
from language_refused import REFUSED, Refusal

import simnpu
from harness.inside import collecting
from simnpu.toolchain import surroundings

WORKER = Path(__file__).with_name("language_worker.py")
DOCUMENT = Path(simnpu.__file__).parents[1] / "docs" / "simnpu.md"
SUBJECTS = ("elementwise", "shapes", "programs")
SECONDS = HANG
# Fewer means that the worker lost some on the way.
CASES_AT_LEAST = {"elementwise": 300, "shapes": 380, "programs": 400}

pytestmark = pytest.mark.skipif(
    surroundings.missing() is not None, reason=f"unsupported: kernels cannot be compiled: {surroundings.missing()}"
)


@cache
def results(subject: str) -> dict[str, dict[str, str]]:
    """All cases of a subject by name, from one process on the simulated device."""
    done = subprocess.run(
        [sys.executable, collecting.__file__, str(WORKER), subject],
        env=simnpu.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    records = [json.loads(line.partition("\t")[2]) for line in done.stdout.splitlines() if line.startswith("case\t")]
    last = records[-1]["name"] if records else "none"
    assert done.returncode == 0, f"the worker ended with {done.returncode} after {last}:\n{done.stderr[-4000:]}"
    assert done.stdout.endswith("finished\n"), f"the worker ended early, after {last}:\n{done.stderr[-4000:]}"
    assert len({record["name"] for record in records}) == len(records), "two cases have the same name"
    return {record["name"]: record for record in records}


def refusals() -> dict[str, Refusal]:
    return {name: refusal for refusal in REFUSED for name in refusal.cases}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_operations_equal_torch_or_are_refused(subject: str, subtests: pytest.Subtests) -> None:
    refused = refusals()
    assert len(results(subject)) >= CASES_AT_LEAST[subject]
    for name, result in results(subject).items():
        with subtests.test(msg=name):
            if name not in refused:
                assert result["outcome"] == "passed", f"{name}: {result['outcome']}: {result['text'][-3000:]}"
                continue
            expected = refused[name]
            assert result["outcome"] == expected.by, (
                f"{name}: expected to be refused by the {expected.by}, found: {result['outcome']}; "
                f"if it works now, take it out of language_refused.py and the document. {result['text'][-3000:]}"
            )
            assert expected.words in result["text"]
            if expected.by == "compiler":
                # By name and in order, not by a crash.
                assert "\nbishengir-compile (simulated NPU): " in f"\n{result['text']}"


def test_every_refusal_is_of_a_case() -> None:
    known = {name for subject in SUBJECTS for name in results(subject)}
    assert set(refusals()) <= known


def test_the_document_lists_what_is_refused() -> None:
    rows = [
        line.split(" | ")
        for line in DOCUMENT.read_text().splitlines()
        if line.endswith((" | front end |", " | adapter |", " | compiler |"))
    ]
    assert [(what.removeprefix("| "), by.removesuffix(" |")) for what, by in rows] == [(r.what, r.by) for r in REFUSED]
