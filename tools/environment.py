"""Puts one release of torch_npu into the environment of this interpreter, with the CPU build of torch and the
triton-ascend that go with it, and sees to the system's packages that compile kernels for the simulated NPU.

Exists because a resolver that is asked for plain `torch` fetches the CUDA build: gigabytes, and torch_npu cannot live
beside it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parent.parent

# What compiles kernels on the simulated NPU: libraries to build the compiler with, and the compiler of launchers.
SYSTEM_PACKAGES = ("libmlir-19-dev", "llvm-19-dev", "clang-19")
APT_LINE = f"apt-get install -y --no-install-recommends {' '.join(SYSTEM_PACKAGES)}"
PROGRESS_SECONDS = 5


class Refusal(Exception):
    """Something that the user has to decide or mend; its text names cause and remedy."""


@dataclass(frozen=True)
class Release:
    """A torch_npu version together with the torch and triton-ascend that go with it."""

    torch: str
    torch_npu: str
    triton_ascend: str
    init: str

    @property
    def cpu_torch(self) -> str:
        """The requirement that only a CPU build satisfies: the CUDA wheels carry no local version label."""
        return f"torch=={self.torch}+cpu"


@dataclass(frozen=True)
class Releases:
    """What releases.toml says."""

    default: str
    cpu_index: str
    by_name: dict[str, Release]

    @classmethod
    def read(cls, path: Path = ROOT / "releases.toml") -> Releases:
        """Raises Refusal when the file is missing, is no TOML, or lacks an entry."""
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            by_name = {name: Release(**fields) for name, fields in data["release"].items()}
            return cls(default=data["default"], cpu_index=data["cpu_index"], by_name=by_name)
        except OSError as error:
            raise Refusal(f"{path}: {error.strerror}. Run this from a complete checkout.") from error
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise Refusal(f"{path}: not a valid table of releases: {error}") from error

    def named(self, name: str | None) -> Release:
        """Raises Refusal for a release that the file does not know."""
        name = name or self.default
        if name not in self.by_name:
            raise Refusal(f"release {name!r} is not in releases.toml. Known: {', '.join(self.by_name)}.")
        return self.by_name[name]


def installed(distribution: str) -> str | None:
    """The version of an installed distribution, None when it is absent."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def cuda_of_torch() -> str | None:
    """The CUDA version that the installed torch was built for, None for a CPU build or no torch.

    Read from the text of torch/version.py: importing torch would load the very build that may be wrong.
    """
    try:
        version_file = importlib.metadata.distribution("torch").locate_file("torch/version.py")
        tree = ast.parse(Path(str(version_file)).read_text(encoding="utf-8"))
    except (importlib.metadata.PackageNotFoundError, FileNotFoundError):
        return None
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "cuda" for target in targets):
            value = node.value  # type: ignore[union-attr]
            return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return None


