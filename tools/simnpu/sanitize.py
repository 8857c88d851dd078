"""Runs the simulated runtime's native tests under sanitizers: memory errors, undefined behaviour, races.

The operator library is left out: it is thin, and torch's own libraries are not built for sanitizers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 500
JOBS = 2

SANITIZERS = {
    "address": ("address,undefined", {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1"}),
    "thread": ("thread", {"TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1"}),
}
# For code that is not ours, each with its reason. None is needed so far.
SUPPRESSIONS: dict[str, list[tuple[str, str]]] = {"address": [], "thread": []}


class Failure(Exception):
    """Something is wrong with the code or the machine; the text says what."""


def build(kind: str) -> Path:
    """The native tests, built with these sanitizers in the build cache."""
    sys.path.insert(0, str(ROOT))
    from simnpu.build import SOURCE, cache_root, find_tools

    tools = find_tools()
    # Another checkout builds elsewhere: cmake takes a directory for one source only.
    place = "\n".join(map(str, (SOURCE, tools.compiler, tools.torch, tools.torch_npu)))
    work = cache_root() / "sanitize" / hashlib.sha256(place.encode()).hexdigest()[:12] / kind
    work.mkdir(parents=True, exist_ok=True)
    configure = [
        *(tools.cmake, "-S", str(SOURCE), "-B", str(work), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={tools.ninja}",
        f"-DCMAKE_CXX_COMPILER={tools.compiler}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DSIMNPU_OPS=OFF",
        "-DSIMNPU_TESTS=ON",
        f"-DSIMNPU_SANITIZE={SANITIZERS[kind][0]}",
        f"-DSIMNPU_TORCH_DIR={tools.torch}",
        f"-DSIMNPU_TORCH_NPU_DIR={tools.torch_npu}",
        f"-DSIMNPU_TORCH_VERSION={tools.torch_version}",
        f"-DSIMNPU_TORCH_NPU_VERSION={tools.torch_npu_version}",
    ]
    for command in (configure, [tools.cmake, "--build", str(work), "--parallel", str(JOBS)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Failure(
                f"building with -fsanitize={SANITIZERS[kind][0]} failed:\n{done.stdout}\n"
                "If a library is missing: the sanitizers' are part of g++; for clang++ they are in libclang-rt-dev."
            )
    return work / "tests" / "runtime_tests"


def run(kind: str, program: Path, repeat: int) -> None:
    """Runs the tests so often; raises Failure for the first finding or failed check."""
    environment = os.environ | SANITIZERS[kind][1]
    if SUPPRESSIONS[kind]:
        file = program.with_name("suppressions.txt")
        file.write_text("".join(f"# {reason}\n{pattern}\n" for pattern, reason in SUPPRESSIONS[kind]))
        name = next(iter(SANITIZERS[kind][1]))
        environment[name] += f":suppressions={file}"
    for number in range(1, repeat + 1):
        try:
            done = subprocess.run(
                [str(program)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
            raise Failure(f"{kind}: no end within {SECONDS} s:\n{output.decode(errors='replace')}") from error
        if done.returncode or re.search(r"SUMMARY: \w+Sanitizer|runtime error:", done.stdout):
            raise Failure(f"{kind}: the tests ended with {done.returncode}:\n{done.stdout}")
        print(f"{kind}: run {number} of {repeat}: {done.stdout.splitlines()[-1]}, no finding", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/simnpu/sanitize.py",
        description="Run the simulated runtime's native tests under address+undefined and thread sanitizer.",
        epilog="Builds in the simulator's cache (SIMNPU_CACHE), once per sanitizer. Exit code 1 for any finding.",
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{' or '.join(SANITIZERS)} (default: both)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default 3: races are shy)")
    options = parser.parse_args(argv)
    if options.repeat < 1:
        parser.error("--repeat must be 1 or more")
    if unknown := set(options.kinds) - set(SANITIZERS):
        parser.error(f"unknown {', '.join(sorted(unknown))}; give {' or '.join(SANITIZERS)}")
    try:
        for kind in options.kinds or SANITIZERS:
            print(f"{kind}: building", flush=True)
            run(kind, build(kind), options.repeat)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
