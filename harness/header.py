"""Reads what a case says about itself without importing it: collector, catalogue and probe must agree on the rule that
a file checks, even when running that file would crash the interpreter."""

from __future__ import annotations

import ast
import itertools
import math
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

FLAGS = frozenset({"kernels", "triton", "onnx", "onnxscript", "onnxruntime", "hccl", "torchair", "graph", "ops"})
COUNTED = re.compile(r"(devices|python|torch)\s*(>=)\s*(\d+(?:\.\d+)*)")
SEGMENT = re.compile(r"[a-z][a-z0-9_]*")
LEVELS = ("must", "should")
FIELDS = ("level", "matrix", "needs", "timeout", "releases", "control")
REQUIRED = ("level",)
DEFAULT_TIMEOUT = 120.0
LONGEST_TIMEOUT = 86_400.0

# The pattern that PEP 723 gives as the format's definition.
SCRIPT_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


class TomlError(ValueError):
    """A text that is no TOML; `line` counts from 1, 0 where it is not known."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = re.search(r"line (\d+)", message)
        self.line = int(found[1]) if found else 0


def toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises TomlError whatever is wrong with it: syntax, a number of thousands of digits, deep nesting."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TomlError(str(error) if isinstance(error, ValueError) else "nested too deeply") from None


def not_utf8(error: UnicodeDecodeError) -> tuple[int, str]:
    """The line, counted from 1, of a file that cannot be decoded, and what is wrong with it."""
    return error.object.count(b"\n", 0, error.start) + 1, f"not UTF-8: byte {error.object[error.start]:#04x}"


class HeaderError(Exception):
    """A case file whose header cannot be used; str() is "file:line: cause and remedy"."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


@dataclass(frozen=True)
class Case:
    """One case file = one rule. `timeout` is in seconds of wall time for one point."""

    path: Path
    line: int
    level: str
    title: str
    text: str
    matrix: Mapping[str, tuple[Any, ...]]
    needs: tuple[str, ...]
    timeout: float
    releases: SpecifierSet
    imports_subject: bool
    """Whether the case imports torch_npu in its first layer of statements, at every point."""
    control: Mapping[str, Any] | None = None
    """Which points have a control: those that these parameters select, as in an expectation; None: none."""

    @property
    def rule(self) -> str:
        """The rule's id, which is the file's place: area/topic/name."""
        return "/".join(_place(self.path))

    @property
    def area(self) -> str:
        return _place(self.path)[0]

    @property
    def suite(self) -> Path:
        """The directory that the areas are in."""
        return self.path.resolve().parents[2]

    def points(self) -> list[Point]:
        """Every combination of the matrix, in the order in which the header writes it; one point when there is none."""
        names = list(self.matrix)
        columns: list[tuple[Any, ...]] = list(self.matrix.values())
        rows = itertools.product(*columns)
        return [Point(self, dict(zip(names, row, strict=True))) for row in rows]

    def point(self, arguments: Sequence[str]) -> Point:
        """The point that `key=value` words name. A key with a single value may be left out.

        Raises ValueError for a word that is no key=value, an unknown key or value, and a missing key.
        """
        given: dict[str, str] = {}
        for word in arguments:
            key, equals, value = word.partition("=")
            if not equals:
                raise ValueError(f"{word!r} is not of the form key=value")
            if key not in self.matrix:
                raise ValueError(
                    f"{self.path.name} has no parameter {key!r}; it has {', '.join(self.matrix) or 'none'}"
                )
            given[key] = value
        params: dict[str, Any] = {}
        for key, values in self.matrix.items():
            if key not in given:
                if len(values) != 1:
                    raise ValueError(f"say which {key}: {' '.join(f'{key}={spell(value)}' for value in values)}")
                params[key] = values[0]
                continue
            matching = [value for value in values if spell(value) == given[key]]
            if not matching:
                known = ", ".join(spell(value) for value in values)
                raise ValueError(
                    f"{key}={given[key]} is not in the matrix of {self.path.name}; {key} is one of {known}"
                )
            params[key] = matching[0]
        return Point(self, params)


