"""The interpreter that tests are forked from ends with this folder: other tests count the children of their process."""

from __future__ import annotations

from pathlib import Path

import isolated
import pytest


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
        isolated.end_imported()
