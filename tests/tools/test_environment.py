"""Setting up: the CPU build of torch is found wherever it is offered, and a CUDA build is refused; triton-ascend comes
with it, and the system's packages that its kernels need are installed or named.

Real pip installs tiny stand-in wheels into a real environment; apt-get and dpkg-query are stand-ins on PATH.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from deadlines import HANG

ROOT = Path(__file__).resolve().parents[2]


def wheel(directory: Path, name: str, version: str, files: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in files))


def index(directory: Path) -> str:
    """Turns a directory of wheels into a package index of its own, and returns its URL."""
    for file in list(directory.glob("*.whl")):
        project = directory / "simple" / file.name.split("-")[0].replace("_", "-")
        project.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, project)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        with (project / "index.html").open("a", encoding="utf-8") as page:
            page.write(f'<a href="{file.name}#sha256={digest}">{file.name}</a>\n')
    (directory / "simple").mkdir(parents=True, exist_ok=True)
    return (directory / "simple").as_uri()


class Machine:
    """A checkout of what the setup reads, with an environment of its own and a pip that knows local folders alone."""

    def __init__(self, root: Path, environment: Path) -> None:
        self.root = root
        (root / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "environment.py", root / "tools")
        self.offered = root / "offered"
        self.cpu_index = root / "cpu-index"
        for directory in (self.offered, self.cpu_index):
            wheel(directory, "unrelated", "1", {"unrelated.py": ""})
        wheel(self.offered, "torch_npu", "9.9.0", {"torch_npu/__init__.py": ""})
        wheel(self.offered, "triton_ascend", "1.0", {"triton/__init__.py": "", "triton/ascend.py": ""})
        # No program of this machine's: its apt-get would install.
        self.programs = root / "programs"
        self.programs.mkdir()
        shutil.copytree(environment, root / "env", symlinks=True)
        self.python = root / "env" / "bin" / "python"
        # The tool reads TOML with a package of the project's on Python 3.10.
        if sys.version_info < (3, 11):
            tomli = importlib.metadata.distribution("tomli").locate_file("tomli")
            purelib = next((root / "env" / "lib").glob("python*/site-packages"))
            shutil.copytree(str(tomli), purelib / "tomli")
        self.releases(cpu_index=index(self.cpu_index))

    def releases(self, cpu_index: str) -> None:
        self.root.joinpath("releases.toml").write_text(
            f'default = "9.9.0"\ncpu_index = "{cpu_index}"\n[release."9.9.0"]\n'
            'torch = "9.9.0"\ntorch_npu = "9.9.0"\ntriton_ascend = "1.0"\ninit = "lazy"\n',
            encoding="utf-8",
        )

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs the environment's Python where pip knows the offered wheels only, whatever this machine's pip knows."""
        env = {
            "PATH": str(self.programs),
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": index(self.offered),
            "PIP_NO_CACHE_DIR": "1",
        }
        command = [self.python, *arguments]
        return subprocess.run(
            command, cwd=self.root, env=env, text=True, capture_output=True, timeout=HANG, check=False
        )

    def setup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("tools/environment.py", *arguments)

    def installed(self, name: str) -> str | None:
        found = list((self.root / "env" / "lib").glob(f"python*/site-packages/{name}-*.dist-info"))
        return found[0].name.removeprefix(f"{name}-").removesuffix(".dist-info") if found else None

    def torch_installed(self) -> str | None:
        return self.installed("torch")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing but pip, to copy: making one takes seconds, and a copy finds itself."""
    place = tmp_path_factory.mktemp("environment") / "env"
    venv.create(place, with_pip=True)
    return place


@pytest.fixture
def machine(tmp_path: Path, environment: Path) -> Machine:
    return Machine(tmp_path, environment)


CPU = {"torch/__init__.py": "", "torch/version.py": "from typing import Optional\ncuda: Optional[str] = None\n"}
CUDA = {"torch/__init__.py": "", "torch/version.py": "from typing import Optional\ncuda: Optional[str] = '13.0'\n"}


def test_cpu_build_of_pips_own_configuration_wins_over_a_cuda_build_and_over_the_cpu_index(machine: Machine) -> None:
    wheel(machine.offered, "torch", "9.9.0", CUDA)
    wheel(machine.offered, "torch", "9.9.0+cpu", CPU)
    wheel(machine.cpu_index, "torch", "9.9.0+cpu", CPU)
    machine.releases(index(machine.cpu_index))
    first = machine.setup()
    assert first.returncode == 0, first.stderr
    assert "torch==9.9.0+cpu: from pip's own configuration (file://" in first.stdout
    assert machine.torch_installed() == "9.9.0+cpu"
    again = machine.setup()
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[:3] == [
        "torch 9.9.0+cpu: already there",
        "torch_npu 9.9.0: already there",
        "triton-ascend 1.0: already there",
    ]


def test_cpu_index_is_asked_when_pips_own_configuration_offers_cuda_builds_only(machine: Machine) -> None:
    wheel(machine.offered, "torch", "9.9.0", CUDA)
    wheel(machine.cpu_index, "torch", "9.9.0+cpu", CPU)
    machine.releases(index(machine.cpu_index))
    result = machine.setup()
    assert result.returncode == 0, result.stderr
    assert "pip's own configuration offers none, taking it from file://" in result.stdout
    assert machine.torch_installed() == "9.9.0+cpu"


def test_no_cpu_build_anywhere_is_said_with_a_remedy_and_installs_nothing(machine: Machine) -> None:
    wheel(machine.offered, "torch", "9.9.0", CUDA)
    result = machine.setup()
    assert result.returncode == 2
    assert "torch==9.9.0+cpu is offered neither by pip's configuration nor by file://" in result.stderr
    assert "make setup WHEELS=DIR" in result.stderr
    assert machine.torch_installed() is None


def test_own_build_in_a_directory_of_wheels_wins_and_its_label_does_not_matter(machine: Machine) -> None:
    own = machine.root / "own"
    wheel(own, "torch", "9.9.0+mine", CPU)
    wheel(own, "torch", "9.9.0+cu130", CUDA)
    wheel(own, "torch", "9.8.0+mine", CPU)
    wheel(own, "torch_npu", "9.9.0", {"torch_npu/__init__.py": "", "torch_npu/own.py": ""})
    wheel(machine.offered, "torch", "9.9.0+cpu", CPU)
    (machine.offered / "torch_npu-9.9.0-py3-none-any.whl").unlink()
    shutil.rmtree(machine.offered / "simple" / "torch-npu", ignore_errors=True)
    result = machine.setup("--wheels", "own")
    assert result.returncode == 0, result.stderr
    assert "torch==9.9.0+mine: from the directory of wheels (file://" in result.stdout
    assert machine.torch_installed() == "9.9.0+mine"
    assert list((machine.root / "env" / "lib").glob("python*/site-packages/torch_npu/own.py"))


def test_directory_of_wheels_without_torch_leaves_the_choice_as_it_was(machine: Machine) -> None:
    own = machine.root / "own"
    wheel(own, "torch", "9.9.0+cu130", CUDA)
    wheel(machine.offered, "torch", "9.9.0+cpu", CPU)
    result = machine.setup("--wheels", "own")
    assert result.returncode == 0, result.stderr
    assert machine.torch_installed() == "9.9.0+cpu"


def test_directory_of_wheels_that_is_none_is_refused(machine: Machine) -> None:
    result = machine.setup("--wheels", "nowhere")
    assert result.returncode == 2
    assert "--wheels nowhere is no directory" in result.stderr


def test_cuda_build_in_the_environment_is_refused_and_left_alone(machine: Machine) -> None:
    wheel(machine.offered, "torch", "9.9.0", CUDA)
    wheel(machine.offered, "torch", "9.9.0+cpu", CPU)
    placed = machine.run("-m", "pip", "install", machine.offered / "torch-9.9.0-py3-none-any.whl")
    assert placed.returncode == 0, placed.stderr
    result = machine.setup()
    assert result.returncode == 2
    assert "holds torch 9.9.0, built for CUDA 13.0; torch_npu cannot live beside it" in result.stderr
    assert machine.torch_installed() == "9.9.0"


def test_unknown_release_names_the_known_ones(machine: Machine) -> None:
    result = machine.setup("--release", "1.0")
    assert result.returncode == 2
    assert "release '1.0' is not in releases.toml. Known: 9.9.0." in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("default = ", "not a valid table of releases"),
        ('default = "1"\ncpu_index = ""\n', "not a valid table of releases: 'release'"),
        (
            'default = "1"\ncpu_index = ""\n[release."1"]\ntorch = "1"\nspeed = "fast"\n',
            "unexpected keyword argument 'speed'",
        ),
    ],
)
def test_damaged_table_of_releases_is_named(machine: Machine, text: str, message: str) -> None:
    machine.root.joinpath("releases.toml").write_text(text, encoding="utf-8")
    result = machine.setup()
    assert result.returncode == 2
    assert "releases.toml" in result.stderr
    assert message in result.stderr


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """A machine whose pip offers the CPU build of torch."""
    wheel(machine.offered, "torch", "9.9.0+cpu", CPU)
    return machine


def test_triton_ascend_of_the_release_is_installed_without_its_requirements(ready: Machine) -> None:
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert "triton-ascend 1.0: installing its wheel" in result.stdout
    assert ready.installed("triton_ascend") == "1.0"


def test_triton_ascend_of_another_release_is_replaced(ready: Machine) -> None:
    own = ready.root / "own"
    wheel(own, "triton_ascend", "0.9", {"triton/__init__.py": ""})
    placed = ready.run("-m", "pip", "install", own / "triton_ascend-0.9-py3-none-any.whl")
    assert placed.returncode == 0, placed.stderr
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert ready.installed("triton_ascend") == "1.0"


def test_triton_ascend_is_left_out_on_request_and_what_is_there_stays(ready: Machine) -> None:
    result = ready.setup("--no-triton")
    assert result.returncode == 0, result.stderr
    assert "triton-ascend" not in result.stdout
    assert "LLVM" not in result.stdout
    assert ready.installed("triton_ascend") is None
    assert ready.setup().returncode == 0
    assert ready.setup("--no-triton").returncode == 0
    assert ready.installed("triton_ascend") == "1.0"


def test_triton_ascend_that_is_not_offered_is_said_and_the_setup_goes_on(ready: Machine) -> None:
    (ready.offered / "triton_ascend-1.0-py3-none-any.whl").unlink()
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert "triton-ascend==1.0: not offered for Python" in result.stdout
    assert "No matching distribution found for triton-ascend==1.0" in result.stdout
    assert ready.installed("torch_npu") == "9.9.0"


@pytest.mark.parametrize("both", [False, True])
def test_community_triton_is_refused_with_the_way_out(ready: Machine, both: bool) -> None:
    wheel(ready.root / "own", "triton", "3.5.0", {"triton/__init__.py": "", "triton/own.py": ""})
    if both:
        assert ready.setup().returncode == 0
    placed = ready.run("-m", "pip", "install", ready.root / "own" / "triton-3.5.0-py3-none-any.whl")
    assert placed.returncode == 0, placed.stderr
    result = ready.setup()
    assert result.returncode == 2
    assert "holds community triton 3.5.0, which has the import name and files of triton-ascend" in result.stderr
    names = "triton triton-ascend" if both else "triton"
    assert f"-m pip uninstall {names}`, then `make setup`" in result.stderr
    assert "make setup TRITON=no" in result.stderr
    assert ready.installed("triton") == "3.5.0"
    assert ready.setup("--no-triton").returncode == 0


def test_without_apt_the_packages_are_named_and_the_setup_goes_on(ready: Machine) -> None:
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert "apt-get install -y --no-install-recommends libmlir-19-dev llvm-19-dev clang-19" in result.stdout


class Debian:
    """The module under test where apt-get and dpkg-query are stand-ins that write down how they were called."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = importlib.util.spec_from_file_location("environment_under_test", ROOT / "tools" / "environment.py")
        assert spec is not None
        assert spec.loader is not None
        self.module: ModuleType = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, self.module)  # its dataclasses look themselves up
        spec.loader.exec_module(self.module)
        self.monkeypatch = monkeypatch
        self.calls = root / "calls"
        self.log = root / "build" / "apt.log"
        self.programs = root / "programs"
        self.programs.mkdir()
        monkeypatch.setattr(self.module, "ROOT", root)
        monkeypatch.setenv("PATH", str(self.programs))
        self.program("apt-get", 'echo "Setting up something"')
        self.has()
        self.user(0)

    def program(self, name: str, body: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.calls}"\n{body}\n', encoding="utf-8")
        path.chmod(0o755)

    def has(self, *packages: str) -> None:
        arms = "".join(f'{package}) printf "install ok installed";; ' for package in packages)
        # What was removed and not purged has a status, too.
        arms += 'clang-19) printf "deinstall ok config-files";; '
        self.program("dpkg-query", f"case $3 in {arms} *) exit 1;; esac")

    def user(self, number: int) -> None:
        self.monkeypatch.setattr(self.module.os, "geteuid", lambda: number)

    def install(self) -> None:
        self.module.install_system_packages()

    def asked(self) -> list[str]:
        return [line for line in self.calls.read_text(encoding="utf-8").splitlines() if line.startswith("apt-get")]


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debian:
    return Debian(tmp_path, monkeypatch)


