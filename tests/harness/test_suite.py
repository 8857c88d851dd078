"""What cases share is imported as `cases._name` in every interpreter of a case, and from beside the cases only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fakes import REPOSITORY, Run, Write, by_hand

SHARED = "import sys\n\nword = 'shared'\nwhere = __file__\nloaded = sorted(sys.modules)\n"
ASK = "from cases import _shared\nprobe.equal(_shared.word, 'shared', 'the word')\nprint(_shared.where)\n"
SPAWN = """
import multiprocessing, pathlib
from harness import probe

pathlib.Path("worker.py").write_text("from harness import probe\\nfrom cases._shared import word as tell")
if __name__ == "__main__":
    import sys
    sys.path.insert(0, "")
    import worker
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(str, [worker.tell]))
"""


@pytest.fixture(autouse=True)
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "_shared.py"
    path.write_text(SHARED)
    return path


def test_under_the_runner_and_in_what_a_case_starts(run: Run, shared: Path) -> None:
    nested = f"from harness import probe\n{ASK}"
    result = run(f"{ASK}print(probe.python({nested!r}).stdout, probe.python({SPAWN!r}).stdout)\n")
    assert result["outcome"] == "pass", result
    assert result["stdout"].split() == [str(shared), str(shared), "shared"]


def test_by_hand(write: Write, shared: Path) -> None:
    done = by_hand(write(ASK), "order=a")
    assert done.returncode == 0, done.stderr
    assert str(shared) in done.stdout


def test_nobody_else_answers_for_the_name(run: Run, tmp_path: Path, shared: Path) -> None:
    other = tmp_path / "honest/cases"  # the judged package's directory stands first on sys.path
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "_shared.py").write_text("word = 'another'\n")
    result = run(f"import sys\nprint(sys.path[0] == {str(other.parent)!r})\n{ASK}")
    assert result["outcome"] == "pass", result
    assert result["stdout"].split() == ["True", str(shared)]


def test_nothing_is_loaded_until_a_case_asks(run: Run) -> None:
    result = run(
        """
        probe.modules.absent("cases._shared")
        from cases import _shared
        probe.modules.present("cases._shared")
        probe.check("torch" not in _shared.loaded, "nothing else is loaded for it")
        """
    )
    assert result["outcome"] == "pass", result


def test_the_names_of_the_subject_load_nothing_and_say_which_release_has_them(run: Run, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "cases/_subject.py", tmp_path)
    result = run(
        """
        from cases import _subject as subject
        probe.modules.absent("torch", "torch_npu")
        with probe.raises(AttributeError, "lacks.*_lazy_dynamo_setup.*2.7.1.post11.*2.14.0"):
            subject.dynamo_setup
        with probe.raises(AttributeError, "'cases._subject' has no attribute 'no_such_name'"):
            subject.no_such_name
        """
    )
    assert result["outcome"] == "pass", result
