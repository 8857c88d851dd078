"""Remembers every module body that this interpreter executes, who asked for it, and every attempt to import. The judged
package can tidy up sys.modules; an audit hook it cannot remove."""

from __future__ import annotations

import importlib
import sys
from types import CodeType, FrameType

from . import jitter

Frame = tuple[str, int, str]  # file, line, function


class Origin:
    """Where something was asked for: the frames up to the enclosing module body, then that body's own origin.

    Linked rather than copied: import chains are dozens deep, and 2,000 full copies would be felt in the import's time.
    """

    __slots__ = ("frames", "parent")

    def __init__(self, frames: list[Frame], parent: Origin | None) -> None:
        self.frames = frames
        self.parent = parent

    def stack(self) -> list[str]:
        """Outermost caller first: ["file:line in function", …]."""
        lines: list[str] = []
        origin: Origin | None = self
        while origin is not None:
            lines.extend(f"{file}:{line} in {function}" for file, line, function in origin.frames)
            origin = origin.parent
        return lines[::-1]


attempts: dict[str, Origin] = {}
"""Imported name -> first import statement that found it absent. The module need not exist, let alone have run."""
extensions: dict[str, Origin] = {}
"""Name of an extension module -> who loaded it."""
bodies: dict[str, Origin] = {}
"""File of each executed module body -> who caused the first execution."""
names: dict[str, str] = {}
"""Module name that the import system gave -> file of the body executed under it."""
anonymous: list[tuple[CodeType, Origin]] = []
"""Bodies executed from text without a file (exec of a string): comparable only by their code."""

JITTER = (0.125, 0.002)
"""Chance and seconds of a delay at each import and module body of a soak: two thousand cost a quarter second."""

_installed = False
_PLUMBING = (__file__, importlib.__file__)


def install() -> None:
    """Start recording; a second call does nothing, since an audit hook stays for the life of the interpreter."""
    global _installed  # noqa: PLW0603
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple) -> None:
    if event == "exec":
        code = args[0]
        if type(code) is CodeType and code.co_name == "<module>":
            file = code.co_filename
            jitter.delay(file, *JITTER)
            frame = sys._getframe(1)
            if file[:1] != "<":
                if frame.f_code.co_name == "_call_with_frames_removed":
                    # importlib runs a body as f(code, namespace): the namespace knows the module's name.
                    inner = frame.f_locals.get("args")
                    if inner and len(inner) > 1:
                        names.setdefault(inner[1].get("__name__"), file)
                if file not in bodies:
                    bodies[file] = _origin(frame)
            elif len(code.co_names) > 2:
                # Smaller ones are the thousands of functions that dataclasses and namedtuples compile.
                anonymous.append((code, _origin(frame)))
    elif event == "import":
        name = args[0]
        jitter.delay(name, *JITTER)
        if args[1] is not None:
            if name not in extensions:
                extensions[name] = _origin(sys._getframe(1))
        elif name not in attempts:
            attempts[name] = _origin(sys._getframe(1))


def _origin(start: FrameType | None) -> Origin:
    frames: list[Frame] = []
    frame = start
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file[:18] != "<frozen importlib." and file not in _PLUMBING:
            function = code.co_name
            frames.append((file, frame.f_lineno, function))
            if function == "<module>":
                parent = bodies.get(file)
                if parent is not None:
                    return Origin(frames, parent)
        frame = frame.f_back
    return Origin(frames, None)
