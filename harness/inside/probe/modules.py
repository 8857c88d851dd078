"""Which modules this interpreter has ever loaded, on two kinds of evidence: the present sys.modules, and the record of
every executed module body, which survives `del sys.modules[name]` and loading by hand."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from .. import recorder
from ._session import HARNESS, session


def loaded() -> frozenset[str]:
    """Names ("torch._dynamo") in sys.modules now. A None entry (an import that is blocked) is no module."""
    # Never touch the values' attributes: a proxy module may load the real one when looked at.
    return frozenset(name for name, module in list(sys.modules.items()) if module is not None)


def snapshot() -> frozenset[str]:
    """Names of all modules ever loaded in this interpreter, for `new_since`."""
    return loaded() | _executed()


def new_since(earlier: frozenset[str]) -> frozenset[str]:
    """Names of modules loaded after `earlier = snapshot()`, also of those that are gone from sys.modules again."""
    return snapshot() - earlier


def absent(*names: str) -> None:
    """Check that neither these modules nor any below them were ever loaded. Raises CheckFailed, with the stack of who
    loaded one first."""
    in_table = loaded()
    executed = _executed()
    for name in names:
        now = sorted(other for other in in_table if _within(other, name))
        ever = sorted(other for other in executed if _within(other, name))
        by_text = [] if now or ever else _executed_as_text(name)
        if not (now or ever or by_text):
            session().passed(f"{name} was never loaded")
            continue
        evidence = []
        if now:
            evidence.append(f"in sys.modules: {_some(now)}")
        gone = [other for other in ever if other not in in_table]
        if gone:
            evidence.append(f"executed, though not in sys.modules any more: {_some(gone)}")
        if by_text:
            evidence.append(f"its source was executed as plain text: {by_text[0]}")
        stack = importer(name)
        if stack is None:
            first = (ever or now or [name])[0]
            stack = importer(first)
        if stack is None and by_text:
            stack = _outside_harness(by_text[1])
        session().failed(
            f"{name} was loaded",
            expected=f"neither {name} nor a module below it was ever loaded",
            found="; ".join(evidence),
            import_stack=stack or ["(loaded before the case's first line)"],
        )


def left_to_torch(name: str) -> None:
    """Check that `name` was never loaded, or that plain torch loaded it for itself: Dynamo imports a Triton that is
    installed when it is imported itself, with torch_npu or without. Judged by who asked first. Raises CheckFailed.
    """
    if not any(_within(other, name) for other in snapshot()):
        session().passed(f"{name} was never loaded")
        return
    stack = importer(name) or ["(loaded before the case's first line)"]
    torch = str(vars(sys.modules["torch"]).get("__file__")) if "torch" in sys.modules else ""
    home = f"{Path(torch).parent}{os.sep}"
    # The import statement, and what called the function that it stands in: both may be torch's, or neither need be.
    if len(stack) > 1 and all(line.startswith(home) for line in stack[-2:]):
        session().passed(f"{name} was loaded by torch alone")
        return
    session().failed(
        f"{name} was loaded, and not by torch alone",
        expected=f"{name} is not loaded, or plain torch has asked for it",
        found="the import stack below",
        import_stack=stack,
    )


def present(*names: str) -> None:
    """Check that these modules are in sys.modules. Raises CheckFailed."""
    in_table = loaded()
    for name in names:
        if name in in_table:
            session().passed(f"{name} is loaded")
        else:
            executed = name in _executed()
            session().failed(
                f"{name} is not loaded",
                expected=f"{name} in sys.modules",
                found="executed once, but gone from sys.modules" if executed else "never loaded",
            )


def importer(name: str) -> list[str] | None:
    """Who loaded `name` first: callers, outermost first, as "file:line in function". None when nobody did."""
    origin = recorder.bodies.get(recorder.names.get(name, "")) or recorder.extensions.get(name)
    if origin is None:
        for file, candidate in list(recorder.bodies.items()):
            if name in _names_of(file, _roots()):
                origin = candidate
                break
    if origin is None and name in sys.modules:
        origin = recorder.attempts.get(name)
    return None if origin is None else _outside_harness(origin.stack())


def _outside_harness(stack: list[str]) -> list[str]:
    return [line for line in stack if not line.startswith((HARNESS, "<frozen "))]


def _executed() -> frozenset[str]:
    """Names of all modules whose body ran or whose extension was loaded since the recording started."""
    found = set(recorder.names) | set(recorder.extensions)
    roots = _roots()
    for file in list(recorder.bodies):
        found |= _names_of(file, roots)
    found.discard("__main__")
    return frozenset(found)


def _roots() -> tuple[str, ...]:
    return tuple(path for path in sys.path if isinstance(path, str) and path)


@lru_cache(maxsize=16384)
def _names_of(file: str, roots: tuple[str, ...]) -> frozenset[str]:
    """Names under which `file` can be imported: relative to each entry of sys.path, and to the folder that holds its
    outermost package (so a copy that lies outside sys.path is seen too)."""
    path = file[:-1] if file.endswith(".pyc") else file
    if not path.endswith(".py"):
        return frozenset()
    parents = [root.rstrip(os.sep) for root in roots if path.startswith(root.rstrip(os.sep) + os.sep)]
    top = Path(path).parent
    while (top / "__init__.py").is_file() and top != top.parent:
        top = top.parent
    names = set()
    for parent in {*parents, str(top)}:
        parts = path[len(parent.rstrip(os.sep)) + 1 : -3].split(os.sep)  # noqa: PTH206 - text, thousands of times
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts):
            names.add(".".join(parts))
    return frozenset(names)


def _executed_as_text(name: str) -> list:
    """[file, stack] when somebody ran the module's source through exec() without saying which file it is from."""
    if not recorder.anonymous:
        return []
    relative = name.replace(".", os.sep)
    for root in _roots():
        for file in (Path(root, relative, "__init__.py"), Path(root, f"{relative}.py")):
            if not file.is_file():
                continue
            # Code objects compare by what they do, not by the file they name.
            code = compile(file.read_bytes(), "<string>", "exec", dont_inherit=True)
            for other, origin in recorder.anonymous:
                if other == code and code.co_names:
                    return [str(file), origin.stack()]
    return []


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