@dataclass(frozen=True)
class Point:
    """One case with one value for each parameter: what one fresh interpreter judges."""

    case: Case
    params: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.case.rule + self.suffix

    def has(self, selection: Mapping[str, Any]) -> bool:
        """Whether each parameter that `selection` names has that value, or one of these values."""
        return all(
            name in self.params and self.params[name] in (value if isinstance(value, list) else [value])
            for name, value in selection.items()
        )

    @property
    def controlled(self) -> bool:
        """Whether plain PyTorch is asked as well when this point ends badly."""
        return self.case.control is not None and self.has(self.case.control)

    @property
    def suffix(self) -> str:
        inner = ",".join(self.arguments)
        return f"[{inner}]" if inner else ""

    @property
    def arguments(self) -> list[str]:
        """The point as the words of a command line: ["order=torch_first"]."""
        return [f"{key}={spell(value)}" for key, value in self.params.items()]


def spell(value: Any) -> str:
    """A matrix value as it is written on a command line and in a point's id."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def read(path: Path) -> Case:
    """Read one case file's header. Raises HeaderError, and FileNotFoundError."""
    for segment in _place(path):
        if not SEGMENT.fullmatch(segment):
            raise HeaderError(
                path, 1, f"{segment!r} cannot be part of a rule's id: write small letters, digits and underscores"
            )
    if path.stem in sys.stdlib_module_names:
        raise HeaderError(
            path, 1, f"run by hand, the case would hide Python's own module {path.stem!r}; give it another name"
        )
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise HeaderError(path, 1, "is no regular file; a case is a Python file")
        source = path.read_text(encoding="utf-8-sig")  # Python, too, passes over a byte order mark
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HeaderError(path, 1, f"cannot be read: {error.strerror}; a case is a Python file") from None
    except UnicodeDecodeError as error:
        line, message = not_utf8(error)
        raise HeaderError(path, line, f"{message}; save it as UTF-8") from None
    try:
        tree = ast.parse(source, filename=str(path))
    except SyntaxError as error:
        raise HeaderError(path, error.lineno or 1, f"not valid Python: {error.msg}") from None
    except ValueError as error:
        if "\0" not in source:
            raise HeaderError(path, 1, f"not valid Python: {error}") from None
        line = source.count("\n", 0, source.index("\0")) + 1
        raise HeaderError(path, line, "not valid Python: a null byte") from None
    except (RecursionError, MemoryError):
        raise HeaderError(path, 1, "not valid Python: nested too deeply") from None

    docstring = ast.get_docstring(tree)
    if not docstring:
        raise HeaderError(
            path, 1, "no docstring; the first line of the module's docstring states the rule in one sentence"
        )
    title, _, text = docstring.partition("\n")

    blocks = [match for match in SCRIPT_BLOCK.finditer(source) if match["type"] == "script"]
    if not blocks:
        raise HeaderError(path, 1, "no PEP 723 block; add '# /// script', '# [tool.conformance]' …, '# ///'")
    if len(blocks) > 1:
        raise HeaderError(path, _line(source, blocks[1].start()), "a second PEP 723 script block; keep one")
    block = blocks[0]
    first = _line(source, block.start())
    lines = block["content"].splitlines()
    content = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    try:
        document = toml(content)
    except TomlError as error:
        raise HeaderError(path, first + error.line, f"the PEP 723 block is not valid TOML: {error}") from None
    tool = document.get("tool")
    table = tool.get("conformance") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        raise HeaderError(path, first, "the PEP 723 block has no [tool.conformance] table")

    def at(field: str) -> int:
        for number, line in enumerate(lines, start=first + 1):
            if re.match(rf"#\s*(\[.*\.)?{re.escape(field)}\b", line):
                return number
        return first

    def wrong(field: str, message: str) -> HeaderError:
        return HeaderError(path, at(field), message)

    for name in table:
        if name not in FIELDS:
            raise wrong(name, f"unknown field {name!r}; the fields are {', '.join(FIELDS)}")
    for name in REQUIRED:
        if name not in table:
            raise HeaderError(path, first, f"the field {name!r} is missing from [tool.conformance]")

    level = table["level"]
    if level not in LEVELS:
        raise wrong("level", f"level {level!r} is neither 'must' nor 'should'")

    matrix = table.get("matrix", {})
    if not isinstance(matrix, dict):
        raise wrong("matrix", 'matrix is not a table; write matrix = { order = ["a", "b"] }')
    for key, values in matrix.items():
        if not key.isidentifier():
            raise wrong("matrix", f"parameter {key!r} of the matrix is no identifier")
        if not isinstance(values, list) or not values:
            raise wrong("matrix", f"matrix.{key} must be a list with at least one value")
        spelt = [spell(value) for value in values]
        for value in values:
            if not isinstance(value, (str, int, float, bool)):
                raise wrong("matrix", f"matrix.{key}: {value!r} is neither text, number nor boolean")
            if isinstance(value, float) and not math.isfinite(value):
                raise wrong("matrix", f"matrix.{key}: {value!r} is no number that a report can hold")
            if re.search(r"[\s,\[\]=]", spell(value)) or not spell(value) or not spell(value).isprintable():
                raise wrong(
                    "matrix", f"matrix.{key}: {value!r} is empty or has a blank , = [ or ], or an unprintable mark"
                )
        if len(set(spelt)) < len(spelt):
            raise wrong("matrix", f"matrix.{key} names a value twice")

    needs = table.get("needs", [])
    if not isinstance(needs, list):
        raise wrong("needs", "needs is not a list of capabilities")
    for need in needs:
        if not isinstance(need, str) or (need not in FLAGS and not COUNTED.fullmatch(need)):
            known = ", ".join([*sorted(FLAGS), "devices>=N", "python>=X.Y", "torch>=X"])
            raise wrong("needs", f"unknown capability {need!r}; known are {known}")

    timeout = table.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise wrong("timeout", f"timeout {timeout!r} is not a positive number of seconds, up to {LONGEST_TIMEOUT:g}")

    releases = table.get("releases", "")
    try:
        specifier = SpecifierSet(releases if isinstance(releases, str) else repr(releases))
    except InvalidSpecifier:
        raise HeaderError(
            path, at("releases"), f"releases {releases!r} is no version specifier such as '>=2.9'"
        ) from None

    control = table.get("control", False)
    if not isinstance(control, (bool, dict)):
        raise wrong("control", 'control is neither true nor a selection of points such as { how = ["fork", "thread"] }')
    for key, chosen in control.items() if isinstance(control, dict) else ():
        values = chosen if isinstance(chosen, list) else [chosen]
        if key not in matrix or not all(value in matrix[key] for value in values):
            raise wrong("control", f"control selects {key} = {chosen!r}, which is not in the matrix")

    return Case(
        path=path,
        line=first,
        level=level,
        title=title.strip(),
        text=text.strip(),
        matrix={key: tuple(values) for key, values in matrix.items()},
        needs=tuple(needs),
        timeout=float(timeout),
        releases=specifier,
        imports_subject=any(_imports(statement, "torch_npu") for statement in tree.body),
        control=({} if control else None) if isinstance(control, bool) else control,
    )


