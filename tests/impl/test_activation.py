"""What importing torch_npu_lazy does, and leaves alone, by what is installed beside it; and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deadlines import HANG
from torch_npu_lazy import activation

IMPL = Path(__file__).parents[2] / "impl"

SAFE_PATH = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no -P")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with packages torch and torch_npu that are nothing but their versions."""
    for package, version in (("torch", "2.13.0+cpu"), ("torch_npu", "2.13.0")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"from {package}.version import __version__\n")
        (tmp_path / package / "version.py").write_text(f"from typing import Optional\n__version__ = {version!r}\n")
    return tmp_path


@pytest.fixture
def run(place: Path) -> Run:
    def run(*arguments: str, lazy: str | None = None) -> subprocess.CompletedProcess[str]:
        variables = {"PYTHONPATH": f"{place}{os.pathsep}{IMPL}", "PATH": os.environ["PATH"]}
        if lazy is not None:
            variables["TORCH_NPU_LAZY"] = lazy
        # -S: whatever is installed here must not be found, nor an enabled environment be in force.
        command = [sys.executable, "-S", "-s", *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=HANG)

    return run


def _state(run: Run, program: str, **more: str) -> tuple[dict[str, object], str]:
    ended = run("-c", f"{program}\nimport json\nprint(json.dumps(torch_npu_lazy.status()))", **more)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), ended.stderr


def test_the_profile_is_chosen_by_the_packages_own_files(run: Run) -> None:
    state, said = _state(run, "import torch_npu_lazy, torch_npu")
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"
    assert (state["refusal"], said) == (None, "")


@pytest.mark.parametrize("program", ["import torch", "import importlib.util; importlib.util.find_spec('torch_npu')"])
def test_nothing_is_chosen_before_torch_npu_is_imported(run: Run, program: str) -> None:
    state, _ = _state(run, f"import torch_npu_lazy; {program}")
    assert (state["profile"], state["refusal"]) == (None, None)


@pytest.mark.parametrize(
    ("package", "version", "line"),
    [
        (
            "torch_npu",
            "2.99.0",
            "torch_npu 2.99.0 with torch 2.13.0 is not supported, and is left as it is; supported: ",
        ),
        (
            "torch",
            "2.12.1+cpu",
            "torch_npu 2.13.0 with torch 2.12.1 is not supported, and is left as it is; supported: ",
        ),
        ("torch_npu", None, "the version of torch_npu cannot be read from its version.py"),
        ("torch", None, "the version of torch cannot be read from its version.py"),
        ("torch_npu", "\xe9", "the version of torch_npu cannot be read from its version.py"),
        ("torch", "\xe9", "the version of torch cannot be read from its version.py"),
    ],
)
def test_another_pair_is_refused_in_one_line(
    run: Run, place: Path, package: str, version: str | None, line: str
) -> None:
    (place / package / "__init__.py").write_text("")
    (place / package / "version.py").write_text(f"__version__ = {version!r}\n", encoding="latin-1")
    state, said = _state(
        run,
        "import torch_npu_lazy, torch_npu, sys\n"
        "assert not [name for name in sys.modules if name.startswith('torch_npu_lazy.overlay')]\n"
        "assert type(torch_npu.__loader__).__name__ == 'SourceFileLoader'",
    )
    assert state["profile"] is None
    assert said.startswith(f"torch_npu_lazy: {line}")
    assert said.count("\n") == 1
    assert str(state["refusal"]) in said


STAND_INS = {
    "mock": "mock.MagicMock()",
    "mocked_spec": "mock.MagicMock(__spec__=mock.MagicMock(), __file__=mock.MagicMock())",
    "module": "types.ModuleType('torch_npu')",
    "empty_spec": "mock.MagicMock(__spec__=importlib.machinery.ModuleSpec('torch_npu', None))",
    "none": "None",
    "object": "object()",
}


@pytest.mark.parametrize("name", ["torch_npu", "torch", "torch._dynamo"])
@pytest.mark.parametrize("stand_in", STAND_INS)
def test_stand_ins_in_sys_modules_disturb_no_lookup(run: Run, name: str, stand_in: str) -> None:
    """As programs put them there for tests on a CPU. Afterwards the real one can be imported."""
    state, said = _state(
        run,
        f"""
import importlib.machinery, importlib.metadata, importlib.util, sys, types
from unittest import mock
import torch_npu_lazy
with mock.patch.dict(sys.modules, {{{name!r}: {STAND_INS[stand_in]}}}):
    from torch_npu_lazy.core.trigger import when_imported
    when_imported("torch._dynamo", lambda module: None)
    if {name!r} == "torch_npu":
        importlib.metadata.entry_points()
        next(iter(importlib.metadata.distributions(name="torch_npu_lazy")), None)
        import torch
    importlib.util.find_spec("colorsys")
    import wave
import torch_npu
""",
    )
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"
    assert said == ""


