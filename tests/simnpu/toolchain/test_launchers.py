"""`clang++` for triton-ascend: what is compiled once, what again, and what a broken cache does. The real compiler is a
fake that writes down its calls."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

from simnpu.toolchain import launchers

# Output and header carry what they were made from; FAIL names a part of the command that makes it fail.
PLACEHOLDER = r"""#!/bin/sh
echo "$@" >>"{log}"
output= previous= header=
for one; do
    case $previous in -o) output=$one;; -include-pch) header=$one;; esac
    previous=$one
done
case "$*" in *"${{FAIL:-nothing fails}}"*) echo "{says}" >&2; exit 3;; esac
if [ -n "$header" ] && [ ! -f "$header" ]; then echo "PCH file '$header' not found" >&2; exit 1; fi
echo "made by {name}: $*" >"$output"
"""


class Machine:
    """A machine with a compiler, and the directories in which triton-ascend compiles, one per process."""

    def __init__(self, root: Path, compiler: str = "clang++-19") -> None:
        self.root, self.log = root, root / "log"
        self.cache = root / "cache"
        self.programs = root / "programs"
        self.says = "the source is wrong"
        self.compiler(compiler)
        self.home = root / "home"
        (self.home / "include" / "runtime").mkdir(parents=True)
        (self.home / "include" / "runtime" / "rt.h").write_text("// version 1\n")
        self.ascend = root / "triton" / "backends" / "ascend"
        self.ascend.mkdir(parents=True)
        (root / "triton" / "__init__.py").write_text("__version__ = '3.2.0'\n")
        (root / "torch" / "include").mkdir(parents=True)
        (root / "torch" / "version.py").write_text("__version__ = '2.13.0'\n")

    def compiler(self, name: str) -> None:
        self.programs.mkdir(exist_ok=True)
        program = self.programs / name
        program.write_text(PLACEHOLDER.format(log=self.log, name=name, says=self.says))
        program.chmod(0o755)

    def process(self, name: str) -> Process:
        return Process(self, name)

    def calls(self) -> list[str]:
        """The calls of the real compiler since the last time that this was asked."""
        text = self.log.read_text() if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        return text.splitlines()


class Process:
    """One process that compiles with triton-ascend, in a directory of its own."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.place = machine, machine.root / name
        self.place.mkdir()
        self.header = self.place / "precompiled.h"
        self.header.write_text("// the header\n")

    def command(self, *arguments: str | Path) -> list[str]:
        directory = launchers.program(self.machine.cache)
        return [str(directory / "clang++"), *map(str, arguments)]

    def run(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.pathsep.join(
                [str(launchers.program(self.machine.cache)), str(self.machine.programs), os.defpath]
            ),
            "SIMNPU_CACHE": str(self.machine.cache),
            "ASCEND_HOME_PATH": str(self.machine.home),
            **environment,
        }
        return subprocess.run(
            self.command(*arguments), env=env, capture_output=True, text=True, timeout=HANG, check=False
        )

    def flags(self) -> list[str]:
        root = self.machine.root
        return ["-w", f"-I{self.machine.ascend}", f"-I{self.machine.home}/include", f"-I{root}/torch/include"]

    def precompile(self, **environment: str) -> subprocess.CompletedProcess[str]:
        last = ["-std=c++17", "-shared", "-fPIC", "-o", f"{self.header}.gch"]
        return self.run("-x", "c++-header", self.header, *self.flags(), *last, **environment)

    def arguments(self, source: Path) -> list[str | Path]:
        links = [f"-I{self.place}", f"-L{self.machine.home}/lib64", "-lruntime"]
        last = ["-std=c++17", "-shared", "-fPIC", "-Winvalid-pch", "-o", source.with_suffix(".so")]
        return ["-include", self.header, source, *self.flags(), *links, *last]

    def launcher(self, text: str, **environment: str) -> str:
        """The content of the launcher that is made from a source."""
        source = self.place / "launcher.cxx"
        source.write_text(text)
        made = source.with_suffix(".so")
        made.unlink(missing_ok=True)
        done = self.run(*self.arguments(source), **environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return made.read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_processes_share_one_precompiled_header_and_each_launcher(machine: Machine) -> None:
    first, second = machine.process("first"), machine.process("second")
    assert first.precompile().returncode == 0
    assert Path(f"{first.header}.gch").read_bytes() == launchers.PLACEHOLDER
    made = first.launcher("a")
    header, launcher = machine.calls()
    assert "-x c++-header" in header
    assert "-fpch-instantiate-templates" in header
    # It outlives the directory of the process that had it made.
    assert str(first.place) not in header
    assert "-include-pch" in launcher
    assert second.precompile().returncode == 0
    assert second.launcher("a") == made
    assert machine.calls() == []
    second.launcher("b")
    (call,) = machine.calls()
    assert "-include-pch" in call


def test_a_header_that_was_never_asked_for_is_made_with_the_first_launcher(machine: Machine) -> None:
    machine.process("first").launcher("a")
    header, launcher = machine.calls()
    assert "-x c++-header" in header
    assert "-include-pch" in launcher


def changes(machine: Machine) -> dict[str, tuple[Path, str]]:
    return {
        "torch": (machine.root / "torch" / "version.py", "__version__ = '2.14.0'\n"),
        "triton": (machine.root / "triton" / "__init__.py", "__version__ = '3.3.0'\n"),
        "CANN's headers": (machine.home / "include" / "runtime" / "rt.h", "// version 2\n"),
        "the compiler": (
            machine.programs / "clang++-19",
            "#!/bin/sh\n# newer\n" + PLACEHOLDER.format(log=machine.log, name="clang++-19", says=""),
        ),
    }


@pytest.mark.parametrize("what", ["torch", "triton", "CANN's headers", "the compiler"])
def test_a_change_of_what_it_was_made_from_makes_it_anew(machine: Machine, what: str) -> None:
    process = machine.process("first")
    process.launcher("a")
    assert len(machine.calls()) == 2
    path, text = changes(machine)[what]
    path.write_text(text)
    process.launcher("a")
    assert len(machine.calls()) == 2
    process.launcher("a", CPATH="/elsewhere")
    assert len(machine.calls()) == 2
    process.header.write_text("// another header\n")
    process.launcher("a")
    assert len(machine.calls()) == 2


def test_another_place_of_the_same_cann_headers_changes_nothing(machine: Machine) -> None:
    process = machine.process("first")
    made = process.launcher("a")
    machine.calls()
    machine.home = machine.home.rename(machine.root / "rebuilt")
    assert process.launcher("a") == made
    assert machine.calls() == []


def entries(machine: Machine) -> list[Path]:
    return sorted(machine.cache.glob("launchers/entries/*/*"))


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "directory"])
def test_a_damaged_entry_is_found_out_and_made_anew(machine: Machine, damage: str) -> None:
    process = machine.process("first")
    process.launcher("a")
    assert len(entries(machine)) == 2
    for path in entries(machine):
        content = path.read_bytes()
        if damage == "directory":
            path.unlink()
            (path / "within").mkdir(parents=True)
            continue
        path.write_bytes({"flip": b"X" + content[1:], "truncate": content[:-1], "empty": b""}[damage])
    machine.calls()
    made = process.launcher("a")
    assert made.startswith("made by")
    assert len(machine.calls()) == 2
    assert process.launcher("a") == made
    assert machine.calls() == []


