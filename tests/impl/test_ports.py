"""The tables and the overlay fit together: no table names a file that is not there, and no file is left that none
names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from torch_npu_lazy import bootstrap, ports
from torch_npu_lazy.ports import Port

OVERLAY = Path(bootstrap.OVERLAY)
TABLES: dict[str, Port] = {
    release: import_module(f"torch_npu_lazy.ports.v{release.replace('.', '_')}").PORT for release in ports.SUPPORTED
}


def _file(module: str, suffix: str = "") -> str | None:
    """The overlay file of a module, from the overlay's root; None if there is none."""
    inside = module.split(".")[1:]
    for name in ("/".join([*inside, "__init__"]), "/".join(inside)):
        if name and (OVERLAY / f"{name}{suffix}.py").is_file():
            return f"{name}{suffix}.py"
    return None


@pytest.mark.parametrize("release", TABLES)
def test_each_module_of_a_table_has_its_file(release: str) -> None:
    table = TABLES[release]
    assert [name for name in sorted(table.amended | table.ours) if _file(name) is None] == []
    assert [name for name in sorted(table.prepared) if _file(name, "_before") is None] == []


@pytest.mark.parametrize("release", TABLES)
def test_a_table_is_about_the_release_that_it_is_found_by(release: str) -> None:
    table = TABLES[release]
    assert (table.torch_npu, table.torch) == (release, ports.SUPPORTED[release])
    assert not table.amended & table.ours
    assert all(name in {late.deferral for late in table.late.values()} for name in table.wakes)


def test_each_file_is_named_by_a_table() -> None:
    named = {_file(name) for table in TABLES.values() for name in table.amended | table.ours}
    named |= {_file(name, "_before") for table in TABLES.values() for name in table.prepared}
    assert {str(path.relative_to(OVERLAY)) for path in OVERLAY.rglob("*.py")} == named
