"""A header is read without running the case, and a wrong one is refused with file, line and remedy."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from harness import header
from harness.__main__ import main

GOOD = '''
    """The rule in one sentence.

    Why it is a rule.
    """

    # /// script
    # [tool.conformance]
    # level = "must"
    # matrix = { order = ["a", "b"], twice = [true, false] }
    # needs = ["ops", "devices>=2", "python>=3.10"]
    # timeout = 7
    # releases = ">=2.9"
    # ///

    raise SystemExit("must never run")
'''


def write(directory: Path, text: str, name: str = "case.py") -> Path:
    path = directory / "area/topic" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    return path


def test_a_header_says_everything(tmp_path: Path) -> None:
    case = header.read(write(tmp_path, GOOD))
    assert (case.rule, case.area, case.level, case.timeout) == ("area/topic/case", "area", "must", 7.0)
    assert (case.title, case.text) == ("The rule in one sentence.", "Why it is a rule.")
    assert case.needs == ("ops", "devices>=2", "python>=3.10")
    assert case.releases.contains("2.9.0")
    assert not case.releases.contains("2.7.1")
    assert [point.id for point in case.points()] == [
        "area/topic/case[order=a,twice=true]",
        "area/topic/case[order=a,twice=false]",
        "area/topic/case[order=b,twice=true]",
        "area/topic/case[order=b,twice=false]",
    ]


def test_a_case_without_matrix_has_one_point(tmp_path: Path) -> None:
    lines = [line for line in GOOD.splitlines() if "matrix" not in line and "timeout" not in line]
    case = header.read(write(tmp_path, "\n".join(lines)))
    assert [point.id for point in case.points()] == ["area/topic/case"]
    assert case.timeout == header.DEFAULT_TIMEOUT


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('# level = "must"', "", 6, "'level' is missing"),
        ("# timeout = 7", "# timeuot = 7", 11, "unknown field 'timeuot'; the fields are level, matrix"),
        ('"must"', '"may"', 8, "neither 'must' nor 'should'"),
        ('["a", "b"]', "[]", 9, "matrix.order must be a list with at least one value"),
        ('["a", "b"]', '"a"', 9, "matrix.order must be a list with at least one value"),
        ('["a", "b"]', '["a", "a"]', 9, "names a value twice"),
        ('["a", "b"]', '["a b"]', 9, "empty or has a blank"),
        ('["a", "b"]', "[[1]]", 9, "neither text, number nor boolean"),
        ("matrix = {", "matrix = 3 # {", 9, "matrix is not a table"),
        ('["a", "b"]', '["a", nan]', 9, "nan is no number that a report can hold"),
        ('["a", "b"]', "[-inf]", 9, "-inf is no number that a report can hold"),
        ('["a", "b"]', '["\\u0000"]', 9, "unprintable mark"),
        ('["a", "b"]', '["a\\u202eb"]', 9, "unprintable mark"),
        ('["a", "b"]', f"[{'9' * 6000}]", 6, "not valid TOML"),
        ('["a", "b"]', "[" * 5000 + "]" * 5000, 6, "nested too deeply"),
        ('"ops"', '["ops"]', 10, "unknown capability ['ops']; known are"),
        ('"ops"', "{ a = 1 }", 10, "unknown capability {'a': 1}; known are"),
        ("timeout = 7", "timeout = nan", 11, "not a positive number of seconds"),
        ("timeout = 7", "timeout = inf", 11, "not a positive number of seconds"),
        ("timeout = 7", "timeout = 1e9", 11, "not a positive number of seconds"),
        ("[tool.conformance]", 'tool = "x"  #', 6, "no [tool.conformance] table"),
        ("raise SystemExit", "x = " + "-" * 100_000 + "1  # SystemExit", 1, "not valid Python"),
        ('"ops"', '"opps"', 10, "unknown capability 'opps'; known are"),
        ("needs = [", 'needs = "ops" # [', 10, "needs is not a list"),
        ("timeout = 7", "timeout = 0", 11, "not a positive number of seconds"),
        ("timeout = 7", "timeout = true", 11, "not a positive number of seconds"),
        ('">=2.9"', '"from 2.9"', 12, "no version specifier"),
        ("timeout = 7", "timeout = ", 11, "not valid TOML"),
        ("# [tool.conformance]", "# [tool.other]", 6, "no [tool.conformance] table"),
        ("# /// script", "# script", 1, "no PEP 723 block"),
        ("# ///\n", "# ///\n\n# /// script\n# a = 1\n# ///\n", 15, "a second PEP 723 script block"),
        ('"""', "#", 1, "no docstring"),
        ("raise SystemExit", "raise = SystemExit", 15, "not valid Python"),
    ],
)
def test_a_wrong_header_is_refused(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    text = textwrap.dedent(GOOD).lstrip("\n")
    if new == "" or old == '"""':
        changed = "\n".join(line.replace(old, new) for line in text.splitlines() if not (new == "" and old in line))
        changed = changed.replace("The rule", "# The rule").replace("Why it", "# Why it") if old == '"""' else changed
    else:
        assert old in text
        changed = text.replace(old, new, 1)
    path = write(tmp_path, changed)
    with pytest.raises(header.HeaderError) as caught:
        header.read(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_byte_order_mark_is_passed_over_as_python_does(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert header.read(path).title == "The rule in one sentence."


def test_a_pipe_is_no_case_and_is_not_waited_for(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD).with_name("other.py")
    os.mkfifo(path)
    with pytest.raises(header.HeaderError, match="is no regular file"):
        header.read(path)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'"""It holds."""\n\n# Gr\xf6\xdfe\n', 3, "not UTF-8: byte 0xf6; save it as UTF-8"),
        (b'"""It holds."""\n\0\n', 0, "null byte"),  # older Pythons name the line
        (None, 1, "is no regular file"),
    ],
)
def test_what_is_no_python_file_is_refused(
    tmp_path: Path, content: bytes | None, line: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(tmp_path, GOOD)
    path = good.with_name("other.py")
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(header.HeaderError) as caught:
        header.read(path)
    assert f"{path}:{line}"[: None if line else -1] in str(caught.value)
    assert message in str(caught.value)
    assert main(["run", str(path)]) == 2
    assert message in capsys.readouterr().err
    cases, errors = header.read_all(tmp_path)
    assert (len(cases), [message in str(error) for error in errors]) == (1, [True])


def test_a_link_to_nowhere_is_told_beside_the_other_errors(tmp_path: Path) -> None:
    good = write(tmp_path, GOOD)
    link = good.with_name("moved.py")
    link.symlink_to("nowhere.py")
    cases, (error,) = header.read_all(tmp_path)
    assert len(cases) == 1
    assert f"{link}:1" in str(error)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("area/case.py", "a case lies at cases/<area>/<topic>/<name>.py; move it there"),
        ("area/topic/more/case.py", "a case lies at cases/<area>/<topic>/<name>.py; move it there"),
        ("area/topic/Case.py", "'Case' cannot be part of a rule's id"),
        ("area/a-topic/case.py", "'a-topic' cannot be part of a rule's id"),
        ("area/topic/inspect.py", "would hide Python's own module 'inspect'"),
    ],
)
def test_a_case_in_the_wrong_place_is_refused(tmp_path: Path, place: str, message: str) -> None:
    path = tmp_path / "cases" / place
    path.parent.mkdir(parents=True)
    path.write_text(textwrap.dedent(GOOD).lstrip())
    cases, errors = header.read_all(tmp_path / "cases")
    assert cases == []
    assert [str(error).startswith(f"{path}:1: ") and message in str(error) for error in errors] == [True]


