"""Puts the overlay in place: finds out which release is installed, takes its profile, and answers for the modules named
there, and for nothing else, when they are imported.

Nothing of torch is imported here. The release is read from the packages' own version files when `torch_npu` is looked
up, so neither installed metadata nor the order of sys.path at start-up matter.
"""

from __future__ import annotations

import os
import sys

from torch_npu_lazy.core import events
from torch_npu_lazy.wheel import logs
from torch_npu_lazy.wheel.finder import finder
from torch_npu_lazy.wheel.patching import PatchingLoader, added, replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from torch_npu_lazy.profiles import Profile
    from torch_npu_lazy.wheel.placeholders import LazyGroup

PACKAGE = "torch_npu"

profile: Profile | None = None
"""The release profile in force, once torch_npu has been looked up."""

release: str | None = None
"""What it is for, in words."""

refusal: str | None = None
"""Why nothing is in force, in one line."""

groups: dict[str, LazyGroup] = {}
"""By name, those of the profile in force."""


def activate() -> None:
    """Wait for the import of torch_npu. Says in one line on stderr if it is too late for that."""
    if finder.rewrites.get(PACKAGE) is _begin:
        return  # a reload: what is in force, or waits, stays so
    if PACKAGE in sys.modules:
        _refuse("torch_npu has been imported before; import torch_npu_lazy first, or enable it for the environment")
        return
    finder.rewrites[PACKAGE] = _begin
    finder.rewrites[logs.HOME] = logs.with_names
    finder.announcements.append(_announced)
    finder.seat()


def look() -> None:
    """Choose the profile now, without importing anything of torch. For those who ask what is in force."""
    if profile is not None or refusal is not None:
        return
    spec = _spec(PACKAGE)
    if spec is None:
        _refuse("torch_npu is not installed here", aloud=False)
    else:
        _settle(spec)


def _announced(context: Any) -> list[Any]:
    """For importlib.metadata: the backends that the wheel announces in later releases only."""
    # Nor to who lists certain directories, as pip does: it is in none.
    if getattr(context, "name", None) not in (None, "torch_npu_lazy") or "path" in getattr(context, "__dict__", ()):
        return []
    package_in_force()
    if profile is None or not profile.backends:
        return []
    from torch_npu_lazy.wheel.metadata import Announcement

    return [Announcement(profile.backends)]


def package_in_force() -> str | None:
    """The directory of torch_npu, with its profile chosen, or None where none is in force. Where there is no torch_npu,
    or a stand-in, it may still come: being asked settles neither."""
    spec = _spec(PACKAGE)
    if spec is not None and PACKAGE not in sys.modules:
        _settle(spec)
    if spec is None or spec.origin is None or profile is None:
        return None
    return os.path.dirname(spec.origin)  # noqa: PTH120


def _begin(spec: ModuleSpec) -> ModuleSpec:
    """torch_npu is being looked up."""
    spec.loader = _First(spec)  # type: ignore[assignment]
    return spec