def pip(*arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs pip of this interpreter; the caller looks at the return code."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    return subprocess.run(command, check=False, text=True, capture_output=capture)


def must(result: subprocess.CompletedProcess[str], what: str) -> None:
    if result.returncode:
        raise Refusal(
            f"{what} could not be installed: pip ended with code {result.returncode}; its messages stand above."
        )


def refuse_cuda_build() -> None:
    """Raises Refusal when the environment holds a CUDA build of torch."""
    cuda = cuda_of_torch()
    if cuda is not None:
        raise Refusal(
            f"this environment ({sys.prefix}) holds torch {installed('torch')}, built for CUDA {cuda}; torch_npu "
            "cannot live beside it. Remove the environment (`make clean-env`) or uninstall torch there, then run "
            "`make setup`."
        )


def offered_by_pip(requirement: str, *links: str) -> tuple[str | None, str]:
    """Where pip, as configured here, would take a requirement from (None: it offers none), and pip's messages."""
    dry = ("install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-")
    result = pip(*dry, *links, requirement, capture=True)
    if result.returncode:
        return None, result.stderr
    return json.loads(result.stdout)["install"][0]["download_info"]["url"], result.stderr


def torch_among(wheels: Path, release: Release) -> str | None:
    """The requirement that the user's own build of torch satisfies: its wheel has a local label, `torch-X+LABEL-….whl`.

    None when the directory has none but CUDA builds, whose labels begin with "cu".
    """
    labels = {file.name.split("-")[1].partition("+")[2] for file in wheels.glob(f"torch-{release.torch}+*.whl")}
    usable = sorted(label for label in labels if not label.startswith("cu"))
    return f"torch=={release.torch}+{usable[0]}" if usable else None


def install_torch(release: Release, cpu_index: str, wheels: Path | None) -> None:
    """Installs a CPU build: the user's own, else that of pip's configuration, else that of the index of CPU wheels."""
    refuse_cuda_build()
    version = installed("torch")
    if version is not None and version.split("+")[0] == release.torch:
        print(f"torch {version}: already there", flush=True)
        return
    wanted = (torch_among(wheels, release) if wheels else None) or release.cpu_torch
    links = links_to(wheels)
    url, messages = offered_by_pip(wanted, *links)
    if url is not None:
        source = "the directory of wheels" if wheels and url.startswith(wheels.as_uri()) else "pip's own configuration"
        print(f"{wanted}: from {source} ({url})", flush=True)
        must(pip("install", "-qq", *links, wanted), wanted)
    else:
        print(f"{wanted}: pip's own configuration offers none, taking it from {cpu_index}", flush=True)
        result = pip("install", "-qq", "--extra-index-url", cpu_index, wanted)
        if result.returncode:
            print(messages, file=sys.stderr)
            raise Refusal(
                f"{wanted} is offered neither by pip's configuration nor by {cpu_index} for Python "
                f"{sys.version_info.major}.{sys.version_info.minor}. Put a CPU wheel of torch {release.torch} "
                "(torch-VERSION+LABEL-….whl) into a directory and run `make setup WHEELS=DIR`."
            )
    refuse_cuda_build()


def links_to(wheels: Path | None) -> tuple[str, ...]:
    """pip's arguments by which a directory of wheels is offered, too."""
    return ("--find-links", str(wheels)) if wheels else ()


def install_torch_npu(release: Release, wheels: Path | None) -> None:
    """Installs the wheel alone: its requirements name plain torch, and what it truly needs stands in pyproject.toml."""
    if installed("torch-npu") == release.torch_npu:
        print(f"torch_npu {release.torch_npu}: already there", flush=True)
        return
    print(f"torch_npu {release.torch_npu}: installing its wheel", flush=True)
    wanted = f"torch-npu=={release.torch_npu}"
    must(pip("install", "-qq", "--no-deps", *links_to(wheels), wanted), f"torch-npu {release.torch_npu}")


def install_triton_ascend(release: Release, wheels: Path | None) -> None:
    """Installs the wheel alone. Raises Refusal when the environment holds community Triton.

    Where no wheel is offered, as for a Python that the release does not know, says so and goes on.
    """
    wanted = f"triton-ascend=={release.triton_ascend}"
    version, community = installed("triton-ascend"), installed("triton")
    if community is not None:
        # Both own the directory `triton`: whichever comes second overwrites files of the first.
        both = " triton-ascend" if version is not None else ""
        raise Refusal(
            f"this environment ({sys.prefix}) holds community triton {community}, which has the import name and files "
            f"of triton-ascend. Remedy: `{sys.executable} -m pip uninstall triton{both}`, then `make setup`; or keep "
            "it and do without kernels on the NPU: `make setup TRITON=no`."
        )
    if version == release.triton_ascend:
        print(f"triton-ascend {version}: already there", flush=True)
        return
    links = links_to(wheels)
    url, messages = offered_by_pip(wanted, *links)
    if url is None:
        reason = messages.strip().splitlines()[-1] if messages.strip() else "pip gives no reason"
        print(
            f"{wanted}: not offered for Python {sys.version_info.major}.{sys.version_info.minor} ({reason}); going on "
            "without it, and what needs it will say so",
            flush=True,
        )
        return
    print(f"triton-ascend {release.triton_ascend}: installing its wheel", flush=True)
    must(pip("install", "-qq", "--no-deps", *links, wanted), wanted)


def missing_system_packages() -> list[str]:
    """Those of SYSTEM_PACKAGES that dpkg does not have; all of them where there is no dpkg."""
    query = shutil.which("dpkg-query")
    if query is None:
        return list(SYSTEM_PACKAGES)

    def has(package: str) -> bool:
        asked = [query, "--show", "--showformat=${Status}", package]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "install ok installed"

    return [package for package in SYSTEM_PACKAGES if not has(package)]


def install_system_packages() -> None:
    """Installs what compiles kernels, when root can; else prints the line to run. Either way the setup goes on."""
    if shutil.which("apt-get") is None:
        print(
            "kernels on the simulated NPU want LLVM, MLIR and clang 19 from this system's packages (on Debian: "
            f"{APT_LINE}); `python -m simnpu doctor` tells whether they are there",
            flush=True,
        )
        return
    missing = missing_system_packages()
    if not missing:
        return
    if os.geteuid() != 0:
        print(
            f"kernels on the simulated NPU want {', '.join(missing)}; all else works without. To have them, run:\n"
            f"  sudo {APT_LINE}",
            flush=True,
        )
        return
    log = ROOT / "build" / "apt.log"
    log.parent.mkdir(exist_ok=True)
    print(f"installing {', '.join(missing)} for kernels on the simulated NPU (log: {log})", flush=True)
    log.write_text("", encoding="utf-8")
    update = ["apt-get", "update", "-q"]
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]
    for command in (update, [*install, *missing]):
        code = logged(command, log)
        if code:
            print(
                f"warning: `{command[0]} {command[1]}` ended with code {code}; the end of {log}:\n{tail(log)}\n"
                f"Going on without kernels on the simulated NPU. To have them, run:\n  {APT_LINE}",
                flush=True,
            )
            return


