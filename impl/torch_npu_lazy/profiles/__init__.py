"""One release profile per line: what of torch_npu is patched, replaced or lazy. A new release is a new file here."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch_npu_lazy.profiles.steps import Actions

    Answer = str | tuple[str, ...]

LATER: tuple[str, ...] = ()
"""The answer to an import statement that makes all its names lazy references. A tuple with names makes those ones only,
which are modules; a string is the module to import instead."""


@dataclass(frozen=True, kw_only=True)
class Lazy:
    """A module of the wheel that stays out until it is needed.

    when: the module of torch whose import loads it, with all others that name the same. public: names whose access
    loads it, and which dir() lists, separated by spaces. open: so does access to any other name. apart: modules below
    it that load without it. idle: functions that do nothing until it is loaded, separated by spaces.
    early: the module is patched at once, and what the overlay defines then replaces the wheel's names when its body has
    run. quiet: it brings a compiler, and who only looks must not load it: until then dir() lists none of its names, and
    `__all__` is `public`.
    """

    when: str | None = None
    public: str = ""
    open: bool = False
    apart: tuple[str, ...] = ()
    idle: str = ""
    early: bool = False
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A release line.

    patched: modules after whose body the overlay of the same path is executed in their namespace. replaced: modules
    that are the overlay's file alone, whether the wheel has one of that name or not. lazy: see `Lazy`. redirects:
    module -> what import statements of its body get instead, by what they import (see `LATER`). dotted: by package of
    torch, the modules below it that the wheel loads on its way, where programs find them. allowing: those whose import
    allows torch.load to make what a file names of the package above. dynamo, inductor: the steps of Dynamo's and
    Inductor's setup by name, in order. generators: what a code generator of Inductor needs each time it is chosen.
    shape_handling: whether the wheel can bucket shapes. cpu_counts_for_triton: whether has_triton
    looks at CPUs without being asked to. backends: backends of Dynamo that the wheel's metadata does not announce,
    name -> "module:object".
    """

    patched: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    lazy: Mapping[str, Lazy] = field(default_factory=dict)
    redirects: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    dotted: Mapping[str, str] = field(default_factory=dict)
    allowing: tuple[str, ...] = ()
    dynamo: Mapping[str, Actions] = field(default_factory=dict)
    inductor: Mapping[str, Actions] = field(default_factory=dict)
    generators: Mapping[str, Actions] = field(default_factory=dict)
    cpu_counts_for_triton: bool = False
    shape_handling: bool = False
    backends: Mapping[str, str] = field(default_factory=dict)


SUPPORTED = {"2.10.0": "2.10.0", "2.13.0": "2.13.0"}
"""torch_npu version -> the torch that belongs to it. The profile is profiles/v<version>.py, with underscores."""


def find(torch_npu: str, torch: str) -> Profile | None:
    """The profile for two public versions, or None."""
    if SUPPORTED.get(torch_npu) != torch:
        return None
    profile: Profile = import_module(f"{__name__}.v{torch_npu.replace('.', '_')}").PROFILE
    return profile
