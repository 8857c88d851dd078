"""What `python -m simnpu doctor` looks at: each thing the simulator needs, with a remedy if it is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

from simnpu import build as building
from simnpu.settings import SettingError, check_log_opens, check_settings
from simnpu.toolchain import build as toolchain
from simnpu.toolchain import surroundings


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. What is not `needed` may be missing."""

    what: str
    good: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def _from_build_error(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, look())
    except building.BuildError as error:
        detail, _, remedy = str(error).partition(" Remedy: ")
        return Finding(what, False, detail, remedy)


def _system() -> Finding:
    name = f"{platform.system()} {platform.machine()}"
    good = platform.system() == "Linux"
    return Finding("system", good, name, "" if good else "run on Linux: torch_npu exists for no other system")


def _package(name: str) -> str:
    directory, version = building.find_package(name)
    return f"{version} in {directory}"


def _headers() -> str:
    return str(building.find_cann_headers())


def _settings() -> Finding:
    try:
        check_settings(os.environ)
        check_log_opens(os.environ)
    except SettingError as error:
        return Finding("variables", False, str(error), "correct or unset the variable")
    return Finding("variables", True, "SIMNPU_* as understood")


def _cache() -> Finding:
    try:
        root = building.cache_root()
    except building.BuildError as error:
        what, _, remedy = str(error).partition(" Remedy: ")
        return Finding("cache", False, what, remedy)
    existing = next(place for place in (root, *root.parents) if place.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return Finding("cache", True, str(root))
    return Finding("cache", False, f"{existing} is not writable", "set SIMNPU_CACHE to a writable directory")


def _libraries() -> Finding:
    try:
        found = building.library_dir()
    except building.BuildError as error:
        return Finding("libraries", False, f"cannot be built yet: {str(error).partition(' Remedy: ')[0]}", "see above")
    if found:
        return Finding("libraries", True, str(found))
    return Finding("libraries", True, "not built yet; the first run builds them (or: python -m simnpu build)")


def _triton() -> Finding:
    version = surroundings.version_of(surroundings.DISTRIBUTION)
    community = surroundings.version_of(surroundings.COMMUNITY)
    if community is not None:
        both = f" {surroundings.DISTRIBUTION}" if version else ""
        remedy = f"{sys.executable} -m pip uninstall {surroundings.COMMUNITY}{both}, then make setup"
        detail = f"community triton {community} in its place: both are imported as `triton`"
        return Finding("triton-ascend", False, detail, remedy, needed=False)
    if version is None:
        detail = "not installed: no Triton kernels, no Inductor on the NPU"
        return Finding("triton-ascend", False, detail, "make setup", needed=False)
    return Finding("triton-ascend", True, version)


def _toolchain() -> list[Finding]:
    # Whoever has triton-ascend wants kernels; all others need nothing of this.
    needed = surroundings.version_of(surroundings.DISTRIBUTION) is not None
    if lacking := toolchain.missing():
        detail, _, remedy = lacking.partition("; remedy: ")
        return [Finding("LLVM and MLIR", False, detail, remedy, needed)]
    llvm = Finding("LLVM and MLIR", True, f"{toolchain.LLVM_VERSION} in {toolchain.find_llvm()}")
    try:
        built = toolchain.directory()
    except building.BuildError as error:
        detail, _, remedy = str(error).partition(" Remedy: ")
        return [llvm, Finding("kernel compiler", False, detail, remedy, needed)]
    later = "not built yet; the first run with triton-ascend builds it (or: python -m simnpu build)"
    return [llvm, Finding("kernel compiler", True, str(built) if built else later)]


def examine() -> list[Finding]:
    """Looks at everything, in the order in which a person would put it right."""
    return [
        _system(),
        Finding("python", True, f"{platform.python_version()} ({sys.executable})"),
        _from_build_error("torch", lambda: _package("torch")),
        _from_build_error("torch_npu", lambda: _package("torch_npu")),
        _from_build_error("CANN headers", _headers),
        _from_build_error("compiler", lambda: " — ".join(building.find_compiler())),
        _from_build_error("cmake", building.find_cmake),
        _from_build_error("ninja", building.find_ninja),
        _settings(),
        _cache(),
        _libraries(),
        _triton(),
        *_toolchain(),
    ]
