"""`clang++` as triton-ascend calls it: the launchers of kernels, compiled once per machine instead of once per process.

A program of its own (`program()` says where), started for each launcher, so it imports little. Every other call of
clang++ goes to the real one, unchanged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

ROOT_VARIABLE = "SIMNPU_CACHE"
MARK = "# clang++ of the simulated NPU"
LIMIT = 1 << 30
"""Bytes that the entries may have; those unused for longest go first."""
SNAPSHOTS = 16
"""How many copies of headers are kept."""
TIMEOUT_VARIABLE = "SIMNPU_COMPILE_TIMEOUT"
TIMEOUT = 600
"""Seconds that one run of the real compiler may take, and the wait for another process that makes the same."""
HEADER = "precompiled.h"
PLACEHOLDER = b"The precompiled header is shared; it is kept below $SIMNPU_CACHE.\n"
# What changes the compiler's output besides its arguments.
VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS")
# Beside a directory of headers, what tells their version: Python's, torch's and torch_npu's, pybind11's, Triton's.
VERSIONS = ("patchlevel.h", "../version.py", "../_version.py", "../../__init__.py")


@dataclass
class Call:
    """A call of clang++ as triton-ascend makes it: one source, compiled and linked, or one header, precompiled."""

    source: str
    output: str
    header: bool
    flags: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    precompiled: str | None = None
    """The header whose precompiled form the source begins with."""


def understand(arguments: Sequence[str]) -> Call | None:
    """The call, or None for one that triton-ascend does not make."""
    rest, sources, outputs = list(arguments), [], []
    call = Call("", "", header=False)
    while rest:
        argument = rest.pop(0)
        if argument in {"-x", "-include", "-o"}:
            if not rest:
                return None
            value = rest.pop(0)
            if argument == "-o":
                outputs.append(value)
            elif argument == "-include" and Path(value).name == HEADER:
                call.precompiled = value
            elif argument == "-x" and value == "c++-header":
                call.header = True
            else:
                return None
        elif not argument.startswith("-"):
            sources.append(argument)
        elif argument.startswith(("-L", "-l")) or argument == "-shared":
            call.links.append(argument)
        elif argument.startswith("-I") and argument != "-I":
            call.includes.append(argument[2:])
        elif argument in {"-w", "-fPIC", "-Winvalid-pch"} or argument.startswith(("-D_GLIBCXX", "-std=")):
            call.flags.append(argument)
        else:
            return None
    if len(sources) != 1 or len(outputs) != 1 or "-shared" not in call.links:
        return None
    if not any(directory.endswith("/triton/backends/ascend") for directory in call.includes):
        return None
    call.source, call.output = sources[0], outputs[0]
    if call.header:
        return call if Path(call.source).name == HEADER else None
    # The directory of the header belongs to one process. Triton names it even where it does not ask for the header.
    for directory in call.includes:
        if call.precompiled is None and Path(directory, HEADER).is_file():
            call.precompiled = str(Path(directory, HEADER))
    return call


def real_compiler(path: str | None = None) -> str | None:
    """clang++-19, else a clang++ that is not this program, else g++, by PATH."""
    directories = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    for name in ("clang++-19", "clang++", "g++"):
        for directory in directories:
            found = shutil.which(name, path=directory)
            if found and not (name == "clang++" and _is_this_program(found)):
                return found
    return None


def _is_this_program(path: str) -> bool:
    with Path(path).open("rb") as file:
        return MARK.encode() in file.read(200)


class Overdue(Exception):
    """The real compiler did not end in time, and was ended."""


def timeout() -> int | None:
    """Seconds by the environment, None for no limit. Raises ValueError for a value that cannot be understood."""
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{TIMEOUT_VARIABLE}={text} cannot be understood: give seconds, or 0 for no limit")
    return int(text or TIMEOUT) or None


def _run(command: Sequence[str], *, capture: bool = False) -> tuple[int, bytes]:
    """The command's code and, captured, what it says on stderr. Raises Overdue."""
    pipe = subprocess.PIPE if capture else None
    limit = timeout()
    # A session of its own, so that the programs that it starts in turn can be ended with it: they hold the pipes.
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Overdue(
                f"{command[0]} was not done after {limit} s. Remedy: set {TIMEOUT_VARIABLE} to more seconds, or to 0 "
                "for no limit"
            ) from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said or b""


