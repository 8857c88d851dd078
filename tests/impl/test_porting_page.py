"""The porting page names each overlay file once, and only rules that there are."""

from __future__ import annotations

import re
from pathlib import Path

from harness import header

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/porting.md").read_text(encoding="utf-8")
OVERLAY = ROOT / "impl/torch_npu_lazy/overlay"
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]


def test_each_overlay_file_has_a_row() -> None:
    files = sorted(str(path.relative_to(OVERLAY)) for path in OVERLAY.rglob("*.py"))
    named = [name for row in ROWS for name in re.findall(r"`([^`]+\.py)`", row[0])]
    assert sorted(named) == files


def test_each_row_names_rules_that_exist() -> None:
    cases, errors = header.read_all(ROOT / "cases")
    assert not errors
    rules = {case.rule for case in cases}
    known = rules | {rule.rpartition("/")[0] for rule in rules} | {rule.partition("/")[0] for rule in rules}
    for row in ROWS:
        named = re.findall(r"`([^`]+)`", row[-1])
        assert named, row
        assert set(named) <= known, row
