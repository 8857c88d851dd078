"""Builds the kernel compiler against the machine's MLIR and LLVM, once per version of them and per source.

Nothing here needs torch or torch_npu: one compiler serves every release of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from simnpu import build as libraries
from simnpu.build import BuildError, Progress

SOURCE = Path(__file__).parent / "compiler"
SHARED_HEADER = Path(libraries.__file__).parent / "csrc" / "include" / "simnpu" / "kernel.h"
LLVM_VERSION = 19
PACKAGES = f"libmlir-{LLVM_VERSION}-dev llvm-{LLVM_VERSION}-dev clang-{LLVM_VERSION}"
"""Debian's names of what a build needs."""
COMPILER = "bin/bishengir-compile"


def missing() -> str | None:
    """What the machine lacks for the toolchain, with the remedy, in one sentence; None if it can be built."""
    if find_llvm() is not None:
        return None
    return (
        f"MLIR and LLVM {LLVM_VERSION}, on which the kernel toolchain is built, are not installed; remedy: "
        f"apt-get install --no-install-recommends {PACKAGES} (elsewhere set SIMNPU_LLVM to the prefix of an "
        f"LLVM {LLVM_VERSION} with MLIR)"
    )


@cache
def find_llvm() -> Path | None:
    """The prefix of an LLVM of the right version with MLIR's development files, None if there is none.

    $SIMNPU_LLVM, else where distributions put it, else what llvm-config says.
    """
    if chosen := os.environ.get("SIMNPU_LLVM"):
        places = [Path(chosen)]
    else:
        places = [Path(f"/usr/lib/llvm-{LLVM_VERSION}"), Path(f"/usr/lib64/llvm{LLVM_VERSION}")]
        if asked := shutil.which(f"llvm-config-{LLVM_VERSION}"):
            answer = subprocess.run([asked, "--prefix"], capture_output=True, text=True, timeout=60, check=False)
            places += [Path(line) for line in answer.stdout.splitlines()]
    for place in places:
        if (place / "lib/cmake/mlir/MLIRConfig.cmake").is_file() and (
            place / "lib/cmake/llvm/LLVMConfig.cmake"
        ).is_file():
            return place
    return None


def find_c_compiler(cxx: str) -> str:
    """The C compiler of a C++ compiler's family. Raises BuildError."""
    name = Path(cxx).name
    beside = Path(cxx).with_name(name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc"))
    if beside.is_file():
        return str(beside)
    if found := shutil.which("cc"):
        return found
    raise BuildError("no C compiler found. Remedy: install gcc (apt-get install gcc)")


def _key(llvm: Path, compiler: str) -> str:
    digest = hashlib.sha256()
    for path in [*sorted(SOURCE.iterdir()), SHARED_HEADER]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    version = (llvm / "lib/cmake/llvm/LLVMConfigVersion.cmake").read_text()
    digest.update("\0".join([str(llvm), version, compiler]).encode())
    return digest.hexdigest()[:12]


def directory() -> Path | None:
    """Where today's source has been built, None if it has not. Raises BuildError if it cannot be."""
    target = _target(*_tools())
    return target if (target / COMPILER).is_file() else None


def _tools() -> tuple[Path, str, str]:
    """LLVM's prefix, the C++ compiler and its version. Raises BuildError."""
    llvm = find_llvm()
    if llvm is None:
        raise BuildError(f"{missing()}")
    return llvm, *libraries.find_compiler()


def _target(llvm: Path, compiler: str, version: str) -> Path:
    return libraries.cache_root() / "toolchain" / _key(llvm, f"{compiler}\0{version}")


def build(progress: Progress | None = None) -> Path:
    """Builds the toolchain if today's source is not built yet. Returns a directory with bin/bishengir-compile in it.

    `progress` receives a line now and then; by default they go to stderr. Safe to call from many processes at once.
    Raises BuildError.
    """
    if done := directory():
        return done
    say = progress or libraries.say_on_stderr
    tools = _tools()
    target = _target(*tools)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with libraries.locked(target.parent / "build.lock", say):
            if not (target / COMPILER).is_file():
                _compile(*tools, target, say)
    except OSError as error:
        raise BuildError(
            f"cannot build the kernel toolchain in {target.parent}: {error}. Remedy: check that the disk is not full, "
            "or set SIMNPU_CACHE to another directory"
        ) from error
    return target


def _compile(llvm: Path, compiler: str, version: str, target: Path, say: Progress) -> None:
    log = target.parent / "build.log"
    log.write_text(f"kernel toolchain, LLVM {llvm}, {version}\n")
    say(f"building the kernel toolchain on {llvm} (about a minute, once; log: {log})")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as work:
        ninja = libraries.find_ninja()
        cmake = libraries.find_cmake()
        libraries.run_logged(
            [
                cmake,
                *("-S", str(SOURCE), "-B", work, "-G", "Ninja"),
                f"-DCMAKE_MAKE_PROGRAM={ninja}",
                f"-DCMAKE_CXX_COMPILER={compiler}",
                f"-DCMAKE_C_COMPILER={find_c_compiler(compiler)}",
                f"-DCMAKE_PREFIX_PATH={llvm}",
            ],
            log,
            say,
        )
        libraries.run_logged([cmake, "--build", work, "--parallel", str(libraries.JOBS)], log, say)
        staging = Path(tempfile.mkdtemp(dir=target.parent, prefix="publish-"))
        try:
            for part in ("bin", "lib", "libexec"):
                shutil.copytree(Path(work) / part, staging / part)
            # triton-ascend asks it whether it knows the device.
            (staging / "bin/bisheng").symlink_to("bishengir-compile")
            staging.chmod(0o755)
            if target.exists():  # without its compiler, else it had been found
                shutil.rmtree(target)
            staging.rename(target)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    say(f"built: {target}")
