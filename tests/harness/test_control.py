"""What plain torch does at the same point decides who is at fault, and a control that is none decides nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import Judge, Suite, by_hand

from harness import header, process
from harness.__main__ import main

CASE = '''"""It works."""
# /// script
# [tool.conformance]
# level = "must"
# matrix.subject = ["passes", "fails", "crashes", "hangs"]
# matrix.plain = ["passes", "fails", "hangs", "imports", "nests"]
# timeout = 4
# control = { subject = ["passes", "fails", "crashes", "hangs"] }
# ///
import os, signal, threading
from harness import probe

if not probe.control:
    import torch_npu
import torch

how = probe.param("plain" if probe.control else "subject")
if how == "imports":
    import torch_npu
elif how == "nests":
    probe.python("try: import torch_npu\\nexcept ImportError: pass")
    how = "fails"
elif how == "hangs":
    threading.Event().wait()
elif how == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
probe.check(how != "fails", "it works", control=probe.control, autoload=os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"])
'''


@pytest.fixture
def case(tmp_path: Path) -> header.Case:
    path = tmp_path / "added/case/control.py"
    path.parent.mkdir(parents=True)
    path.write_text(CASE)
    return header.read(path)


@pytest.mark.parametrize(
    ("point", "ends", "text"),
    [
        (("fails", "fails"), ("upstream", "fail"), "it works"),
        (("fails", "passes"), ("fail", "pass"), None),
        (("crashes", "fails"), ("crash", "fail"), "it works"),
        (("fails", "hangs"), ("fail", "timeout"), "still running after 4 s"),
        (("hangs", "hangs"), ("upstream", "timeout"), "still running after 4 s"),
        (("fails", "imports"), ("fail", "harness-error"), "the case imports torch_npu in its control as well"),
        (("fails", "nests"), ("fail", "harness-error"), "the case imports torch_npu in its control as well"),
    ],
)
def test_the_control_decides_who_is_at_fault(
    judge: Judge, case: header.Case, point: tuple[str, str], ends: tuple[str, str], text: str | None
) -> None:
    subject, plain = point
    result = judge("honest", "", case=case, subject=subject, plain=plain)
    assert (result["outcome"], result["control"]["outcome"]) == ends, result
    asked = result["control"]
    assert asked["reproduce"].count("--control") == 1
    told = asked["reason"] or (asked["failure"] and asked["failure"]["message"])
    assert told is text if text is None else text in told
    if ends[1] == "fail":
        assert asked["failure"]["found"] == "control = True\nautoload = '0'"
    assert result["failure"] is not None


@pytest.mark.parametrize(("subject", "controlled"), [("passes", True), ("fails", False)])
def test_a_control_is_run_only_on_failure_and_only_where_there_is_one(
    judge: Judge, case: header.Case, monkeypatch: pytest.MonkeyPatch, subject: str, controlled: bool
) -> None:
    started: list[Any] = []
    real = process.run
    monkeypatch.setattr(process, "run", lambda *args, **options: started.append(args) or real(*args, **options))
    if not controlled:
        case.path.write_text(CASE.replace('"fails", "crashes", "hangs"] }\n# ///', '"crashes"] }\n# ///'))
        case = header.read(case.path)
    result = judge("honest", "", case=case, subject=subject, plain="fails")
    assert (result["outcome"], result["control"]) == ({"passes": "pass", "fails": "fail"}[subject], None)
    assert len(started) == 1


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ("3", "control is neither true nor a selection"),
        ('{ plane = "fails" }', "control selects plane = 'fails', which is not in the matrix"),
        ('{ plain = ["fails", "flies"] }', "control selects plain = ['fails', 'flies'], which is not in the matrix"),
    ],
)
def test_a_wrong_selection_is_refused(case: header.Case, control: str, message: str) -> None:
    lines = [f"# control = {control}" if line.startswith("# control") else line for line in CASE.splitlines()]
    case.path.write_text("\n".join(lines))
    with pytest.raises(header.HeaderError, match=r"control\.py:8: ") as caught:
        header.read(case.path)
    assert message in str(caught.value)


def test_all_points_or_none(case: header.Case) -> None:
    for value, count in (("true", 20), ("false", 0)):
        lines = [f"# control = {value}" if line.startswith("# control") else line for line in CASE.splitlines()]
        case.path.write_text("\n".join(lines))
        assert sum(point.controlled for point in header.read(case.path).points()) == count


def test_a_control_by_hand(case: header.Case, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent.parent.parent)])
    passes = by_hand(case.path, "--control", "subject=fails", "plain=passes", PYTHONPATH=paths)
    assert passes.returncode == 0, passes
    imports = by_hand(case.path, "subject=fails", "plain=imports", "--control", PYTHONPATH=paths)
    assert imports.returncode == 1
    assert "torch_npu is out of the way: import it only `if not probe.control`" in imports.stderr


def test_a_control_by_hand_with_torch_npu_loaded_beforehand_is_refused(case: header.Case, tmp_path: Path) -> None:
    # As torch itself loads a backend, where nobody told it not to.
    (tmp_path / "torch.py").write_text("import torch_npu")
    (tmp_path / "torch_npu.py").write_text("")
    case.path.write_text(case.path.read_text().replace("import os,", "import torch, os,"))
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent.parent.parent)])
    done = by_hand(case.path, "--control", "subject=fails", "plain=passes", PYTHONPATH=paths)
    assert done.returncode == 1
    assert "Set TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stderr


KNOWN = """
[[expect]]
rule = "added/case/control"
points = { subject = "fails" }
outcome = "fail"
reason = "it is broken"
"""


def added(suite: Callable[..., Suite], plain: str) -> Suite:
    honest = suite()
    folder = honest.path / "cases/added/case"
    folder.mkdir(parents=True)
    (folder / "control.py").write_text(
        CASE.replace('subject = ["passes", "fails", "crashes", "hangs"]\n', 'subject = ["fails"]\n')
        .replace('"passes", "fails", "hangs", "imports", "nests"', f'"{plain}"')
        .replace('{ subject = ["passes", "fails", "crashes", "hangs"] }', "true")
    )
    return honest


def test_upstream_is_listed_and_no_failure(suite: Callable[..., Suite]) -> None:
    honest = added(suite, "fails")
    result = honest.run("cases/added", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*UPSTREAM*",
            "*Upstream: fails with plain PyTorch as well*",
            "*subject=fails, plain=fails: upstream: fail",
            "*control: plain PyTorch ends with fail: it works",
            "*$ python -m harness run cases/added/case/control.py subject=fails plain=fails * --control *",
            "1 rule, 1 upstream",
            "1 point: 1 upstream",
            "*1 upstream in *",
        ]
    )
    assert honest.outcomes() == {"added/case/control[subject=fails,plain=fails]": "upstream"}
    junit = (honest.path / "build/conformance/junit.xml").read_text()
    assert "upstream: without torch_npu as well, it works" in junit


def test_certification_allows_upstream(suite: Callable[..., Suite]) -> None:
    honest = added(suite, "fails")
    for folder in (honest.path / "cases").iterdir():
        if folder.name != "added":
            folder.rename(honest.path / folder.name)
    result = honest.run("cases", "--certify")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 point: 1 upstream"])


def test_an_expectation_that_blames_the_subject_for_it_is_stale(suite: Callable[..., Suite]) -> None:
    honest = added(suite, "fails")
    honest.expect(KNOWN)
    result = honest.run("cases/added")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["xpass: plain PyTorch fails likewise; delete expectations/stock/2.99.0.toml:1, which expects fail"]
    )


def test_an_expected_failure_stays_one_when_the_control_passes(suite: Callable[..., Suite]) -> None:
    honest = added(suite, "passes")
    honest.expect(KNOWN)
    honest.run("cases/added").assert_outcomes(xfailed=1)


def test_a_control_alone(suite: Callable[..., Suite], capfd: pytest.CaptureFixture[str]) -> None:
    added(suite, "passes")
    words = ["run", "cases/added/case/control.py", "--device=faux", "--subject-path=fakes/honest"]
    assert main([*words, "--control"]) == 0
    assert "pass: 1 checks" in capfd.readouterr().out
    assert main(words) == 1
    told = capfd.readouterr().out
    assert "control:   plain PyTorch passes, so torch_npu is at fault" in told
    assert told.rstrip().splitlines()[-1].count("--control") == 1
    assert main(["run", "cases/import/lazy/none.py", "--control", "--device=faux", "--subject-path=fakes/honest"]) == 2
    assert "this point has no control" in capfd.readouterr().err