def test_finders_that_raise_leave_the_metadata_readable(run: Run) -> None:
    state, said = _state(
        run,
        """
import importlib.metadata, sys, torch_npu_lazy
class Bad:
    def find_spec(self, name, path=None, target=None):
        if name == "torch_npu":
            raise RuntimeError("odd")
bad = Bad()
sys.meta_path.insert(2, bad)
importlib.metadata.entry_points()
sys.meta_path.remove(bad)
import torch_npu
""",
    )
    assert (state["profile"], said) == ("torch_npu 2.13.0 with torch 2.13.0", "")


def test_what_is_not_there_when_metadata_are_read_may_still_come(run: Run, tmp_path: Path) -> None:
    state, _ = _state(
        run,
        f"""
import importlib.metadata, sys, torch_npu_lazy
sys.path.remove({str(tmp_path)!r})
importlib.metadata.entry_points()
sys.path.append({str(tmp_path)!r})
import torch_npu
""",
    )
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"


def test_too_late_is_said_in_one_line(run: Run) -> None:
    state, said = _state(run, "import torch_npu, torch_npu_lazy")
    assert state["profile"] is None
    assert said == (
        "torch_npu_lazy: torch_npu has been imported before; import torch_npu_lazy first, or enable it for the "
        "environment\n"
    )


@pytest.mark.parametrize("first", ["torch_npu_lazy", "torch_npu_lazy, torch_npu"])
def test_a_reload_changes_nothing(run: Run, first: str) -> None:
    program = f"import {first}\nimport importlib; importlib.reload(torch_npu_lazy)\nimport torch_npu"
    state, said = _state(run, program)
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"
    assert (state["refusal"], said) == (None, "")


def test_no_lookup_imports_anything(run: Run) -> None:
    """It holds the lock of all lookups. A thread that is importing what it wants may be waiting for that lock."""
    state, _ = _state(
        run,
        """
import _imp, sys, torch_npu_lazy
inside = []
sys.addaudithook(lambda event, args: event == "import" and _imp.lock_held() and inside.append(args[0]))
import torch_npu
assert inside == [], inside
""",
    )
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"


def test_no_thread_imports_torch_npu_before_the_profile_is_in_force(run: Run) -> None:
    """Another may be choosing it: to read the metadata of all packages, for instance."""
    state, said = _state(
        run,
        """
import threading, torch_npu_lazy
from torch_npu_lazy.wheel import bootstrap
install, begun, go_on = bootstrap._install, threading.Event(), threading.Event()
def held(chosen):
    bootstrap._install = install
    begun.set()
    assert go_on.wait(20)
    install(chosen)
bootstrap._install = held
other = threading.Thread(target=bootstrap.look)
other.start()
assert begun.wait(20)
import torch_npu
in_force = set(bootstrap.finder.rewrites)
go_on.set()
other.join()
assert {"torch_npu.npu", "torch_npu.profiler"} <= in_force
""",
    )
    assert state["profile"] == "torch_npu 2.13.0 with torch 2.13.0"
    assert said == ""


def test_what_a_wheel_does_not_announce_is_not_said_to_be_in_any_directory(run: Run, place: Path) -> None:
    for package in ("torch", "torch_npu"):
        (place / package / "version.py").write_text("__version__ = '2.10.0'\n")
    ended = run(
        "-c",
        "import torch_npu_lazy, sys\nfrom importlib.metadata import distributions, entry_points\n"
        "print(len(entry_points(group='torch_dynamo_backends')), len(list(distributions(path=sys.path))))",
    )
    assert ended.stdout == "3 0\n", ended.stderr


def test_the_switch_leaves_everything_alone(run: Run) -> None:
    state, said = _state(
        run,
        "import sys\npath = list(sys.meta_path)\nimport torch_npu_lazy, torch_npu\nassert sys.meta_path == path",
        lazy="0",
    )
    assert (state["profile"], said) == (None, "")
    assert state["refusal"] == "switched off by TORCH_NPU_LAZY=0"


def test_activation_loads_little_and_nothing_of_torch(run: Run) -> None:
    ended = run(
        "-c",
        "import sys, os\nbefore = set(sys.modules)\nimport torch_npu_lazy\n"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('torch_npu_lazy')))",
    )
    assert ended.stdout == "['__future__']\n", ended.stderr