def logged(command: list[str], log: Path) -> int:
    """Runs a command with its output in a file, telling now and then that it still runs. Returns its code."""
    begun = time.monotonic()
    with log.open("a", encoding="utf-8") as file:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment
        )
        while (code := ended(process, PROGRESS_SECONDS)) is None:
            print(f"  {time.monotonic() - begun:.0f} s: {tail(log, 1)[:100]}", flush=True)
        return code


def ended(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The code of a process, None when it still runs after so many seconds."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of a file."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/environment.py",
        description="Install a release of torch_npu, and the torch and triton-ascend that go with it, here.",
        epilog="`make setup` calls this after it has made .venv. Releases are listed in releases.toml.",
    )
    parser.add_argument("--release", metavar="NAME", help="a release of releases.toml (default: its `default`)")
    parser.add_argument(
        "--wheels",
        metavar="DIR",
        type=Path,
        help="a directory with wheels of your own, preferred for torch: any CPU build named torch-VERSION+LABEL-….whl",
    )
    parser.add_argument(
        "--no-triton",
        action="store_true",
        help="leave triton-ascend and the system's packages for compiling kernels as they are (make setup TRITON=no)",
    )
    parser.add_argument("--list", action="store_true", help="list the known releases and end")
    options = parser.parse_args(argv)
    try:
        releases = Releases.read()
        if options.list:
            for name, release in releases.by_name.items():
                mark = "  (default)" if name == releases.default else ""
                print(f"{name:14} torch {release.torch:8} triton-ascend {release.triton_ascend:8} {release.init}{mark}")
            return 0
        release = releases.named(options.release)
        if sys.prefix == sys.base_prefix:
            raise Refusal(f"{sys.executable} is not in a virtual environment. Use `make setup`, which makes .venv.")
        wheels = options.wheels.resolve() if options.wheels else None
        if wheels and not wheels.is_dir():
            raise Refusal(f"--wheels {options.wheels} is no directory. Name one that holds wheels.")
        install_torch(release, releases.cpu_index, wheels)
        install_torch_npu(release, wheels)
        if not options.no_triton:
            install_triton_ascend(release, wheels)
            install_system_packages()
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