def test_all_bad_files_are_told_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path, "x = 1", "a.py"), write(tmp_path, "y = 1", "b.py"), write(tmp_path, GOOD, "c.py")]
    cases, errors = header.read_all(tmp_path)
    assert (len(cases), [error.path for error in errors]) == (1, paths[:2])


def test_rules_are_sorted_by_id(tmp_path: Path) -> None:
    for name in ("second.py", "first.py", "_helper.py"):
        write(tmp_path, GOOD if name[0] != "_" else "", name)
    cases, errors = header.read_all(tmp_path)
    assert [case.rule for case in cases] == ["area/topic/first", "area/topic/second"]
    assert errors == []


def test_a_point_is_named_on_a_command_line(tmp_path: Path) -> None:
    case = header.read(write(tmp_path, GOOD))
    point = case.point(["twice=false", "order=b"])
    assert dict(point.params) == {"order": "b", "twice": False}
    assert case.point(point.arguments).id == point.id


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["order"], "'order' is not of the form key=value"),
        (["colour=red"], "no parameter 'colour'; it has order, twice"),
        (["order=c", "twice=true"], "order=c is not in the matrix of case.py; order is one of a, b"),
        (["order=a"], "say which twice: twice=true twice=false"),
    ],
)
def test_a_point_that_is_not_there_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    case = header.read(write(tmp_path, GOOD))
    with pytest.raises(ValueError, match=r".") as caught:
        case.point(words)
    assert message in str(caught.value)
