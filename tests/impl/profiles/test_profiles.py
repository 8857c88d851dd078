"""The profiles and the overlay fit together: no profile names a file that is not there, and no file is left that none
names."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_npu_lazy import profiles
from torch_npu_lazy.profiles import Profile
from torch_npu_lazy.wheel import patching

OVERLAY = Path(patching.OVERLAY)
PROFILES: dict[str, Profile | None] = {
    torch_npu: profiles.find(torch_npu, torch) for torch_npu, torch in profiles.SUPPORTED.items()
}


def _file(module: str) -> str | None:
    """The overlay file of a module, from the overlay's root; None if there is none."""
    inside = module.split(".")[1:]
    for name in ("/".join([*inside, "__init__"]), "/".join(inside)):
        if name and (OVERLAY / f"{name}.py").is_file():
            return f"{name}.py"
    return None


@pytest.mark.parametrize("release", PROFILES)
def test_each_module_of_a_profile_has_its_file(release: str) -> None:
    profile = PROFILES[release]
    assert profile is not None
    assert [name for name in (*profile.patched, *profile.replaced) if _file(name) is None] == []
    assert not {*profile.patched} & {*profile.replaced}


def test_each_file_is_named_by_a_profile() -> None:
    named = {_file(name) for each in PROFILES.values() if each for name in (*each.patched, *each.replaced)}
    assert {str(path.relative_to(OVERLAY)) for path in OVERLAY.rglob("*.py")} == named


def test_another_torch_has_no_profile() -> None:
    assert profiles.find("2.13.0", "2.12.0") is None
    assert profiles.find("2.99.0", "2.99.0") is None
