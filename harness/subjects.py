"""What can be judged: the torch_npu wheel as released, or the same wheel with the reference implementation. All is
found out from installed metadata and file positions; torch is never imported here."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.version import InvalidVersion, Version


class Unavailable(Exception):
    """A subject or device cannot be used here; str() is one line with cause and remedy."""


@dataclass(frozen=True)
class Subject:
    """`preamble` is the module that every interpreter of this subject imports before anything else, or None."""

    name: str
    preamble: str | None
    remedy: str


SUBJECTS = {
    "stock": Subject("stock", None, ""),
    "reference": Subject(
        "reference",
        "torch_npu_lazy",
        "install the reference implementation, or judge the wheel alone with --subject stock",
    ),
}


@dataclass(frozen=True)
class Installed:
    """A subject as it is installed here; "release" is torch_npu's version without its local part."""

    subject: Subject
    release: str
    torch_npu: str
    torch: str
    files: dict[str, str | None]
    search: tuple[str, ...]
    path: Path | None

    def has(self, module: str) -> bool:
        """Whether a top-level module, or a submodule of torch_npu by its file, can be imported. Imports nothing."""
        head, _, rest = module.partition(".")
        spec = PathFinder.find_spec(head, list(self.search))
        if spec is None or not rest:
            return spec is not None
        below = rest.replace(".", "/")
        return any(
            Path(location, below, "__init__.py").is_file() or Path(location, f"{below}.py").is_file()
            for location in spec.submodule_search_locations or ()
        )

    def defines(self, module: str, name: str) -> bool:
        """Whether a top-level module binds a name, by its source. Imports nothing."""
        spec = PathFinder.find_spec(module, list(self.search))
        if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
            return False
        for node in ast.parse(Path(str(spec.origin)).read_bytes()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return True
            if isinstance(node, ast.ImportFrom) and name in (alias.asname or alias.name for alias in node.names):
                return True
        return False


def find(name: str, path: Path | None = None) -> Installed:
    """Look a subject up. `path` is a directory searched before all others (--subject-path). Raises Unavailable."""
    subject = SUBJECTS.get(name)
    if subject is None:
        raise Unavailable(f"unknown subject {name!r}; known are {', '.join(SUBJECTS)}")
    if path is not None and not path.is_dir():
        raise Unavailable(f"--subject-path {path} is no directory")
    first = [str(path.resolve())] if path else []
    search = tuple(dict.fromkeys([*first, *_search()]))
    versions = {package: _version(package, search) for package in ("torch_npu", "torch")}
    for package, version in versions.items():
        if version is None:
            raise Unavailable(
                f"{package} is not installed for {sys.executable} (PYTHONPATH and the user site do not count); "
                "run `make setup`, or use --subject-path DIR"
            )
    torch_npu, torch = str(versions["torch_npu"]), str(versions["torch"])
    try:
        release = Version(torch_npu).public
    except InvalidVersion:
        raise Unavailable(
            f"the installed torch_npu has version {torch_npu!r}, which is no version; install a wheel"
        ) from None
    installed = Installed(
        subject=subject,
        release=release,
        torch_npu=torch_npu,
        torch=torch,
        files={package: _file(package, search) for package in ("torch_npu", "torch")},
        search=search,
        path=path.resolve() if path else None,
    )
    if subject.preamble is not None and not installed.has(subject.preamble):
        raise Unavailable(
            f"subject {name!r} needs the module {subject.preamble}, which is not installed; {subject.remedy}"
        )
    if subject.preamble is not None and not installed.defines(subject.preamble, "enable"):
        raise Unavailable(
            f"subject {name!r} is not usable yet: the installed {subject.preamble} holds mechanisms only and has no "
            "enable(); judge the wheel alone with --subject stock"
        )
    return installed


def interpreter() -> list[str]:
    """The command that starts an interpreter: no user site, and (-P) no script or working directory on sys.path."""
    return [sys.executable, "-s", *(["-P"] if sys.version_info >= (3, 11) else [])]


def _search() -> list[str]:
    """sys.path of a child. Asked of one: this process's own has PYTHONPATH, the user site and what pytest added."""
    command = [*interpreter(), "-c", "import json, sys; print(json.dumps([entry for entry in sys.path if entry]))"]
    return json.loads(subprocess.run(command, env={}, check=True, capture_output=True).stdout)


def _version(package: str, search: Sequence[str]) -> str | None:
    for distribution in importlib.metadata.distributions(name=package, path=list(search)):
        return distribution.version
    return None


def _file(package: str, search: Sequence[str]) -> str | None:
    spec = PathFinder.find_spec(package, list(search))
    return spec.origin if spec is not None else None


def contradiction(installed: Installed, reported: dict) -> str | None:
    """What a child says it loaded against what is installed: the difference in words, or None.

    `reported` maps a package to {"version", "file"}; a package that was not loaded is not in it.
    """
    for other in SUBJECTS.values():
        if other.preamble in reported and other.preamble != installed.subject.preamble:
            return (
                f"{other.preamble} is active in this environment, so the subject is {other.name}, not "
                f"{installed.subject.name}; run `python -m {other.preamble} disable`, or use --subject {other.name}"
            )
    for package, expected in (("torch", installed.torch), ("torch_npu", installed.torch_npu)):
        entry = reported.get(package)
        if not isinstance(entry, dict):
            continue
        if not _same_version(entry.get("version"), expected):
            return (
                f"the interpreter loaded {package} {entry.get('version')} from {entry.get('file')}, but the installed "
                f"metadata says {expected}: the verdict would be about something else than the header says"
            )
        file, wanted = entry.get("file"), installed.files[package]
        if file and wanted and Path(file).resolve() != Path(wanted).resolve():
            return (
                f"the interpreter loaded {package} from {file}, but the installed one is {wanted}: "
                "the verdict would be about something else than the header says"
            )
    return None


def _same_version(reported: object, expected: str) -> bool:
    """Equal; a local part (+cpu, +git…) counts only when both state one."""
    try:
        left, right = Version(str(reported)), Version(expected)
    except InvalidVersion:
        return reported == expected
    if left.public != right.public:
        return False
    return left.local == right.local or not (left.local and right.local)
