"""What separates a point from the machine: an environment by allow-list; subjects and devices with a remedy when they
are not there."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from deadlines import HANG
from fakes import CASES, compose, faux_device, point

from harness import devices, header, isolation, scratch, subjects


@pytest.fixture
def installed(tmp_path: Path) -> subjects.Installed:
    return subjects.find("stock", compose("honest", tmp_path))


def test_the_environment_is_an_allow_list(
    installed: subjects.Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("PYTHONPATH", "LD_PRELOAD", "HTTPS_PROXY", "SIMNPU_FAULT", "TORCH_LOGS", "ASCEND_RT_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "from the shell")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    made = isolation.make(point("behaviour/point/ends.py", how="well"), installed, faux_device(), tmp_path)
    assert "from the shell" not in made.values()
    assert (made["LC_ALL"], made["OPENBLAS_CORETYPE"], made["OMP_NUM_THREADS"]) == ("C.UTF-8", "Haswell", "1")
    assert made["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    assert json.loads(made["HARNESS_POINT"]) == {"how": "well"}
    inside = {name for name, value in made.items() if value.startswith(f"{tmp_path}/")}
    assert inside == {*isolation.PRIVATE, "PYTHONPATH"}


def test_threads_are_the_users_choice(
    installed: subjects.Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    made = isolation.make(point("import/lazy/none.py"), installed, faux_device(), tmp_path)
    assert made["OMP_NUM_THREADS"] == "4"


def test_sockets_fit_below_scratch_however_long_the_users_directory_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    far = tmp_path / ("far" * 30)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    with scratch.Scratch(isolation.FOLDERS) as made:
        root = made.path
        # What multiprocessing makes below TMPDIR.
        sample = root / isolation.PRIVATE["TMPDIR"] / "pymp-12345678" / "listener-12345678"
        sample.parent.mkdir()
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(sample))


def test_scratch_goes_even_if_made_read_only() -> None:
    with scratch.Scratch(isolation.FOLDERS) as made:
        root = made.path
        locked = root / "home" / "locked"
        locked.mkdir()
        (locked / "file").write_text("x")
        locked.chmod(0o500)
    assert not root.exists()


def test_a_subject_is_found_by_metadata_and_files(installed: subjects.Installed) -> None:
    assert (installed.release, installed.torch_npu, installed.torch) == ("2.99.0", "2.99.0", "2.99.0+faux")
    assert str(installed.files["torch_npu"]).endswith("honest/torch_npu/__init__.py")
    assert installed.has("torch")
    assert not installed.has("nonesuch")
    assert not installed.has("torch_npu.dynamo.torchair")


@pytest.mark.parametrize(
    ("version", "release"),
    # A post-release is a release line of its own: 2.10.0 sets the compilers up eagerly, 2.10.0.post7 lazily.
    [("2.10.0.post7", "2.10.0.post7"), ("2.13.0+gitabc", "2.13.0"), ("2.14.0rc1", "2.14.0rc1")],
)
def test_the_release_is_the_version_without_its_local_part(tmp_path: Path, version: str, release: str) -> None:
    place = compose("honest", tmp_path)
    metadata = place / "torch_npu-2.99.0.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("2.99.0", version))
    assert subjects.find("stock", place).release == release


def test_the_reference_needs_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = compose("honest", tmp_path)
    monkeypatch.setattr(subjects, "_search", list)
    with pytest.raises(subjects.Unavailable, match=r"needs the module torch_npu_lazy, which is not installed; install"):
        subjects.find("reference", place)
    (place / "torch_npu_lazy.py").write_text("")
    with pytest.raises(subjects.Unavailable, match=r"is not usable yet: .* no enable\(\); judge the wheel alone"):
        subjects.find("reference", place)
    (place / "torch_npu_lazy.py").write_text("def enable(): ...\n")
    assert subjects.find("reference", place).subject.preamble == "torch_npu_lazy"


def test_a_missing_package_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "_search", list)
    with pytest.raises(subjects.Unavailable, match=r"torch_npu is not installed for .*; run `make setup`"):
        subjects.find("stock", tmp_path)


@pytest.mark.parametrize(
    ("reported", "text"),
    [
        ({}, None),
        ({"torch": {"version": "2.99.0+faux", "file": None}}, None),
        ({"torch": {"version": "2.99.0", "file": None}}, None),
        ({"torch": {"version": "2.99.0+other", "file": None}}, "loaded torch 2.99.0+other"),
        ({"torch_npu": {"version": "2.99.0+git1", "file": None}}, None),
        ({"torch_npu": {"version": None, "file": None}}, "loaded torch_npu None"),
        ({"torch_npu_lazy": {"version": "1", "file": None}}, "torch_npu_lazy is active in this environment"),
    ],
)
def test_a_lie_about_the_version_is_seen(installed: subjects.Installed, reported: dict, text: str | None) -> None:
    found = subjects.contradiction(installed, reported)
    assert found is None if text is None else text in str(found)


def test_a_device_is_chosen_by_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(devices.DEVICES, "sim", faux_device)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    (tmp_path / "version.cfg").write_text("runtime_running_version=[8.0.RC2:8.0.RC2.alpha001]\n")
    assert devices.find(None).name == "faux"
    monkeypatch.setattr(devices, "_nodes", lambda: [Path("/dev/davinci0"), Path("/dev/davinci1")])
    found = devices.find(None)
    assert (found.name, found.count, found.detail) == ("npu", 2, "CANN 8.0.RC2")
    assert devices.find("sim").name == "faux"
    monkeypatch.delenv("ASCEND_HOME_PATH")
    monkeypatch.delenv("ASCEND_TOOLKIT_HOME", raising=False)
    assert devices.find(None).name == "faux"
    with pytest.raises(subjects.Unavailable, match=r"no CANN found; source its set_env\.sh"):
        devices.find("npu")


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        ("ops", None),
        ("kernels", "device faux has none"),
        ("devices>=2", None),
        ("devices>=3", "faux has 2"),
        ("python>=3.10", None),
        ("python>=4.0", "this is 3."),
        ("torch>=2.9", None),
        ("torch>=3", "this is 2.99.0+faux"),
        ("torchair", "ships no torchair"),
    ],
)
def test_needs(installed: subjects.Installed, need: str, reason: str | None) -> None:
    found = devices.missing(need, faux_device(), installed)
    assert found is None if reason is None else reason in str(found)


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime", "triton"])
def test_a_package_is_needed(installed: subjects.Installed, tmp_path: Path, package: str) -> None:
    assert package in header.FLAGS
    alone = dataclasses.replace(installed, search=(str(tmp_path / "site"),))
    assert devices.missing(package, faux_device(), alone) == f"the package {package} is not installed"
    (tmp_path / "site" / package).mkdir(parents=True)
    (tmp_path / "site" / package / "__init__.py").touch()
    importlib.invalidate_caches()
    assert devices.missing(package, faux_device(), alone) is None


def test_the_commands_explain_themselves(tmp_path: Path) -> None:
    def harness(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness", *arguments]
        root = Path(__file__).parent.parent.parent
        environ = {**os.environ, **env}
        return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=HANG)

    assert "python -m harness run cases/" in harness("--help").stdout
    rules = harness("rules", "import", "--cases", str(CASES))
    assert rules.stdout.endswith("3 rules, 7 points\n")
    assert harness("rules", "import/lazy", "--cases", str(CASES)).stdout.endswith("\n1 rule, 1 point\n")
    assert (rules.returncode, rules.stderr) == (0, "")
    found = harness("rules", "--area=import", "--match=EVIDENCE", "--cases", str(CASES), "--json")
    (rule,) = json.loads(found.stdout)
    assert (rule["rule"], rule["points"], rule["level"], rule["control"]) == ("import/evidence/each", 5, "must", False)
    assert rule["file"].endswith("tests/faux/cases/import/evidence/each.py")
    narrow = harness("rules", "--cases", str(CASES), COLUMNS="60").stdout.splitlines()
    assert max(len(line) for line in narrow if line.startswith(" ")) <= 60
    for words in (["--subject", "stock", "how=nonesuch"], ["how=nonesuch", "--subject", "stock"]):
        anywhere = harness("run", str(CASES / "behaviour/point/ends.py"), *words)
        assert anywhere.returncode == 2
        assert "how=nonesuch is not in the matrix" in anywhere.stderr
    unknown = harness("rules", "imports", "--cases", str(CASES))
    assert (unknown.returncode, unknown.stderr[:42]) == (2, "error: no rule starts with 'imports'; near")
    for words, text in (
        (["run", "cases/nonesuch.py"], "error: there is no file cases/nonesuch.py"),
        (["run", str(CASES / "behaviour/point/ends.py")], "say which how: how=well how=fails"),
        (
            ["run", str(CASES / "behaviour/point/ends.py"), "--contrl=1", "how=well"],
            "unrecognized arguments: --contrl=1",
        ),
        (["rules", "--cases", str(tmp_path / "none")], "error: there is no directory"),
    ):
        done = harness(*words)
        assert done.returncode == 2
        assert text in done.stderr


def test_every_faux_case_has_a_good_header() -> None:
    assert header.read_all(CASES)[1] == []


@pytest.mark.parametrize("need", ["kernels", "triton"])
def test_a_device_that_cannot_have_kernels_says_why(installed: subjects.Installed, need: str) -> None:
    why = "MLIR 19 is not installed; remedy: apt-get install it"
    lacking = dataclasses.replace(faux_device(), lacks={"kernels": why, "triton": why})
    assert devices.missing(need, lacking, installed) == why


def test_the_simulator_has_kernels_where_its_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import simnpu
    from simnpu.toolchain import surroundings

    monkeypatch.setattr(simnpu, "build_id", lambda: "some build")
    for why in ("triton-ascend is not installed; run `make setup`", None):
        monkeypatch.setattr(surroundings, "missing", lambda why=why: why)
        device = devices.find("sim")
        assert ("kernels" in device.abilities) == (why is None)
        assert device.lacks == ({"kernels": why, "triton": why} if why else {})


def test_search_paths_of_the_child_stay_behind_the_simulators(monkeypatch: pytest.MonkeyPatch) -> None:
    import simnpu

    def found(base: dict[str, str]) -> dict[str, str]:
        return base | {"PATH": "/sim/bin", "LD_LIBRARY_PATH": "/sim/lib"}

    monkeypatch.setattr(simnpu, "build_id", lambda: "some build")
    monkeypatch.setattr(simnpu, "environ", found)
    made = devices.find("sim").environ({"PATH": "/usr/bin", "HOME": "/home"})
    assert made == {"PATH": "/sim/bin:/usr/bin", "LD_LIBRARY_PATH": "/sim/lib", "HOME": "/home", "PYTHONPATH": ""}
    assert devices.find("sim").environ({"PYTHONPATH": "/a"})["PYTHONPATH"] == "/a"


@pytest.mark.parametrize("arguments", [["rules"], ["rules", "--json"]])
def test_a_reader_that_has_left_is_no_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments, "--cases", str(CASES)],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupted_command_says_so_and_ends_by_the_signal() -> None:
    code = (
        "import signal; from harness import __main__ as commands\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "commands.devices.find = lambda *_, **__: signal.raise_signal(signal.SIGINT)\n"
        "commands.subjects.find = lambda *_: None\n"
        f"commands.main(['run', {str(CASES / 'behaviour/point/ends.py')!r}, 'how=well'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=HANG)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "interrupted\n")