def relative(path: Path, root: Path) -> str:
    """The path as it is shown: relative to `root` where it lies below."""
    path, root = path.resolve(), root.resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def is_case_file(path: Path) -> bool:
    """Every Python file below the cases directory is a case, save names that start with an underscore."""
    return path.suffix == ".py" and not path.name.startswith(("_", "."))


def read_all(directory: Path) -> tuple[list[Case], list[HeaderError]]:
    """Read all case files of a suite: (cases sorted by rule, errors)."""
    cases: list[Case] = []
    errors: list[HeaderError] = []
    for path in sorted(directory.rglob("*.py")):
        if not is_case_file(path):
            continue
        try:
            if len(path.relative_to(directory).parts) != len(_place(path)):
                raise HeaderError(path, 1, f"a case lies at {directory.name}/<area>/<topic>/<name>.py; move it there")
            cases.append(read(path))
        except HeaderError as error:
            errors.append(error)
        except FileNotFoundError:
            errors.append(HeaderError(path, 1, "a link to a file that is not there; remove it"))
    return sorted(cases, key=lambda case: case.rule), errors


def _imports(statement: ast.stmt, package: str) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] == package for alias in statement.names)
    return (
        isinstance(statement, ast.ImportFrom)
        and not statement.level
        and (statement.module or "").partition(".")[0] == package
    )


def _place(path: Path) -> tuple[str, str, str]:
    """Area, topic and name of a case file."""
    path = path.absolute()
    return path.parent.parent.name, path.parent.name, path.stem


def _line(source: str, offset: int) -> int:
    return source.count("\n", 0, offset) + 1