def test_root_gets_the_missing_system_packages(debian: Debian, capsys: pytest.CaptureFixture[str]) -> None:
    debian.has("llvm-19-dev")
    debian.install()
    update, install = debian.asked()
    assert update.startswith("apt-get update")
    assert install.startswith("apt-get install")
    assert "--no-install-recommends" in install
    assert install.endswith(" libmlir-19-dev clang-19")
    assert capsys.readouterr().out.splitlines() == [
        f"installing libmlir-19-dev, clang-19 for kernels on the simulated NPU (log: {debian.log})"
    ]
    assert debian.log.read_text(encoding="utf-8") == "Setting up something\n" * 2


def test_system_packages_that_are_there_cost_no_call_of_apt(debian: Debian, capsys: pytest.CaptureFixture[str]) -> None:
    debian.has(*debian.module.SYSTEM_PACKAGES)
    debian.install()
    assert debian.asked() == []
    assert capsys.readouterr().out == ""


def test_whoever_is_not_root_gets_the_line_to_run(debian: Debian, capsys: pytest.CaptureFixture[str]) -> None:
    debian.user(1000)
    debian.install()
    assert debian.asked() == []
    assert f"  sudo {debian.module.APT_LINE}\n" in capsys.readouterr().out


def test_apt_that_fails_is_shown_with_its_end_and_the_setup_goes_on(
    debian: Debian, capsys: pytest.CaptureFixture[str]
) -> None:
    debian.program("apt-get", 'echo "E: Unable to locate package $1"; [ "$1" = update ]')
    debian.install()
    said = capsys.readouterr().out
    assert "`apt-get install` ended with code 1" in said
    assert "E: Unable to locate package install" in said
    assert f"  {debian.module.APT_LINE}\n" in said


