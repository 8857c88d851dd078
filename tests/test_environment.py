"""Setting up: the CPU build of torch is found wherever it is offered, and a CUDA build is refused.

Real pip installs tiny stand-in wheels into a real environment.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "environment.py", root / "tools")
        self.offered = root / "offered"
        self.cpu_index = root / "cpu-index"
        for directory in (self.offered, self.cpu_index):
            wheel(directory, "unrelated", "1", {"unrelated.py": ""})
        wheel(self.offered, "torch_npu", "9.9.0", {"torch_npu/__init__.py": ""})
        venv.create(root / "env", with_pip=True)
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
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": index(self.offered),
            "PIP_NO_CACHE_DIR": "1",
        }
        command = [self.python, *arguments]
        return subprocess.run(command, cwd=self.root, env=env, text=True, capture_output=True, timeout=120, check=False)

    def setup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("tools/environment.py", *arguments)

    def torch_installed(self) -> str | None:
        found = list((self.root / "env" / "lib").glob("python*/site-packages/torch-*.dist-info"))
        return found[0].name.removeprefix("torch-").removesuffix(".dist-info") if found else None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


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
    assert again.stdout.splitlines() == ["torch 9.9.0+cpu: already there", "torch_npu 9.9.0: already there"]


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
