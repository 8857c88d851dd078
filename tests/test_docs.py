"""What the pages and --help tell to type is there: cases with their parameters, linked files, options, targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import __main__ as judge
from harness import header

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("simnpu/*.md")]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
HELP = {"python -m harness --help": judge.EXAMPLES}


def commands(text: str, program: str) -> list[list[str]]:
    """The words behind `program` wherever a line or a code span names it, without a comment."""
    found = re.findall(rf"(?:^|[`$|(]|-- )\s*(?:\w+=\S+ )*{program} ([^`\n]*)", text, re.MULTILINE)
    return [re.split(r"\s#|\s{3}|\)", line)[0].replace("…", "").split() for line in found]


@pytest.mark.parametrize("place", [*TEXTS, *HELP])
def test_cases_and_their_points_exist(place: str) -> None:
    text = {**TEXTS, **HELP}[place]
    for words in [*commands(text, r"python -m harness run"), *commands(text, r"python(?: -m pdb)?")]:
        if not words or not words[0].startswith("cases/"):
            continue
        case = header.read(ROOT / words[0])  # FileNotFoundError names it
        given = [word for word in words[1:] if re.fullmatch(r"\w+=\S+", word)]
        if given or len(case.points()) == 1:
            point = case.point(given)
            assert "--control" not in words or point.controlled, words


def test_links_lead_somewhere() -> None:
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            page = ((ROOT / name).parent / path).resolve() if path else ROOT / name
            assert page.exists(), f"{name}: {target}"
            assert not anchor or anchor in anchors(page), f"{name}: {target}"


def anchors(page: Path) -> list[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_every_expectation_links_to_what_is_known_and_every_known_fault_is_expected() -> None:
    told = set()
    for file in ROOT.glob("expectations/*/*.toml"):
        text = file.read_text(encoding="utf-8")
        links = re.findall(r'^link = "(.*)"$', text, re.MULTILINE)
        assert len(links) == text.count("[[expect]]"), file
        for link in links:
            path, _, anchor = link.partition("#")
            assert "://" in link or anchor in anchors(ROOT / path), f"{file.name}: {link}"
            told.add(anchor)
    assert not set(anchors(ROOT / "docs/known-faults.md")[1:]) - told


def test_options_of_the_judge_exist(pytestconfig: pytest.Config) -> None:
    known = {
        name
        for group in pytestconfig._parser._groups  # what --help reads as well
        for option in group.options
        for name in option.names()
    }
    seen = 0
    for name, text in TEXTS.items():
        for words in commands(text, "pytest cases"):
            for word in words:
                if word.startswith("-"):
                    seen += 1
                    assert word.partition("=")[0] in known, f"{name}: pytest cases {' '.join(words)}"
    assert seen > 20


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name, text in TEXTS.items():
        for target in re.findall(r"[`$] ?make ([a-z][a-z-]*)", text):
            assert target in targets, f"{name}: make {target}"
