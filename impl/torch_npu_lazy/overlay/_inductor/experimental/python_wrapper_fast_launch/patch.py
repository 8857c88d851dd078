"""Planned fast launch, installed where the wheel installs its own, which does not know all keywords of the generator
that it replaces."""

from __future__ import annotations


def patch_fast_launch() -> bool:
    """Install it if it is on; whether it is. Called while NPU Inductor is being loaded. Loads nothing if it is off."""
    from torch_npu._inductor import config

    if not config.enable_fast_launch:
        return False
    from torch_npu_lazy.fast_launch.patch import install

    install()
    return True
