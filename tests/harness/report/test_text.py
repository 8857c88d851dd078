"""What a case printed is shown readably, and cut without misleading."""

from __future__ import annotations

import pytest

from harness.report.text import clip, count, duration, params, plain


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("10 %\r20 %\r\nend", "10 %\n20 %\nend"),
        ("tab\tstays\nline", "tab\tstays\nline"),
        ("\x00\x08\x7f", "␀␈␡"),
        ("a\x9bb", "a\ufffdb"),
        ("safe\u202egnp.exe", "safe\ufffdgnp.exe"),
        ("a\u200bb\u200ec\u200fd\ufeffe\u2066f\u061cg", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg"),
        ("ad\U000e0041min", "ad\ufffdmin"),
        ("\udc80", "\\udc80"),
        ("Größe 中文 🙂", "Größe 中文 🙂"),
    ],
)
def test_plain(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_clip_keeps_short_texts() -> None:
    assert clip("x" * 16_000) == ("x" * 16_000, 0, "")


@pytest.mark.parametrize("text", ["line of text\n" * 100_000, "x" * 1_000_000, "\n" * 50_000])
def test_clip_accounts_for_every_character(text: str) -> None:
    start, left_out, end = clip(text)
    assert len(start) + left_out + len(end) == len(text)
    assert text.startswith(start)
    assert text.endswith(end)
    assert 0 < len(start) + len(end) <= 16_000


def test_clip_cuts_at_line_ends() -> None:
    start, _, end = clip("line of text\n" * 100_000)
    assert start.endswith("text\n")
    assert end.startswith("line of")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.00 s"), (0.834, "0.83 s"), (12.44, "12.4 s"), (59.96, "1 min 00 s"), (200.4, "3 min 20 s"),
        (3599.7, "1 h 00 min"), (3840, "1 h 04 min"),
    ],
)  # fmt: skip
def test_duration(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_words() -> None:
    assert (count(0, "rule"), count(1, "rule"), count(2, "rule")) == ("0 rules", "1 rule", "2 rules")
    assert params({"params": {"order": "after", "n": 4, "deep": True}}) == "order=after, n=4, deep=true"
    assert params({"params": {}}) == "only point"
