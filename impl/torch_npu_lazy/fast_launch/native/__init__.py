"""The C++ part: where it is kept, how it is built, and how it is loaded."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NAME = "_fast_launch"
SOURCE = Path(__file__).with_name("fast_launch.cpp")
CACHE = "TORCH_NPU_LAZY_CACHE"


class Unavailable(Exception):
    """The C++ part is not there. str() says why, and what to do about it."""


def load() -> Any:
    """The extension module, built if it is not in the cache. Raises Unavailable."""
    path = build()
    # By path: it need not be on sys.path, and its name is not to be imported.
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}. Remedy: delete it, it is built again") from error
    return module


def build() -> Path:
    """Where the extension is, built if need be, which takes about 20 s of processor time. Several processes may ask at
    once: one builds, the others wait. Raises Unavailable."""
    compiler, path = _compiler(), kept()
    if path.exists():
        return path
    with _alone(path.parent):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as scratch:
                made = Path(scratch, path.name)
                _run([*compiler, *_options(), str(SOURCE), "-o", str(made), *_libraries()])
                made.replace(path)
    return path


def kept() -> Path:
    """Where the extension is, or will be. Raises Unavailable."""
    return _directory() / f"{_key(_compiler())}{sysconfig.get_config_var('EXT_SUFFIX')}"


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Holds what the system takes back when this process ends, however it ends."""
    with open(directory / ".lock", "w", encoding="utf-8") as lock:  # noqa: PTH123
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compiler() -> list[str]:
    given = shlex.split(os.environ.get("CXX", ""))
    for words in (given,) if given else (["c++"], ["g++"], ["clang++"]):
        if shutil.which(words[0]):
            return words
    raise Unavailable(
        f"no C++ compiler: there is no {given[0]}, which CXX names. Remedy: name another one, or unset CXX"
        if given
        else "no C++ compiler. Remedy: install g++ or clang++, or name one in CXX"
    )


def _directory() -> Path:
    """The cache, which nobody else can write to: what lies in it is loaded."""
    given = os.environ.get(CACHE)
    try:
        where = Path(given or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch_npu_lazy"))
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = where.stat()
    except (OSError, RuntimeError) as error:
        raise Unavailable(f"no directory to build in: {error}. Remedy: name one in {CACHE}") from error
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(
            f"{where} belongs to another user, or others can write to it. "
            f"Remedy: name a directory of your own in {CACHE}"
        )
    return where.resolve()


def _key(compiler: list[str]) -> str:
    """Of what the extension depends on: the wheel, torch, Python, the compiler, the source."""
    try:
        versions = [importlib.metadata.version(name) for name in ("torch", "torch_npu")]
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed") from error
    parts = (*versions, sys.version, _run([*compiler, "--version"]), *_options(), SOURCE.read_text("utf-8"))
    return f"{NAME}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def _package(name: str) -> Path:
    """Where a package lies; it need not be imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Unavailable(f"there is no package {name}")
    return Path(spec.origin).parent


def _options() -> list[str]:
    torch, wheel = _package("torch") / "include", _package("torch_npu") / "include"
    headers = (torch, torch / "torch/csrc/api/include", wheel, wheel / "third_party/acl/inc")
    return [
        *("-std=c++20", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden"),
        f"-DTORCH_EXTENSION_NAME={NAME}",
        *(word for path in (*headers, sysconfig.get_path("include")) for word in ("-isystem", str(path))),
    ]


def _libraries() -> list[str]:
    folders = [_package("torch") / "lib", _package("torch_npu") / "lib"]
    names = ("c10", "torch_cpu", "torch_python", "torch_npu")
    return [*(f"-L{folder}" for folder in folders), *(f"-l{name}" for name in names), "-ldl"]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run: {error}. Remedy: name another compiler in CXX") from error
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise Unavailable(f"{command[0]} ended with {done.returncode}:\n{last}")
    return done.stdout
