"""What triton-ascend starts for each kernel: it answers without LLVM, and knows what it has compiled before."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from deadlines import HANG

from toolchain.compiling.stack import NEEDS_KERNELS

pytestmark = NEEDS_KERNELS

KERNEL = """module {{
  func.func @{name}(%lock: memref<?xi8>, %workspace: memref<?xi8>, %out: memref<?xi32>, %gx: i32, %gy: i32, %gz: i32,
      %x: i32, %y: i32, %z: i32) attributes {{SyncBlockLockArgIdx = 0 : i64, WorkspaceArgIdx = 1 : i64}} {{
    %zero = arith.constant 0 : index
    %number = arith.constant {number} : i32
    %all = memref.reinterpret_cast %out to offset: [0], sizes: [1], strides: [1] : memref<?xi32> to memref<1xi32>
    memref.store %number, %all[%zero] : memref<1xi32>
    return
  }}
}}
"""
# Counts its calls, and waits for the other end of a pipe where one is put.
COUNTING = """#!/bin/sh
echo "$*" >> {place}/calls
if [ -p {place}/gate ]; then echo here > {place}/at_gate; read -r go < {place}/gate; fi
exec {real} "$@"
"""
SECONDS = HANG


class Program:
    """A bishengir-compile of its own, whose compiler counts its calls, and a cache of its own."""

    def __init__(self, place: Path) -> None:
        from simnpu.toolchain import build

        built = build.build()
        self.place = place
        self.cache = place / "cache"
        self.cache.mkdir()
        self.path = place / "bin" / "bishengir-compile"
        self.path.parent.mkdir()
        shutil.copy(built / "bin/bishengir-compile", self.path)
        self.compiler = place / "libexec" / "compile-kernel"
        self.compiler.parent.mkdir()
        self.compiler.write_text(COUNTING.format(place=place, real=built / "libexec/compile-kernel"))
        self.compiler.chmod(0o755)

    def start(self, *arguments: str, cache: bool = True, **environment: str) -> subprocess.Popen[str]:
        kept = {"SIMNPU_CACHE": str(self.cache)} if cache else {}
        return subprocess.Popen(
            [str(self.path), *arguments],
            env={"PATH": os.defpath} | kept | environment,
            cwd=self.place,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, cache: bool = True, **environment: str) -> tuple[int, str, str]:
        """Its code and what it says on both streams."""
        with self.start(*arguments, cache=cache, **environment) as process:
            said = process.communicate(timeout=SECONDS)
        return process.returncode, *said

    def source(self, name: str = "mine", number: int = 7) -> str:
        file = self.place / f"{name}.mlir"
        file.write_text(KERNEL.format(name=name, number=number))
        return str(file)

    def compile(self, source: str, *options: str, cache: bool = True) -> bytes:
        """The binary; what is said must be nothing."""
        output = self.place / "kernel"
        assert self.run(source, *options, "-o", str(output), cache=cache) == (0, "", "")
        binary = Path(f"{output}.o").read_bytes()
        Path(f"{output}.o").unlink()
        return binary

    def calls(self) -> int:
        """How often it has compiled so far."""
        calls = self.place / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    def entries(self) -> list[Path]:
        return [path for path in self.cache.glob("kernels/*/*") if path.name != "lock"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_all_but_a_compile_is_answered_without_llvm(program: Program) -> None:
    """The program that holds LLVM is absent, and this one needs no library that could."""
    program.compiler.unlink()
    code, said, error = program.run("--help")
    assert (code, error) == (0, "")
    assert "limit-auto-multi-buffer-buffer" in said
    assert "reg-based" not in said
    source = program.source()
    code, _, error = program.run(source, "--target=Ascend910B3", "--pure-simt", "-o", "kernel")
    assert (code, "SIMT kernels (--pure-simt) are not simulated" in error) == (1, True)
    code, _, error = program.run("--target=Ascend910B3")
    assert (code, "give an input" in error) == (1, True)
    code, _, error = program.run(source, "-x", "-o", "kernel")
    assert (code, 'cannot understand "-x"; see --help' in error) == (1, True)
    code, _, error = program.run(source, "-o", "kernel", SIMNPU_COMPILE_TIMEOUT="soon")
    assert (code, "SIMNPU_COMPILE_TIMEOUT=soon cannot be understood" in error) == (1, True)
    code, _, error = program.run(source, "-o", "kernel")
    assert code == 1
    assert f"{program.compiler} cannot be started: No such file" in error
    assert b"libLLVM" not in program.path.read_bytes()
    program.path.with_name("bisheng").symlink_to(program.path)
    program.path = program.path.with_name("bisheng")
    assert program.run("-print-targets") == (0, "hiipu64\n", "")
    assert program.run("--help")[0] == 1


def test_a_kernel_is_compiled_once_whatever_its_options(program: Program) -> None:
    source = program.source()
    first = program.compile(source, "--enable-auto-multi-buffer=True")
    assert first.startswith(b"\x7fELF")
    assert program.compile(source, "--enable-auto-multi-buffer=False") == first
    assert program.calls() == 1
    assert program.compile(program.source(number=8)) != first
    assert program.calls() == 2
    assert program.compile(program.source(), cache=False) == first
    assert program.calls() == 3
    os.utime(program.compiler, (0, 0))  # another compiler
    assert program.compile(source) == first
    assert program.calls() == 4


def test_what_does_not_compile_is_not_kept(program: Program) -> None:
    source = program.source()
    Path(source).write_text(Path(source).read_text().replace("memref.store", "memref.no_such"))
    for calls in (1, 2):
        code, _, error = program.run(source, "-o", "kernel")
        assert (code, "kernel mine cannot be compiled" in error) == (1, True)
        assert program.calls() == calls
    assert program.entries() == []


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "of another"])
def test_a_damaged_entry_is_compiled_again(program: Program, damage: str) -> None:
    source = program.source()
    right = program.compile(source)
    (entry,) = program.entries()
    content = bytearray(entry.read_bytes())
    assert content.endswith(right)
    if damage == "flipped":
        content[-len(right) // 2] ^= 1
    elif damage == "of another":
        content = content.replace(b"@mine", b"@mind")
    entry.write_bytes(content[: {"short": len(content) // 2, "empty": 0}.get(damage, len(content))])
    assert program.compile(source) == right
    assert program.calls() == 2
    assert program.compile(source) == right
    assert program.calls() == 2


@pytest.mark.parametrize("place", ["kernels", "entry"])
def test_a_cache_that_cannot_be_used_is_told_and_costs_no_kernel(program: Program, place: str) -> None:
    source = program.source()
    right = program.compile(source)
    (entry,) = program.entries()
    if place == "kernels":
        shutil.rmtree(program.cache / "kernels")
        (program.cache / "kernels").write_text("in the way")
    else:
        entry.unlink()
        (entry / "in the way").mkdir(parents=True)
    code, _, error = program.run(source, "-o", str(program.place / "kernel"))
    assert code == 0
    assert "cannot be used" in error
    assert "going on without it" in error
    assert (program.place / "kernel.o").read_bytes() == right
    assert program.calls() == 2


def test_processes_that_want_the_same_wait_for_one(program: Program) -> None:
    for name in ("at_gate", "gate"):
        os.mkfifo(program.place / name)
    source = program.source()
    processes = [program.start(source, "-o", f"kernel_{number}") for number in range(3)]
    # Another that compiles would wait at the gate, which is opened once.
    assert (program.place / "at_gate").read_text() == "here\n"
    (program.place / "gate").write_text("go on\n")
    for process in processes:
        said = process.communicate(timeout=SECONDS)
        assert (process.returncode, *said) == (0, "", "")
    assert program.calls() == 1
    assert len({(program.place / f"kernel_{number}.o").read_bytes() for number in range(3)}) == 1


def test_the_wait_for_another_process_has_an_end(program: Program) -> None:
    source = program.source()
    program.compile(source)
    (entry,) = program.entries()
    entry.unlink()
    with entry.with_name("lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, error = program.run(source, "-o", "kernel", SIMNPU_COMPILE_TIMEOUT="1")
    assert code == 1
    assert "kernel mine cannot be compiled: another process" in error
    assert "not done after 1 s. Remedy: set SIMNPU_COMPILE_TIMEOUT" in error
    program.compile(source)


def test_those_unused_for_longest_go_first(program: Program) -> None:
    source = program.source()
    program.compile(source)
    (entry,) = program.entries()
    entry.unlink()
    old = []
    for age in range(3):
        path = entry.with_name(f"{age:016x}")
        path.write_bytes(b"x" * (400 << 10))
        os.utime(path, (1000 - age, 1000 - age))
        old.append(path)
    program.compile(source)
    assert [path.exists() for path in old] == [True, True, False]
    assert entry.is_file()
    os.utime(entry, (1, 1))
    program.compile(source)
    assert entry.stat().st_mtime > 1, "what is used is not the next to go"