def test_a_damaged_copy_of_headers_is_made_anew(tmp_path: Path) -> None:
    cache = launchers.Cache(tmp_path)
    files = {"include/rt.h": b"// this"}
    copy = cache.snapshot(files) / "include" / "rt.h"
    for damage in (lambda: copy.write_bytes(b"// that"), copy.unlink):
        damage()
        assert cache.snapshot(files) / "include" / "rt.h" == copy
        assert copy.read_bytes() == b"// this"


def test_a_compiler_that_hangs_is_ended_with_what_it_started(machine: Machine) -> None:
    process = machine.process("first")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    # Its own child holds the pipes.
    (machine.programs / "clang++-19").write_text("#!/bin/sh\ntail -f /dev/null &\nwait\n")
    done = process.run(*process.arguments(source), SIMNPU_COMPILE_TIMEOUT="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"clang++ (simulated NPU): {source} cannot be compiled: " in done.stderr
    assert "was not done after 1 s. Remedy: set SIMNPU_COMPILE_TIMEOUT" in done.stderr
    done = process.run(*process.arguments(source), SIMNPU_COMPILE_TIMEOUT="soon")
    assert "SIMNPU_COMPILE_TIMEOUT=soon cannot be understood: give seconds" in done.stderr
    machine.compiler("clang++-19")
    assert process.launcher("a").startswith("made by")


def test_a_lock_that_is_never_given_back_costs_time_and_nothing_else(machine: Machine) -> None:
    process = machine.process("first")
    process.launcher("b")
    machine.calls()
    with contextlib.ExitStack() as held:
        for kind in ("launcher", "header"):
            for number in range(256):
                file = held.enter_context((machine.cache / "launchers/locks" / f"{kind}-{number:02x}").open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX)
        source = process.place / "launcher.cxx"
        source.write_text("a")
        done = process.run(*process.arguments(source), SIMNPU_COMPILE_TIMEOUT="1")
    assert done.returncode == 0
    assert "another process has held" in done.stderr
    assert "made by" in source.with_suffix(".so").read_text()


def test_a_stale_precompiled_header_is_made_anew_once(machine: Machine) -> None:
    machine.says = "file '/usr/include/x.h' has been modified since the precompiled header was built"
    machine.compiler("clang++-19")
    process = machine.process("first")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    done = process.run(*process.arguments(source), FAIL="-include-pch")
    # Header, launcher, both once more, and then without.
    assert [("c++-header" in call, "-include-pch" in call) for call in machine.calls()] == [
        (True, False),
        (False, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert done.returncode == 0


def test_errors_of_the_compiler_are_its_own_and_are_not_kept(machine: Machine) -> None:
    process = machine.process("first")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    done = process.run(*process.arguments(source), FAIL=str(source))
    assert (done.returncode, done.stderr) == (3, "the source is wrong\n")
    assert machine.calls()[-1].startswith(str(source))
    assert len(entries(machine)) == 1  # the header
    process.launcher("a")
    assert len(machine.calls()) == 1


def test_a_header_that_does_not_compile_is_left_to_the_compiler(machine: Machine) -> None:
    process = machine.process("first")
    done = process.precompile(FAIL="c++-header")
    assert (done.returncode, done.stderr) == (3, "the source is wrong\n")
    assert entries(machine) == []


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(machine: Machine) -> None:
    process = machine.process("first")
    launchers.program(machine.cache)
    (machine.cache / "launchers" / "headers").write_text("no directory")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    for done in (process.precompile(), process.run(*process.arguments(source))):
        assert done.returncode == 0
        assert "the cache of launchers cannot be used" in done.stderr
    header, launcher = machine.calls()
    assert header.startswith(f"-x c++-header {process.header}")
    assert launcher.startswith(f"-include {process.header}")
    assert "made by" in source.with_suffix(".so").read_text()


def test_a_full_disk_leaves_no_entry_and_the_launcher_is_made(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    process = machine.process("first")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(machine.home))
    cache = launchers.Cache(machine.cache / "launchers")
    arguments = [str(each) for each in process.arguments(source)]
    call = launchers.understand(arguments)
    assert call is not None
    real = str(machine.programs / "clang++-19")
    assert launchers.Compiler(real, cache).serve(call, arguments) == 0
    source.write_text("b")

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, content: bytes) -> None:  # noqa: ARG002 - the interface
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(launchers.os, "fdopen", lambda *_: Full())
    before = entries(machine)
    assert launchers.Compiler(real, cache).serve(call, arguments) == 0
    assert "is made, but not kept for others: [Errno 28] No space left on device" in capfd.readouterr().err
    assert "made by" in source.with_suffix(".so").read_text()
    assert entries(machine) == before
    assert list(cache.root.glob("new-*")) == []


def test_two_processes_that_want_the_same_compile_it_once(machine: Machine) -> None:
    processes = [machine.process(name) for name in ("a", "b", "c")]
    started = []
    for process in processes:
        source = process.place / "launcher.cxx"
        source.write_text("same")
        env = {
            "PATH": os.pathsep.join([str(machine.programs), os.defpath]),
            "SIMNPU_CACHE": str(machine.cache),
            "ASCEND_HOME_PATH": str(machine.home),
        }
        started.append(subprocess.Popen(process.command(*process.arguments(source)), env=env))
    assert [one.wait(60) for one in started] == [0, 0, 0]
    assert len(machine.calls()) == 2
    assert len({(process.place / "launcher.so").read_text() for process in processes}) == 1


def test_entries_that_were_unused_for_longest_go_first_and_leavings_with_them(tmp_path: Path) -> None:
    cache = launchers.Cache(tmp_path / "cache", limit=40)
    made = tmp_path / "made"
    made.write_bytes(b"0123456789")
    kept = {name: cache_store(cache, name, made) for name in ("a", "b", "c", "d")}
    for age, name in enumerate(("c", "a", "d", "b")):
        os.utime(kept[name], (1000 + age, 1000 + age))
    assert cache.find("c0")  # used: it is young again
    killed = cache.root / "new-killed"
    killed.mkdir()
    os.utime(killed, (0, 0))
    kept["e"] = cache_store(cache, "e", made)
    assert sorted(name for name, path in kept.items() if path.exists()) == ["b", "c", "e"]
    assert not killed.exists()


def cache_store(cache: launchers.Cache, name: str, made: Path) -> Path:
    return cache.store(f"{name}0", made)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["-c", "x.cpp", "-o", "x.o"],
        ["-shared", "-fPIC", "x.cpp", "-o", "x.so"],
        ["-x", "c++-header", "other.h", "-shared", "-I/t/triton/backends/ascend", "-o", "x"],
        ["-O2", "-shared", "x.cpp", "-I/t/triton/backends/ascend", "-o", "x.so"],
        ["-shared", "x.cpp", "y.cpp", "-I/t/triton/backends/ascend", "-o", "x.so"],
        ["-shared", "x.cpp", "-I/t/triton/backends/ascend", "-o"],
    ],
)
def test_every_other_call_goes_to_the_real_compiler_unchanged(machine: Machine, arguments: list[str]) -> None:
    assert launchers.understand(arguments) is None
    process = machine.process("first")
    done = process.run(*arguments, FAIL=arguments[0])
    assert (done.returncode, done.stderr) == (3, "the source is wrong\n")
    assert machine.calls() == [" ".join(arguments)]
    assert not (machine.cache / "launchers" / "entries").exists()