def test_apt_that_takes_long_tells_that_it_still_runs(debian: Debian) -> None:
    debian.monkeypatch.setattr(debian.module, "PROGRESS_SECONDS", 0.05)
    release = debian.log.parent.parent / "release"
    os.mkfifo(release)
    debian.program("apt-get", f'echo "Unpacking $1"; read line <"{release}"')
    # Each call of the stand-in goes on when the first progress was told.
    told: list[str] = []
    waiting = {"update", "install"}

    def tell(*words: object, flush: bool = False) -> None:  # noqa: ARG001 - print's signature
        told.append(" ".join(map(str, words)))
        call = told[-1].rpartition(" ")[2]
        if " s: Unpacking " in told[-1] and call in waiting:
            waiting.remove(call)
            with release.open("w", encoding="utf-8") as pipe:
                pipe.write("go on\n")

    debian.monkeypatch.setattr(debian.module, "print", tell, raising=False)
    debian.install()
    assert any(line.endswith(" s: Unpacking update") for line in told)
    assert any(line.endswith(" s: Unpacking install") for line in told)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("VENV=a directory", 'VENV="a directory": make takes no path with a space'),
        ("TRITON=maybe", 'TRITON="maybe" is neither yes nor no'),
        ("PYTHON=no-such-python", "there is no no-such-python. Name another interpreter: make PYTHON="),
    ],
)
def test_make_refuses_what_it_cannot_heed(tmp_path: Path, setting: str, said: str) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    done = subprocess.run(["make", "setup", setting], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert [file.name for file in tmp_path.iterdir() if file.is_dir()] == []
