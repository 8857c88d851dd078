"""Builds the simulator's libraries for the torch and torch_npu installed here, once per version of each and per source.

Finds both packages without importing them: an environment without CANN cannot import torch_npu before this has run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import simnpu

VERSION = simnpu.version
SOURCE = Path(__file__).parent / "csrc"
RUNTIME_LIBRARY = "libsimnpu.so"
CANN_HEADERS = "include/third_party/acl/inc"  # where every release of the wheel ships them
JOBS = 2

Progress = Callable[[str], None]


class BuildError(RuntimeError):
    """The simulator cannot be built here; the message says why and what to do."""


@dataclass(frozen=True)
class Tools:
    """What a build needs from the machine."""

    torch: Path
    torch_version: str
    torch_npu: Path
    torch_npu_version: str
    cmake: str
    ninja: str
    compiler: str
    compiler_version: str


def cache_root() -> Path:
    """$SIMNPU_CACHE, else $XDG_CACHE_HOME/simnpu, else ~/.cache/simnpu.

    Raises BuildError where there is no home directory, and for a directory in which somebody else could put the
    libraries and compilers that are run from there: it must be this user's, or root's, and nobody else may write to it.
    """
    if chosen := os.environ.get("SIMNPU_CACHE"):
        root = Path(chosen)
    elif base := os.environ.get("XDG_CACHE_HOME"):
        root = Path(base) / "simnpu"
    else:
        try:
            root = Path.home() / ".cache" / "simnpu"
        except RuntimeError:  # a container's user id that has neither HOME nor an entry in /etc/passwd
            raise BuildError(
                f"user id {os.getuid()} has no home directory to keep a cache in. "
                "Remedy: set SIMNPU_CACHE (or HOME) to a directory of your own"
            ) from None
    _refuse_foreign(root)
    return root


def _refuse_foreign(root: Path) -> None:
    try:
        found = root.stat()
    except OSError:  # made, or complained of, when something is put there
        return
    if found.st_uid not in {os.geteuid(), 0}:
        wrong = f"belongs to user id {found.st_uid}, not to yours ({os.geteuid()})"
    elif found.st_mode & stat.S_IWOTH:
        wrong = "can be written by everybody"
    else:
        return
    raise BuildError(
        f"the cache {root} {wrong}, and what lies there would be run as you. "
        "Remedy: set SIMNPU_CACHE to a directory of your own that nobody else can write to"
    )


def find_package(name: str) -> tuple[Path, str]:
    """Directory and version of an installed package. Raises BuildError."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        raise BuildError(
            f"{name} is not installed for {sys.executable}. The simulator is compiled for the installed torch_npu and "
            f"its torch. Remedy: install torch (CPU build) and the torch_npu of the same release into this environment."
        )
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    return Path(spec.origin).parent, version


def _program(name: str, remedy: str) -> str:
    # Beside the interpreter first: that is where `pip install cmake ninja` puts them, active environment or not.
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=search)
    if found is None:
        raise BuildError(f"{name} is missing. Remedy: {remedy}")
    return found


def find_compiler() -> tuple[str, str]:
    """Path and version of the C++ compiler ($CXX, else g++, else clang++). Raises BuildError."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++"]
    for name in names:
        if found := shutil.which(name):
            # One flag that both compilers take, answered without compiling anything.
            output = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False)
            if output.returncode == 0:
                return found, output.stdout.splitlines()[0]
    raise BuildError(
        f"no C++ compiler found (looked for {', '.join(names)}). Remedy: install g++ 11 or newer (apt-get install "
        "g++), or set CXX to a compiler with C++20."
    )


def find_cann_headers() -> Path:
    """CANN's header that the torch_npu wheel ships. Raises BuildError."""
    torch_npu, _ = find_package("torch_npu")
    header = torch_npu / CANN_HEADERS / "acl" / "acl_rt.h"
    if not header.is_file():
        raise BuildError(
            f"{torch_npu} has no {CANN_HEADERS}/acl/acl_rt.h, so its CANN interface is unknown. Remedy: install "
            "torch_npu from its released wheel; a source tree without built headers will not do."
        )
    return header


def find_cmake() -> str:
    """Path of cmake. Raises BuildError."""
    return _program("cmake", "pip install 'cmake>=3.25' into this environment")


def find_ninja() -> str:
    """Path of ninja. Raises BuildError."""
    return _program("ninja", "pip install ninja into this environment")


@cache
def find_tools() -> Tools:
    """Everything a build needs, or BuildError for the first thing that is missing."""
    torch_npu, torch_npu_version = find_package("torch_npu")
    torch, torch_version = find_package("torch")
    find_cann_headers()
    compiler, compiler_version = find_compiler()
    return Tools(
        torch=torch,
        torch_version=torch_version,
        torch_npu=torch_npu,
        torch_npu_version=torch_npu_version,
        cmake=find_cmake(),
        ninja=find_ninja(),
        compiler=compiler,
        compiler_version=compiler_version,
    )