def test_without_a_root_the_call_is_unchanged(machine: Machine) -> None:
    process = machine.process("first")
    source = process.place / "launcher.cxx"
    source.write_text("a")
    assert process.run(*process.arguments(source), SIMNPU_CACHE="").returncode == 0
    assert machine.calls() == [" ".join(map(str, process.arguments(source)))]


def test_g_plus_plus_stands_in_and_its_launchers_are_shared_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "g++")
    process = machine.process("first")
    path = str(machine.programs)
    assert process.precompile(PATH=path).returncode == 0
    assert process.launcher("a", PATH=path) == process.launcher("a", PATH=path)
    header, launcher = machine.calls()
    assert header.startswith(f"-x c++-header {process.header}")
    assert launcher.startswith(f"-include {process.header}")


def test_the_real_compiler_is_not_this_program(machine: Machine) -> None:
    here = str(launchers.program(machine.cache))
    assert launchers.real_compiler(here) is None
    other = machine.root / "other"
    other.mkdir()
    (other / "clang++").write_text("#!/bin/sh\n")
    (other / "clang++").chmod(0o755)
    assert launchers.real_compiler(os.pathsep.join([here, str(other)])) == str(other / "clang++")
    assert launchers.real_compiler(os.pathsep.join([here, str(other), str(machine.programs)])) == str(
        machine.programs / "clang++-19"
    )
    done = subprocess.run(
        [f"{here}/clang++", "x.cpp"], env={"PATH": here}, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stderr) == (1, "clang++: no C++ compiler found. Remedy: apt-get install clang-19\n")
    assert sys.executable in Path(here, "clang++").read_text()
