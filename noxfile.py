"""The judge under every Python and every pytest that it supports; none of this needs torch.

`nox --tags compat` runs all of it, `nox --tags ends` the oldest and the newest that differ most, `nox --list` shows the
sessions. An interpreter that is not installed is skipped, and said so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import nox

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True

# The interpreter that runs nox is the environment's own, and `make test` has run everything there.
PYTHONS = [python for python in ("3.10", "3.11", "3.12", "3.13") if python != "{}.{}".format(*sys.version_info)]
PYTESTS = ["9.0", "9.1", "9.2"]
# Both change how pytest runs a test, and pytest-forked owns the very flag that the root conftest accepts.
PLUGINS = {"bare": [], "forked-timeout": ["pytest-forked==1.7.5", "pytest-timeout"]}

# Under pyenv every python3.X on PATH is a shim that runs only the versions made visible: make all of them visible.
if shutil.which("pyenv"):
    versions = subprocess.run(
        ["pyenv", "versions", "--bare"], check=True, capture_output=True, text=True
    ).stdout.split()
    os.environ.setdefault("PYENV_VERSION", ":".join(versions))


@nox.session(tags=["compat"])
@nox.parametrize(
    "python",
    [nox.param(python, id=python, tags=["ends"] if python in (PYTHONS[0], PYTHONS[-1]) else []) for python in PYTHONS],
)
def judge(session: nox.Session) -> None:
    """The tests of the harness, the report and the mechanisms of lazy initialisation under one Python."""
    session.install("--quiet", "--editable", ".", "hypothesis")
    # A browser shows a page alike whichever Python wrote it, and takes its time.
    # Those of the overlay need torch.
    left_out = ("--ignore=tests/harness/report/test_page.py", "--ignore=tests/impl/overlay")
    tests = ("tests/harness", "tests/impl", *left_out)
    session.run("pytest", *tests, "-n", "auto", "-q", *session.posargs)


ENDS = {(PYTESTS[0], "bare"), (PYTESTS[-1], "forked-timeout")}


@nox.session(tags=["compat"])
@nox.parametrize(
    "pytest,plugins",
    [
        nox.param(pytest, plugins, id=f"{pytest}-{plugins}", tags=["ends"] if (pytest, plugins) in ENDS else [])
        for pytest in PYTESTS
        for plugins in PLUGINS
    ],
)
def forked(session: nox.Session, pytest: str, plugins: str) -> None:
    """`pytest cases -n auto --forked` gives the same verdicts whatever the pytest and whoever owns the flag."""
    session.install("--quiet", "--editable", ".", f"pytest=={pytest}.*", *PLUGINS[plugins])
    session.run("pytest", "tests/harness/test_forked.py", "-n", "2", "-q", *session.posargs)
