"""The fixtures with which tests judge fake packages, and cases of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FAUX, Judge, Run, Suite, Write, compose, faux_device, point

from harness import devices, header, subjects
from harness.runner import Runner

HEADER = """\
\"\"\"A rule for this test.\"\"\"
# /// script
# [tool.conformance]
# level = "must"
# matrix = {{ order = {values} }}
# timeout = 30
# ///
from harness import probe
"""


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """judge("eager", "import/lazy/none.py", key=value) -> result of that point on that fake."""

    def run(
        fake: str,
        file: str,
        *,
        size_limit: int = 8 << 20,
        case: header.Case | None = None,
        soak: str | None = None,
        **params: Any,
    ) -> Any:
        installed = subjects.find("stock", tmp_path / fake if (tmp_path / fake).is_dir() else compose(fake, tmp_path))
        chosen = header.Point(case, params) if case else point(file, **params)
        return Runner(installed, faux_device(), FAUX, size_limit).run(chosen, soak=soak)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(body: str, values: str = '["a", "b"]') -> Path:
        path = tmp_path / "area/topic/case.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER.format(values=values) + textwrap.dedent(body))
        return path

    return make


@pytest.fixture
def run(write: Write, tmp_path: Path) -> Run:
    """Run a case with this body on an honest fake."""
    installed = subjects.find("stock", compose("honest", tmp_path))

    def judge(body: str) -> Any:
        case = header.read(write(body, '["a"]'))
        return Runner(installed, faux_device(), FAUX).run(case.points()[0])

    return judge


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Suite]:
    monkeypatch.setitem(devices.DEVICES, "faux", faux_device)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return lambda fake="honest": Suite(pytester, fake)