def source_hash() -> str:
    """Eight hex digits over every source file of the libraries."""
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCE.rglob("*") if p.suffix in {".cpp", ".h", ".txt", ".cmake", ".inc", ".def"}):
        if path.relative_to(SOURCE).parts[0] == "tests":
            continue
        digest.update(str(path.relative_to(SOURCE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def build_id() -> str:
    """Names what the simulator is made of: its version, torch, torch_npu, its source. Raises BuildError."""
    tools = find_tools()
    return f"{VERSION} torch {tools.torch_version} torch_npu {tools.torch_npu_version} src {source_hash()}"


def _key(tools: Tools, source: str) -> str:
    # The place of torch is part of the key: the operator library finds torch's libraries by their path.
    facts = "\0".join(
        [tools.torch_version, str(tools.torch), tools.torch_npu_version, str(tools.torch_npu), tools.compiler_version]
    )
    machine = hashlib.sha256(facts.encode()).hexdigest()[:8]
    return f"{tools.torch_npu_version}-{machine}-{source}"


def library_dir() -> Path | None:
    """The directory of libraries built from today's source, or None if there is none yet. Raises BuildError."""
    directory = cache_root() / "built" / _key(find_tools(), source_hash()) / "lib"
    return directory if (directory / RUNTIME_LIBRARY).is_file() else None


def say_on_stderr(line: str) -> None:
    """The progress of a build that nobody listens to otherwise."""
    print(f"simnpu: {line}", file=sys.stderr, flush=True)


def _opened(path: Path) -> IO[bytes]:
    try:
        # Neither followed nor waited for, should it be a link or a pipe.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600), "rb")
    except OSError as error:
        raise BuildError(
            f"cannot open {path}: {error.strerror}. Remedy: set SIMNPU_CACHE to a directory of your own"
        ) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BuildError(f"{path} is no regular file. Remedy: remove it, or set SIMNPU_CACHE to another directory")
    return file


@contextlib.contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """One process at a time is inside; `progress` hears of it when another one is."""
    with _opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is building the simulator; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_logged(command: list[str], log: Path, progress: Progress) -> None:
    """Runs a command of a build, its output into `log`, its counts to `progress`. Raises BuildError."""
    tail: list[str] = []
    with (
        log.open("a") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        file.write("$ " + " ".join(command) + "\n")
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            file.flush()
            tail = [*tail, line.rstrip()][-40:]
            if line.startswith("["):
                progress(line.rstrip())
    code = process.returncode
    if code != 0:
        shown = "\n".join(tail)
        raise BuildError(
            f"the build failed: `{command[0]}` ended with {code}. The whole log is {log}. Its end:\n{shown}\n"
            "Remedy: what these lines ask for; where they name nothing, check that the compiler supports C++20 (g++ 11 "
            "or newer) and that the disk is not full; then run `python -m simnpu build` again."
        )


def build(progress: Progress | None = None) -> Path:
    """Builds the libraries if today's source is not built yet. Returns their directory.

    `progress` receives a line now and then; by default they go to stderr. Safe to call from many processes at once: one
    builds, the others wait. Raises BuildError.
    """
    if done := library_dir():
        return done
    say = progress or say_on_stderr
    tools = find_tools()
    root = cache_root()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"cannot create the cache {root}: {error}. Remedy: set SIMNPU_CACHE to a writable directory"
        ) from error
    with locked(root / "build.lock", say):
        while True:
            if done := library_dir():
                return done
            source = source_hash()
            _compile(tools, source, root, say)
            # Sources edited during the build would be published under the wrong name: then go round again.
            if source_hash() == source:
                return _publish(tools, source, root, say)


def _work_dir(tools: Tools, root: Path) -> Path:
    # Kept between builds, so that an edited source costs its own compilation only. One per set of tools and source.
    place = hashlib.sha256(f"{_key(tools, '')}\0{SOURCE}".encode()).hexdigest()[:12]
    return root / "work" / place


def _compile(tools: Tools, source: str, root: Path, say: Progress) -> None:
    work = _work_dir(tools, root)
    work.mkdir(parents=True, exist_ok=True)
    log = root / "build.log"
    log.write_text(f"simnpu {VERSION} src {source}, torch {tools.torch_version}, torch_npu {tools.torch_npu_version}\n")
    say(f"building the simulator for torch_npu {tools.torch_npu_version} (about a minute the first time; log: {log})")
    run_logged(
        [
            tools.cmake,
            *("-S", str(SOURCE), "-B", str(work), "-G", "Ninja"),
            f"-DCMAKE_MAKE_PROGRAM={tools.ninja}",
            f"-DCMAKE_CXX_COMPILER={tools.compiler}",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DSIMNPU_TORCH_DIR={tools.torch}",
            f"-DSIMNPU_TORCH_NPU_DIR={tools.torch_npu}",
            f"-DSIMNPU_TORCH_VERSION={tools.torch_version}",
            f"-DSIMNPU_TORCH_NPU_VERSION={tools.torch_npu_version}",
        ],
        log,
        say,
    )
    run_logged([tools.cmake, "--build", str(work), "--parallel", str(JOBS)], log, say)


def _publish(tools: Tools, source: str, root: Path, say: Progress) -> Path:
    target = root / "built" / _key(tools, source)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=root, prefix="publish-"))
    try:
        shutil.copytree(_work_dir(tools, root) / "lib", staging / "lib")
        _make_cann_home(staging / "cann", tools)
        if target.exists():  # without its runtime library, else library_dir() had found it
            shutil.rmtree(target)
        staging.chmod(0o755)
        staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    say(f"built: {target / 'lib'}")
    return target / "lib"


def _make_cann_home(home: Path, tools: Tools) -> None:
    # What torch_npu looks for in ASCEND_HOME_PATH before it believes that CANN is installed.
    for name in ("runtime", "compiler", "opp", "lib64", "toolkit"):
        (home / name).mkdir(parents=True)
    (home / "version.cfg").write_text("# Simulated CANN\n")
    # What Triton compiles its host code against: our header of the runtime, the wheel's own ones for the rest.
    shutil.copytree(SOURCE / "home" / "include", home / "include")
    for name in ("acl", "profiling"):
        if (headers := tools.torch_npu / CANN_HEADERS / name).is_dir():
            (home / "include" / name).symlink_to(headers)
    for name in ("libruntime.so", "libascendcl.so"):
        (home / "lib64" / name).symlink_to(Path("..", "..", "lib", name))
