"""The table reads well in a log: plain, aligned, not wider than a line, and nothing a case printed can disturb it."""

from __future__ import annotations

import pytest

from harness.report import build, table

from . import sample


def text(*results: dict, **options: object) -> str:
    return table(build(list(results) or sample.results(), sample.meta()), **options)  # type: ignore[arg-type]


def test_log_is_plain_and_narrow() -> None:
    shown = text(color=False, width=100)
    assert "\x1b" not in shown
    assert not set(shown) & set("─│┌┐└┘├┤━┃╭╮╯╰")
    for line in shown.splitlines():
        assert line == line.rstrip()
        assert len(line) <= 100 or line.lstrip().startswith("$ "), line


def test_columns_are_aligned() -> None:
    lines = text(color=False, width=100).splitlines()
    header = next(line for line in lines if line.startswith("rule "))
    column = header.index("verdict")
    rows = [line for line in lines if line.startswith("  ") and "/" in line[:30]][:16]
    verdicts = [line[column:] for line in rows]
    assert verdicts.count("conforms") == 5
    assert verdicts.count("broken") == 5
    assert set(verdicts) == {"conforms", "broken", "known", "stale", "unsupported", "upstream", "error"}


def test_without_a_terminal_the_default_is_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert text() == text(color=False, width=100)
    assert capsys.readouterr().out == ""


def test_colours_can_be_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in text(width=100)
    monkeypatch.setenv("NO_COLOR", "1")
    assert text(width=100) == text(color=False, width=100)


def test_colours_only_dress_the_same_text() -> None:
    from harness.report.text import plain

    coloured = text(color=True, width=100)
    assert "\x1b[" in coloured
    squeezed = [line.rstrip() for line in plain(coloured).splitlines()]
    assert squeezed == text(color=False, width=100).splitlines()


def test_long_command_stays_on_one_line() -> None:
    command = "python -m harness run cases/a/b.py " + " ".join(f"parameter_{n}=value" for n in range(30))
    shown = text(sample.point(sample.rule("a/b/1"), "fail", reproduce=command), color=False, width=80)
    assert f"      $ {command}\n" in shown


def test_failure_is_told_with_its_evidence() -> None:
    failure = sample.failure(
        "x holds", expected="1", found="2\nhits = [3]", import_stack=["a.py:1 in <module>", "b.py:2 in f"]
    )
    shown = text(sample.point(sample.rule("a/b/1", "It holds."), "fail", {"n": 7}, failure=failure), color=False)
    for part in ("n=7: fail", "x holds", "expected: 1", "found:    2 hits = [3]", "imported by: b.py:2 in f"):
        assert part in shown


def test_crash_leak_and_unmet_expectation_are_told() -> None:
    shown = text(color=False, width=200)
    assert "crash(SIGSEGV)" in shown
    assert "exit(3)" in shown
    assert "last words: terminate called without an active exception" in shown
    assert "left behind: pid 4711" in shown
    assert "expectations/stock/2.10.0.toml:41 expects fail here, not crash(SIGSEGV)" in shown
    assert "the result file ends in the middle of a record" in shown


def test_known_and_stale_name_the_entry_and_the_reason() -> None:
    shown = text(color=False, width=200)
    assert "only point: expected fail (expectations/stock/2.10.0.toml:57)\n      The plan cache keeps" in shown
    assert "moment=after: passes now, expected timeout (expectations/stock/2.10.0.toml:29)" in shown


def test_a_known_fault_shows_where_it_is_discussed() -> None:
    link = "https://example.org/issues/1"
    known = sample.point(sample.rule("a/b/c"), "xfail", expected=sample.expected(link=link))
    assert f"eagerly.\n      {link}\n" in table(build([known], sample.meta()), color=False)


def test_controls_and_repetitions_are_told() -> None:
    shown = text(color=False, width=200)
    assert "moment=import: upstream: fail\n" in shown
    assert "control: plain PyTorch ends with fail: the child forked during the import ends\n" in shown
    assert "      $ python -m harness run cases/races/fork/in_import.py --control\n" in shown
    assert "control: plain PyTorch passes, so torch_npu is at fault\n" in shown
    assert "      fail: python -m harness run cases/races/first_use/threads.py --jitter 8f3a11.2\n" in shown


def test_totals_line() -> None:
    lines = text(color=False, width=200).splitlines()
    assert lines[-4] == "16 rules, 5 broken, 1 error, 1 stale, 2 known, 1 upstream, 5 conforms, 1 unsupported"
    assert lines[-3].startswith("38 points: 16 pass, 2 fail, 5 crash, ")
    assert lines[-2] == "Each point 3 times with random delays; again with --soak-seed 8f3a11"
    assert lines[-1] == "5 min 12 s, suite 0.1.0"


def test_an_interrupted_run_says_so() -> None:
    meta = sample.meta()
    meta["suite"]["selected"] = 3
    shown = table(build([sample.point(sample.rule("a/b/1"))], meta), color=False)
    assert "The run was interrupted: 2 points of 3 not judged" in shown


def test_run_without_rules() -> None:
    shown = table(build([], sample.meta()), color=False)
    assert "0 rules\n0 points\n" in shown
    assert "what must hold" not in shown


def test_many_failing_points_are_counted_not_listed() -> None:
    rule = sample.rule("a/b/1")
    shown = text(*(sample.point(rule, "fail", {"n": n}) for n in range(50)), color=False)
    assert shown.count("$ python") == 4
    assert "and 46 more points, see the report" in shown


@pytest.mark.parametrize("nasty", ["[bold red]x[/]", ":boom:", "\x1b[2J\x1b]0;title\x07x", "a\rb", "\u202ecod"])
def test_text_of_a_case_is_only_text(nasty: str) -> None:
    rule = sample.rule("a/b/1", nasty)
    shown = text(sample.point(rule, "fail", {"v": nasty}, failure=sample.failure(nasty, found=nasty)), color=False)
    assert not set(shown) & set("\x1b\x07\r\u202e")
    if nasty[0] in "[:":
        assert shown.count(nasty) == 6  # table, head, parameter, message, found, command