def _lock(file: IO[bytes]) -> None:
    """Raises TimeoutError when another process holds the lock for longer than any compile takes."""
    limit = timeout()

    def give_up(*_: object) -> NoReturn:
        raise TimeoutError(f"another process has held {file.name} for {limit} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(limit or 0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Cache:
    """Entries by key, below one directory, shared by processes. An entry's name holds the checksum of its content."""

    def __init__(self, root: Path, limit: int = LIMIT) -> None:
        self.root = root
        self.limit = limit

    @contextlib.contextmanager
    def locked(self, kind: str, key: str) -> Iterator[None]:
        """Holds the lock for a key. A launcher's may be held while that for a header is taken, not the reverse."""
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        # A fixed number of files, so that none need be removed: that could not be done safely.
        with (locks / f"{kind}-{key[:2]}").open("ab") as file:
            _lock(file)
            yield

    def _directory(self, key: str) -> Path:
        return self.root / "entries" / key[:2]

    def find(self, key: str) -> tuple[Path, bytes] | None:
        """The entry's file and content. One whose content is not what was stored is removed."""
        for path in sorted(self._directory(key).glob(f"{key}-*")):
            with contextlib.suppress(FileNotFoundError):  # another process has removed it just now
                try:
                    content = path.read_bytes()
                except (IsADirectoryError, PermissionError):
                    self.remove(path)
                    continue
                if path.name == _entry_name(key, content):
                    os.utime(path)
                    return path, content
                self.remove(path)
        return None

    def store(self, key: str, made: Path) -> Path:
        """Takes a copy of a file. Raises OSError, and leaves nothing half done then."""
        directory = self._directory(key)
        directory.mkdir(parents=True, exist_ok=True)
        content = made.read_bytes()
        target = directory / _entry_name(key, content)
        handle, name = tempfile.mkstemp(dir=self.root, prefix="new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).rename(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self.bound(target)
        return target

    def remove(self, path: Path) -> None:
        """Removes an entry; another process may have done so."""
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def snapshot(self, files: dict[str, bytes]) -> Path:
        """A directory with these files, the same one for the same content, times included. Raises OSError."""
        digest = hashlib.sha256()
        for name in sorted(files):
            digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
        target = self.root / "headers" / digest.hexdigest()[:24]
        if target.is_dir():
            if all(_holds(target / name, content) for name, content in files.items()):
                os.utime(target)
                return target
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix="new-"))
        try:
            for name, content in files.items():
                path = work / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                # A precompiled header is refused when a file that it was made from has another time.
                os.utime(path, (0, 0))
            with contextlib.suppress(FileExistsError):
                work.rename(target)
        except OSError:
            # Renamed onto one that another process has made: a directory with files in it is not replaced.
            if not target.is_dir():
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return target

    def bound(self, keep: Path) -> None:
        """Removes what was unused for longest, until the entries have three quarters of the limit. Spares `keep`."""
        entries, total = [], 0
        for path in self.root.glob("entries/*/*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_mtime, path, status.st_size))
                total += status.st_size
        if total > self.limit:
            for _, path, size in sorted(entries):
                if path != keep and total > self.limit * 3 // 4:
                    self.remove(path)
                    total -= size
        # Left behind by processes that were killed an hour ago or earlier.
        newest = keep.stat().st_mtime
        for path in self.root.glob("new-*"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < newest - 3600:
                    self.remove(path)
        copies = []
        for path in self.root.glob("headers/*"):
            with contextlib.suppress(FileNotFoundError):
                copies.append((path.stat().st_mtime, path))
        for _, path in sorted(copies)[:-SNAPSHOTS]:
            shutil.rmtree(path, ignore_errors=True)


def _entry_name(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()}"


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _tree(home: Path) -> dict[str, bytes]:
    """The headers of the simulated CANN, links followed: torch_npu's are among them."""
    files = {}
    for part in ("include", "pkg_inc"):
        for folder, _, names in os.walk(home / part, followlinks=True):
            for name in names:
                path = Path(folder, name)
                files[str(path.relative_to(home))] = path.read_bytes()
    return files


class Compiler:
    """Serves the calls that triton-ascend makes from a cache. A cache that cannot be used costs time, nothing else."""

    def __init__(self, real: str, cache: Cache) -> None:
        self.real = real
        self.cache = cache
        self.home = Path(os.environ.get("ASCEND_HOME_PATH", "/nonexistent"))
        self.clang = "clang" in Path(real).resolve().name

    def serve(self, call: Call, arguments: Sequence[str]) -> int:
        """Does what the call asks for; returns the compiler's code."""
        try:
            return self._header(call, arguments) if call.header else self._launcher(call, arguments)
        except OSError as error:
            print(f"clang++: the cache of launchers cannot be used ({error}); going on without it", file=sys.stderr)
        return self._plain(call, arguments)

    def _plain(self, call: Call, arguments: Sequence[str]) -> int:
        command = [self.real, *arguments]
        if call.precompiled is not None and "-include" in command:
            made = Path(f"{call.precompiled}.gch")
            if not made.is_file() or made.read_bytes()[: len(PLACEHOLDER)] == PLACEHOLDER:
                # The source includes the header itself.
                at = command.index("-include")
                del command[at : at + 2]
        return _run(command)[0]

    def _key(self, call: Call, headers: Path, *more: str) -> str:
        """Over all that the output depends on, and nothing that is another in each process."""
        compiler = Path(self.real).resolve()
        status = compiler.stat()
        facts = [
            Path(__file__).read_text(encoding="utf-8"),
            str(compiler),
            str(status.st_size),
            str(status.st_mtime_ns),
        ]
        facts += [f"{name}={os.environ.get(name)}" for name in VARIABLES]
        private = None if call.precompiled is None else str(Path(call.precompiled).parent)
        for directory in call.includes:
            if directory == private:
                continue
            facts.append(self._moved(directory, headers))
            for name in VERSIONS:
                path = Path(directory, name)
                facts.append(path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "")
        facts += [self._moved(link, headers) for link in call.links]
        facts += [*sorted(call.flags), *more]
        return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]

    def _moved(self, text: str, headers: Path) -> str:
        # The simulator lies elsewhere after each change of its source, its headers seldom change.
        return text.replace(str(self.home), str(headers))

    def _header(self, call: Call, arguments: Sequence[str]) -> int:
        if not self.clang:
            return self._plain(call, arguments)
        if self._precompiled(call, Path(call.source)) is None:
            return self._plain(call, arguments)
        # Triton looks whether the file is there, and names the header when it compiles a launcher.
        Path(call.output).write_bytes(PLACEHOLDER)
        return 0

    def _precompiled(self, call: Call, header: Path) -> Path | None:
        """The header's precompiled form, made if need be; None when it does not compile. Raises OSError."""
        text = header.read_bytes()
        headers = self.cache.snapshot(_tree(self.home))
        alike = Call("", "", header=True, flags=[flag for flag in call.flags if flag != "-Winvalid-pch"])
        alike.includes = [directory for directory in call.includes if directory != str(header.parent)]
        key = self._key(alike, headers, "precompiled", hashlib.sha256(text).hexdigest())
        if found := self.cache.find(key):
            return found[0]
        with self.cache.locked("header", key):
            if found := self.cache.find(key):
                return found[0]
            copy = self.cache.snapshot({HEADER: text}) / HEADER
            with tempfile.TemporaryDirectory(dir=self.cache.root, prefix="new-header-") as work:
                made = Path(work, "header.pch")
                command = [self.real, "-x", "c++-header", str(copy), *self._common(alike, headers)]
                # The templates that every launcher instantiates: a third of the time that each takes.
                command += ["-fpch-instantiate-templates", "-o", str(made)]
                code, _ = _run(command, capture=True)
                return self.cache.store(key, made) if code == 0 else None

    def _common(self, call: Call, headers: Path) -> list[str]:
        return [*call.flags, *(f"-I{self._moved(directory, headers)}" for directory in call.includes)]

    def _launcher(self, call: Call, arguments: Sequence[str]) -> int:
        headers = self.cache.snapshot(_tree(self.home))
        texts = [Path(call.source).read_bytes()]
        if call.precompiled is not None:
            texts.append(Path(call.precompiled).read_bytes())
        key = self._key(call, headers, "launcher", *(hashlib.sha256(text).hexdigest() for text in texts))
        if self._deliver(key, call):
            return 0
        with self.cache.locked("launcher", key):
            if self._deliver(key, call):
                return 0
            code = self._compile(call, headers, arguments)
            if code == 0:
                try:
                    self.cache.store(key, Path(call.output))
                except OSError as error:
                    print(f"clang++: {call.output} is made, but not kept for others: {error}", file=sys.stderr)
            return code

    def _deliver(self, key: str, call: Call) -> bool:
        found = self.cache.find(key)
        if found is None:
            return False
        output = Path(call.output)
        try:
            output.write_bytes(found[1])
        except OSError:
            output.unlink(missing_ok=True)
            raise
        output.chmod(0o755)
        return True

    def _compile(self, call: Call, headers: Path, arguments: Sequence[str]) -> int:
        if call.precompiled is None or not self.clang:
            return self._plain(call, arguments)
        for _ in range(2):
            precompiled = self._precompiled(call, Path(call.precompiled))
            if precompiled is None:
                break
            command = [self.real, "-include-pch", str(precompiled), call.source, *self._common(call, headers)]
            code, said = _run([*command, *call.links, "-o", call.output], capture=True)
            if code == 0:
                return 0
            if b"precompiled header" not in said and b"PCH file" not in said:
                break
            # A file that it was made from has changed, or another process has removed it: once more.
            self.cache.remove(precompiled)
        # The plain compiler has the last word, so that its messages name what the caller knows.
        return self._plain(call, arguments)


def program(root: Path) -> Path:
    """The directory that holds this program as `clang++`; makes it if need be. Raises OSError."""
    import shlex

    text = f'#!/bin/sh\n{MARK}\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(__file__)} "$@"\n'
    directory = root / "launchers" / "bin" / hashlib.sha256(text.encode()).hexdigest()[:12]
    target = directory / "clang++"
    if not target.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o755)
        Path(name).rename(target)
    return directory


def main(arguments: Sequence[str]) -> int:
    real = real_compiler()
    if real is None:
        print("clang++: no C++ compiler found. Remedy: apt-get install clang-19", file=sys.stderr)
        return 1
    root, call = os.environ.get(ROOT_VARIABLE), understand(arguments)
    if call is None or not root:
        os.execv(real, [real, *arguments])
    try:
        # Links followed: the keys hold the place.
        return Compiler(real, Cache((Path(root) / "launchers").resolve())).serve(call, arguments)
    except (Overdue, ValueError) as error:
        print(f"clang++ (simulated NPU): {call.source} cannot be compiled: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