def test_enabling_is_one_file_that_python_reads_at_every_start(run: Run, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    program = f"import site, sys\nsite.addsitedir({str(site)!r})\nprint('torch_npu_lazy' in sys.modules)"
    assert run("-c", program).stdout == "False\n"
    assert activation.enable(str(site)) == str(site / "torch_npu_lazy.pth")
    assert activation.status(str(site))["enabled"] is True
    assert run("-c", program).stdout == "True\n"
    assert activation.disable(str(site)) == str(site / "torch_npu_lazy.pth")
    assert activation.status(str(site))["enabled"] is False
    assert list(site.iterdir()) == []
    assert activation.disable(str(site)) is None


def test_an_enabled_environment_survives_the_packages_removal(tmp_path: Path) -> None:
    activation.enable(str(tmp_path))
    program = f"import site\nsite.addsitedir({str(tmp_path)!r})"
    command = [sys.executable, "-S", "-s", "-I", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_an_environment_that_cannot_be_changed_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(activation.Unwritable, match=r"cannot change .*/missing/torch_npu_lazy\.pth: No such file"):
        activation.enable(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("lazy", "release"),
    [
        (None, "torch_npu 2.13.0 with torch 2.13.0"),
        ("0", "switched off by TORCH_NPU_LAZY=0"),
        ("False", "switched off by TORCH_NPU_LAZY=False"),
    ],
)
def test_the_command_line_tells_the_status(run: Run, lazy: str | None, release: str) -> None:
    ended = run("-m", "torch_npu_lazy", "status", lazy=lazy)
    assert ended.returncode == 0, ended.stderr
    environment_line, release_line, launch_line = ended.stdout.splitlines()
    assert "not enabled; a program must import torch_npu_lazy" in environment_line
    assert release_line == f"release      {release}"
    assert launch_line == "fast launch  off; TORCHINDUCTOR_NPU_FAST_LAUNCH=1 switches it on"


def test_the_command_line_asks_for_a_command(run: Run) -> None:
    ended = run("-m", "torch_npu_lazy")
    assert ended.returncode == 2
    assert "COMMAND" in ended.stderr


PROGRAM = """\
import sys
from torch_npu_lazy.core.trigger import when_imported
def set_up(module):
    if "fail" in sys.argv:
        raise RuntimeError("no toolchain")
when_imported("colorsys", set_up)
when_imported("quopri", set_up)
import colorsys
print(__name__, sys.argv[1:])
"""


@pytest.mark.parametrize("form", ["file", "code", "module"])
def test_explain_runs_a_program_as_python_does_and_tells_what_ran(run: Run, place: Path, form: str) -> None:
    (place / "program.py").write_text(PROGRAM)
    start = {"file": [str(place / "program.py")], "code": ["-c", PROGRAM], "module": ["-m", "program"]}[form]
    ended = run("-m", "torch_npu_lazy", "explain", "--json", *start, "--epochs", "1")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "__main__ ['--epochs', '1']\n"
    told = json.loads(ended.stderr)
    (one,) = told["ran"]
    assert (one["what"], one["result"]) == ("__main__.set_up on import of colorsys", "done")
    assert (one["by"], one["from"]) == ("__main__:8", "__main__:8")
    assert one["took"] >= 0
    assert [entry["what"] for entry in told["deferred"]] == ["__main__.set_up on import of quopri"]
    assert told["kept"] == []


@pytest.mark.parametrize("form", ["file", "code", "module"])
@pytest.mark.parametrize("safe", [False, pytest.param(True, marks=SAFE_PATH)])
def test_explain_gives_a_program_the_path_and_the_main_module_that_python_does(
    run: Run, place: Path, form: str, safe: bool
) -> None:
    program = "import pickle, sys\nclass Own: pass\nprint(type(pickle.loads(pickle.dumps(Own()))) is Own, sys.path)\n"
    (place / "program.py").write_text(program)
    start = {"file": [str(place / "program.py")], "code": ["-c", program], "module": ["-m", "program"]}[form]
    options = ["-P"] if safe else []
    plain, explained = run(*options, *start), run(*options, "-m", "torch_npu_lazy", "explain", *start)
    assert plain.stdout.startswith("True")
    assert explained.stdout == plain.stdout, explained.stderr


def test_explain_tells_kept_errors_and_who_caused_them(run: Run, place: Path) -> None:
    (place / "program.py").write_text(PROGRAM)
    ended = run("-m", "torch_npu_lazy", "explain", str(place / "program.py"), "fail")
    assert ended.returncode == 0
    has_run, _, rest = ended.stderr.partition("Still deferred")
    assert "FAILED: RuntimeError: no toolchain" in has_run
    _, _, kept = rest.partition("Kept errors")
    assert "__main__.set_up on import of colorsys: RuntimeError: no toolchain   by __main__:8" in kept


def test_explain_tells_also_when_the_program_fails(run: Run, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    program = f"{PROGRAM}\nraise SystemExit(3)"
    ended = run("-m", "torch_npu_lazy", "explain", "--output", str(told), "-c", program)
    assert ended.returncode == 3
    assert ended.stderr == ""
    assert "set_up on import of colorsys" in told.read_text().partition("Still deferred")[0]


def test_explain_tells_before_the_program_that_it_cannot_write(run: Run, tmp_path: Path) -> None:
    ended = run("-m", "torch_npu_lazy", "explain", "--output", str(tmp_path / "none/told"), "-c", "print('ran')")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"cannot write {tmp_path}/none/told: No such file or directory; name another file" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.stdout.close()", 0),
        ("import sys; sys.stdout = None; sys.stderr.close()", 0),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("import os; os.fork() == 0 and os._exit(0); os.wait(); raise SystemExit(3)", 3),
    ],
)
def test_explain_tells_once_however_a_program_ends(run: Run, program: str, code: int) -> None:
    ended = run("-m", "torch_npu_lazy", "explain", "-c", program)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.count("Still deferred") == 1
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("program", "code"), [("print('ran')", 2), ("raise SystemExit(3)", 3)])
def test_explain_on_a_full_disk_says_so_and_hides_no_failure(run: Run, program: str, code: int) -> None:
    ended = run("-m", "torch_npu_lazy", "explain", "--output", "/dev/full", "-c", program)
    assert ended.returncode == code
    assert ended.stderr == "torch_npu_lazy: the explanation cannot be written: No space left on device\n"


