"""Puts one release of torch_npu, with the CPU build of torch that it needs, into the environment of this interpreter.

Exists because a resolver that is asked for plain `torch` fetches the CUDA build: gigabytes, and torch_npu cannot live
beside it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parent.parent


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


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/environment.py",
        description="Install a release of torch_npu, and the CPU build of torch that it needs, beside this Python.",
        epilog="`make setup` calls this after it has made .venv. Releases are listed in releases.toml.",
    )
    parser.add_argument("--release", metavar="NAME", help="a release of releases.toml (default: its `default`)")
    parser.add_argument(
        "--wheels",
        metavar="DIR",
        type=Path,
        help="a directory with wheels of your own, preferred for torch: any CPU build named torch-VERSION+LABEL-….whl",
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
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
