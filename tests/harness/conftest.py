"""The fixture with which tests judge fake packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import FAUX, Judge, compose, faux_device, point

from harness import header, subjects
from harness.runner import Runner


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """judge("eager", "import/lazy.py", key=value) -> result of that point on that fake."""

    def run(fake: str, file: str, *, size_limit: int = 8 << 20, case: header.Case | None = None, **params: Any) -> Any:
        installed = subjects.find("stock", tmp_path / fake if (tmp_path / fake).is_dir() else compose(fake, tmp_path))
        chosen = header.Point(case, params) if case else point(file, **params)
        return Runner(installed, faux_device(), FAUX, size_limit).run(chosen)

    return run