@pytest.mark.parametrize("option", ["-c", "-m"])
def test_explain_needs_what_to_run(run: Run, option: str) -> None:
    ended = run("-m", "torch_npu_lazy", "explain", option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"torch_npu_lazy: {option} needs what to run" in ended.stderr


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_enable_has_not_written_is_left_alone(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "torch_npu_lazy.pth"
    if kind == "file":
        file.write_text("/somewhere/else\n")
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(tmp_path / "nowhere")
    assert activation.status(str(tmp_path))["enabled"] is False
    for change in (activation.enable, activation.disable):
        with pytest.raises(activation.Unwritable, match="was not written by `enable`"):
            change(str(tmp_path))
    assert file.is_symlink() or file.exists()


def test_the_way_out_of_a_broken_package_works_without_it(run: Run, tmp_path: Path) -> None:
    told = run("-m", "torch_npu_lazy", "disable", "--help").stdout
    (line,) = (line.strip() for line in told.splitlines() if "os.remove" in line)
    code = line.partition('-c "')[2].removesuffix('"').replace("sysconfig.get_path('purelib')", repr(str(tmp_path)))
    activation.enable(str(tmp_path))
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    assert not (tmp_path / "torch_npu_lazy.pth").exists()
    page = (Path(__file__).parents[2] / "docs/torch_npu_lazy.md").read_text()
    assert line.removeprefix("python ") in page


def test_explain_names_a_missing_file(run: Run) -> None:
    ended = run("-m", "torch_npu_lazy", "explain", "nonesuch.py")
    assert ended.returncode == 2
    assert "no file nonesuch.py; name a script, or use -m MODULE or -c CODE" in ended.stderr


@pytest.mark.parametrize("order", ["import torch", "import torch_npu", "import torch, torch_npu"])
@pytest.mark.parametrize("name", ["npugraph", "nobodys"])
def test_names_of_logs_are_there_when_torch_reads_the_variable(run: Run, place: Path, order: str, name: str) -> None:
    logs = place / "torch/_logging"
    logs.mkdir()
    (logs / "__init__.py").write_text("from ._internal import init")
    (logs / "_internal.py").write_text(
        "names = {}\n"
        "def register_log(alias, name): names[alias] = name\n"
        f"def init():\n    if {name!r} not in names: raise ValueError(f'Invalid: {{sorted(names)}}')\n"
    )
    (place / "torch/__init__.py").write_text("import torch._logging\ntorch._logging.init()\n")
    (place / "torch_npu/__init__.py").write_text("import torch\n")
    (place / "torch_npu/_logging").mkdir()
    (place / "torch_npu/_logging/_internal.py").write_text(
        "import torch._logging._internal\nfrom torch_npu import _C\n"
        "def _add():\n    torch._logging._internal.register_log('npugraph', 'torch_npu.npugraph')\n"
    )
    program = f"import os; os.environ['TORCH_LOGS'] = {name!r}; import torch_npu_lazy; {order}"
    ended = run("-c", program)
    if name == "npugraph":
        assert ended.returncode == 0, ended.stderr
    else:
        assert ended.stderr.splitlines()[-1] == "ValueError: Invalid: ['npugraph']"


def test_no_file_of_the_wheels_is_read_where_no_logs_are_asked_for(run: Run, place: Path) -> None:
    (place / "torch/_logging").mkdir()
    (place / "torch/_logging/_internal.py").touch()
    state, _ = _state(run, "import torch_npu_lazy, torch._logging._internal")
    assert (state["profile"], state["refusal"]) == (None, None)
