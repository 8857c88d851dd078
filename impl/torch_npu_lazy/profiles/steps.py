"""What a profile says is to be done at a time: steps of a setup, each made of calls and replacements that are found by
name when the time has come. All are safe to repeat."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass

from torch_npu_lazy.core.layers import has_layer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Actions = tuple["Call | Replace", ...]


@dataclass(frozen=True)
class Call:
    """Call a function without arguments.

    function: as "module:name". unless: as "module:name.attribute", an attribute that the function puts in place;
    nothing is done if that is there, below what others have put there since. For patches that keep the original in a
    closure or under a fixed name: repeated, they would call themselves.
    """

    function: str
    _: KW_ONLY
    unless: str | None = None

    def __call__(self) -> None:
        function = find(self.function)
        if self.unless is None or not has_layer(find(self.unless), function):
            function()


@dataclass(frozen=True)
class Replace:
    """Put a function in place of an attribute, and keep the original beside it where the function looks for it.

    attribute: as "module:Class.name". by: as "module:name". original: the name that the original is kept under.
    """

    attribute: str
    _: KW_ONLY
    by: str
    original: str

    def __call__(self) -> None:
        owner, _, name = self.attribute.rpartition(".")
        owner, replacement = find(owner), find(self.by)
        if not has_layer(getattr(owner, name), replacement):
            setattr(owner, self.original, getattr(owner, name))
            setattr(owner, name, replacement)


def perform(actions: Actions) -> None:
    """Do a step. Raises what its actions raise; repeated, it begins with its first action."""
    for action in actions:
        action()


def find(path: str) -> Any:
    """What "module:name.name" stands for. Imports the module; raises what that raises, and AttributeError."""
    module, _, names = path.partition(":")
    __import__(module)
    found: Any = sys.modules[module]
    for name in names.split("."):
        found = getattr(found, name)
    return found
