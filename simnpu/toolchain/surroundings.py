"""What a process that compiles Triton kernels for the simulated NPU finds around it: the compilers on PATH, and on
PYTHONPATH what the triton-ascend wheel lacks.

Without triton-ascend, or without what the compiler is built from, nothing is added and nothing fails.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from simnpu.build import BuildError, cache_root
from simnpu.toolchain import launchers

DISTRIBUTION = "triton-ascend"
COMMUNITY = "triton"
ACTIVATED = ("PATH", "PYTHONPATH", launchers.ROOT_VARIABLE)
"""The variables that activate() changes."""
PYTHON = Path(__file__).with_name("python")
"""Holds a sitecustomize.py and nothing else."""
FIRST_KERNEL = Path(__file__).with_name("first_kernel.py")


def put_first(directory: str, path: str) -> str:
    """A search path with the directory at its head and nowhere else.

    An empty part stands for the working directory, in PATH, PYTHONPATH and LD_LIBRARY_PATH alike: one that is there is
    the user's and stays, and an empty path, which has no part, gets none.
    """
    rest = [part for part in path.split(os.pathsep) if part != directory] if path else []
    return os.pathsep.join([directory, *rest])


def version_of(distribution: str) -> str | None:
    """The version of an installed distribution, None when it is absent."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def missing() -> str | None:
    """Why no kernel can be compiled here, in one sentence with its remedy; None when it can."""
    if version_of(DISTRIBUTION) is None:
        if community := version_of(COMMUNITY):
            return (
                f"community triton {community} is installed in the place of triton-ascend (they share the import "
                "name); uninstall it and run `make setup`"
            )
        return "triton-ascend is not installed; run `make setup`"
    from simnpu.toolchain import build

    return build.missing()


def activate(environment: dict[str, str], progress: Callable[[str], None] | None = None) -> None:
    """Adds to an environment what compiles kernels, if that can be had; builds the compiler first if need be.

    Raises simnpu.build.BuildError when the compiler ought to build and does not.
    """
    if missing() is not None:
        return
    from simnpu.toolchain import build

    compiler = build.build(progress)
    root = cache_root().absolute()
    try:
        cxx = launchers.program(root)
    except OSError as error:
        raise BuildError(
            f"cannot write into the cache {root}: {error}. Remedy: set SIMNPU_CACHE to a writable directory"
        ) from error
    # The child may have another home; what it compiles is for all.
    environment[launchers.ROOT_VARIABLE] = str(root)
    for directory in (str(cxx), str(compiler / "bin")):
        environment["PATH"] = put_first(directory, environment.get("PATH", os.defpath))
    environment["PYTHONPATH"] = put_first(str(PYTHON), environment.get("PYTHONPATH", ""))


def prepare(environment: Mapping[str, str], progress: Callable[[str], None]) -> None:
    """Runs a first kernel in an environment that activate() has completed, once per machine, so that no program waits
    for what all kernels share. One that does not run is told to `progress`, and is no reason to stop.
    """
    if missing() is not None:
        return
    places = [
        place for place in environment["PATH"].split(os.pathsep) if place.startswith(str(cache_root().absolute()))
    ]
    versions = [str(version_of(name)) for name in (DISTRIBUTION, "torch", "torch_npu")]
    facts = "\0".join([*places, *versions, sys.executable, Path(launchers.__file__).read_text(encoding="utf-8")])
    mark = cache_root() / "launchers" / f"prepared-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    if mark.is_file():
        return
    progress("compiling what the launchers of all kernels share (some seconds, once)")
    with tempfile.TemporaryDirectory(prefix="simnpu-first-kernel-") as place:
        done = subprocess.run(
            [sys.executable, "-s", str(FIRST_KERNEL)],
            env={**environment, "TRITON_CACHE_DIR": place},
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode == 0:
        try:
            mark.touch()
        except OSError as error:
            progress(f"cannot note in the cache that this is done, it will be tried again: {mark}: {error.strerror}")
        return
    last = "\n".join(done.stderr.splitlines()[-5:])
    progress(f"the first kernel did not run; `python -m simnpu run -- python {FIRST_KERNEL}` shows it all:\n{last}")
