"""A part is deleted by deleting its folder: the harness judges without the simulator, and the wheel alone without the
reference implementation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from deadlines import HANG
from fakes import REPOSITORY, compose

LEFT_OUT = (".git", ".venv*", ".nox", "build", "__pycache__", ".*_cache")

NPU = """
from pathlib import Path

from harness import devices

devices._nodes = lambda: [Path("/dev/davinci0")]
"""

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=[("simnpu", "simnpu"), ("impl", "torch_npu_lazy")], ids=["simnpu", "impl"])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Python:
    """An interpreter at the root of a checkout without the part, from which the part cannot be imported."""
    folder, package = request.param
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.rmtree(checkout / folder)
    venv.create(tmp_path / "venv", symlinks=True)
    installed = sysconfig.get_path("purelib")
    scheme = {"base": str(tmp_path / "venv"), "platbase": str(tmp_path / "venv")}
    # What is installed counts, but not the .pth file that points to this checkout.
    Path(sysconfig.get_path("purelib", vars=scheme), "parts.pth").write_text(
        "".join(f"{path}\n" for path in (checkout, checkout / "impl", installed))
    )

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(tmp_path / "venv/bin/python"), *arguments]
        environment = {"PATH": os.environ["PATH"], **env}
        return subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, check=False, timeout=HANG
        )

    assert f"No module named '{package}'" in run("-c", f"import {package}").stderr
    return run


def test_the_harness_judges_on_an_npu_without_the_part(python: Python, tmp_path: Path) -> None:
    cann = tmp_path / "cann"
    cann.mkdir()
    (cann / "faked_npu.py").write_text(NPU)
    options = ["--device=npu", f"--subject-path={compose('honest', tmp_path)}", "--report-dir=report"]
    options += ["-o", "conformance_cases=tests/faux/cases", "-p", "no:cacheprovider", "-p", "faked_npu"]
    done = python(
        *("-m", "pytest", "tests/faux/cases", "--rule=import/lazy", *options),
        ASCEND_HOME_PATH=str(cann),
        PYTHONPATH=str(cann),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "device: npu x1" in done.stdout
    for words in (("harness", "rules"), ("harness.report", "report/report.json")):
        shown = python("-m", *words)
        assert (shown.returncode, shown.stderr) == (0, "")
    assert "1 rule, 1 conforms" in shown.stdout


def test_the_harness_judges_on_a_fake_without_the_part(python: Python) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-k", "eager"]
    done = python("-m", "pytest", "tests/harness/test_outcomes.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