class _First(PatchingLoader):
    """Of torch_npu itself, which chooses the profile: its lookup must import nothing."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        _settle(spec)
        self._patched = profile is not None and PACKAGE in profile.patched
        return super().create_module(spec)


def _settle(spec: ModuleSpec) -> None:
    """Choose the profile, once."""
    global profile  # noqa: PLW0603
    if profile is None and refusal is None:
        chosen = _choose(spec)
        if chosen is not None:
            _install(chosen)
            # Last: who finds it goes on and imports. Two threads that find none install the same, which does no harm.
            profile = chosen


def _choose(spec: ModuleSpec) -> Profile | None:
    global release  # noqa: PLW0603
    from torch_npu_lazy import profiles

    torch_npu, torch = _version(spec.origin), _version(_origin("torch"))
    if torch_npu is None or torch is None:
        missing = "torch_npu" if torch_npu is None else "torch"
        _refuse(f"the version of {missing} cannot be read from its version.py")
        return None
    pair = f"torch_npu {torch_npu} with torch {torch}"
    found = profiles.find(torch_npu, torch)
    if found is None:
        known = ", ".join(f"torch_npu {ours} with torch {theirs}" for ours, theirs in profiles.SUPPORTED.items())
        _refuse(f"{pair} is not supported, and is left as it is; supported: {known}")
        return None
    release = pair
    events.record("profile", pair)
    return found


def _install(chosen: Profile) -> None:
    # For the lookups to come, which import nothing.
    from importlib import machinery, util  # noqa: F401

    from torch_npu_lazy.core.trigger import when_imported
    from torch_npu_lazy.wheel import dotted
    from torch_npu_lazy.wheel.placeholders import LazyGroup

    def patched(spec: ModuleSpec) -> ModuleSpec:
        name = spec.name
        spec.loader = PatchingLoader(  # type: ignore[assignment]
            spec, patched=name in chosen.patched, redirects=chosen.redirects.get(name)
        )
        return spec

    def lazy(spec: ModuleSpec) -> ModuleSpec:
        entry = chosen.lazy[spec.name]
        spec = patched(spec)
        loader: Any = spec.loader
        return groups[entry.when or spec.name].add(
            spec,
            idle=entry.idle.split(),
            public=entry.public.split(),
            early=loader.before_body if entry.early else None,
            open=entry.open,
            quiet=entry.quiet,
            apart=entry.apart,
        )

    for name in {*chosen.patched, *chosen.redirects} - {PACKAGE}:
        finder.rewrites[name] = patched
    for name in chosen.replaced:
        finder.rewrites[name], finder.additions[name] = replaced, added
    for name, entry in chosen.lazy.items():
        finder.rewrites[name] = lazy
        group = entry.when or name
        if group not in groups:
            groups[group] = LazyGroup(group, imports=[entry.when] if entry.when else [])
    if chosen.dotted:
        dotted.answer(chosen.dotted, chosen.allowing)
    for when in dict.fromkeys(entry.when for entry in chosen.lazy.values() if entry.when):
        when_imported(when, lambda _, load=groups[when].load: load())
    finder.seat()


def load(group: str) -> None:
    """Load a lazy group of the profile in force, if that has one of this name. Raises what loading raises."""
    if group in groups:
        groups[group].load()


def _refuse(why: str, *, aloud: bool = True) -> None:
    global refusal  # noqa: PLW0603
    refusal = why
    events.record("refused", why)
    if aloud:
        print(f"torch_npu_lazy: {why}", file=sys.stderr)


def _spec(package: str) -> ModuleSpec | None:
    """Where a package comes from, or None: there is none, or what has its name was made by hand and does not say."""
    from importlib.machinery import ModuleSpec
    from importlib.util import find_spec

    try:
        spec = find_spec(package)
        return spec if isinstance(spec, ModuleSpec) else None
    except Exception as error:
        # Stand-ins in sys.modules raise ValueError, and finders of others what they like.
        events.record("unknown", package, events.failure(error))
        return None


def _origin(package: str) -> str | None:
    module = sys.modules.get(package)
    if module is not None:
        return getattr(module, "__file__", None)
    spec = _spec(package)
    return spec.origin if spec is not None else None


def _version(origin: object) -> str | None:
    """The public version that a package's version.py states; its local part does not count."""
    if not isinstance(origin, str):
        return None
    path = os.path.join(os.path.dirname(origin), "version.py")  # noqa: PTH118, PTH120
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    except (OSError, ValueError):  # not there, not readable, not UTF-8
        return None
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.split(":")[0].strip() == "__version__" and value.strip()[:1] in ("'", '"'):
            return value.strip()[1:].partition(value.strip()[0])[0].partition("+")[0]
    return None


def state() -> Mapping[str, object]:
    """What is in force in this process."""
    return {
        "profile": None if profile is None else release,
        "refusal": refusal,
    }
