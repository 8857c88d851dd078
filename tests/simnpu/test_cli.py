"""The command line and the build of the simulator."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG

import simnpu
from simnpu import build, cli, doctor, settings
from simnpu.toolchain import surroundings
from simnpu.toolchain.surroundings import ACTIVATED

ROOT = Path(__file__).parents[2]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simnpu", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def libraries() -> Path:
    return build.build()


def test_run_ends_as_the_program_does():
    done = command(
        "run", "--devices", "3", "--", sys.executable, "-c", "import os; print(os.environ['SIMNPU_DEVICES']); exit(7)"
    )
    assert (done.returncode, done.stdout) == (7, "3\n")


def test_run_passes_arguments_through_untouched():
    done = command("run", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--devices", "9", "--", "-x")
    assert done.stdout == "['--devices', '9', '--', '-x']\n"


def test_run_makes_the_libraries_load(libraries: Path):
    code = (
        "import ctypes; ctypes.CDLL('libascendcl.so')\n"
        "print(next(line.split()[-1] for line in open('/proc/self/maps') if 'libsimnpu' in line))"
    )
    done = command("run", "--", sys.executable, "-c", code)
    assert done.stdout.strip() == str((libraries / "libsimnpu.so").resolve())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "no program given"),
        (["run", "--devices", "99", "--", "true"], "SIMNPU_DEVICES=99 cannot be understood"),
        (["run", "--memory", "lots", "--", "true"], "SIMNPU_MEMORY=lots cannot be understood"),
        (["run", "--fault", "aclrtMalloc:error", "--", "true"], "SIMNPU_FAULT=aclrtMalloc:error cannot be understood"),
        (["run", "--fault", "aclrtMaloc:1:error", "--", "true"], "no call aclrtMaloc"),
        (["run", "--log", "/nowhere/calls.log", "--", "true"], "there is no directory /nowhere"),
        (["run", "--log", "/", "--", "true"], "SIMNPU_LOG=/ is a directory"),
        (["calls", "--log", "calls.log", "--", "true"], "unrecognized arguments: --log"),
        (["env", "--devices", "x"], "SIMNPU_DEVICES=x cannot be understood"),
        (["env", "--devices", "\uff12"], "SIMNPU_DEVICES=\uff12 cannot be understood"),
        (["env", "--devices", "1_0"], "SIMNPU_DEVICES=1_0 cannot be understood"),
        (["env", "--memory", "2000000000000G"], "at most 999999G"),
        (["env", "--fault", "aclrtMalloc:1:delay=99999999999999999999"], "at most nine digits"),
        (["dance"], "invalid choice"),
    ],
)
def test_wrong_requests_are_refused_with_a_remedy(arguments: list[str], said: str):
    done = command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelt_variable_is_refused_with_the_right_name():
    done = command("run", "--", "true", SIMNPU_DEVICE="3")
    assert done.returncode == 2
    assert "SIMNPU_DEVICE is no variable of the simulator. Remedy: write SIMNPU_DEVICES" in done.stderr


def test_variables_of_others_are_left_alone():
    assert command("run", "--", "true", SIMNPU_TEST_CHILD="1").returncode == 0


@pytest.mark.parametrize("how", ["run", "calls"])
@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("no-such-program-here", 127, "no such program"),
        ("./nowhere/program", 127, "no such program"),
        ("./", 126, "is a directory"),
        ("./plain.py", 126, "plain.py is not executable. Remedy: start it with its interpreter"),
        ("./plain.sh", 126, "plain.sh is not executable. Remedy: chmod +x"),
        ("./headless", 126, "Exec format error. Remedy: start it with its interpreter"),
    ],
)
def test_a_program_that_cannot_be_started_is_named_with_a_remedy(
    how: str, program: str, code: int, said: str, tmp_path: Path
):
    for name in ("plain.py", "plain.sh", "headless"):
        (tmp_path / name).write_text("print(1)\n")
    (tmp_path / "headless").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "simnpu", how, "--", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_gets_the_signals_as_they_are_without_the_simulator():
    # Python ignores SIGPIPE; `yes`, inheriting that, would complain of the pipe.
    done = command("run", "--", "sh", "-c", "yes | head -n 1")
    assert (done.stdout, done.stderr) == ("y\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["doctor"], ["env"], ["calls", "--", "true"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_left_is_no_traceback(arguments: list[str], unbuffered: str):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "simnpu", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG,
        check=False,
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141 or arguments == ["--help"]  # argparse itself passes over it, in some releases


def test_run_needs_no_standard_output():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m simnpu run -- true >&-"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_unicode_gets_escapes():
    done = command("run", "--help", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-- CMD\\u2026" in done.stdout


def test_env_prints_what_a_shell_takes():
    script = (
        f'eval "$({sys.executable} -m simnpu env --memory 1G --visible 0)"\n'
        'echo "$SIMNPU_MEMORY $ASCEND_RT_VISIBLE_DEVICES"'
    )
    done = subprocess.run(["sh", "-ec", script], cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout == "1G 0\n"


def test_env_as_json_holds_the_same(libraries: Path):
    values = json.loads(command("env", "--format", "json").stdout)
    assert values["LD_LIBRARY_PATH"].split(os.pathsep)[0] == str(libraries)
    home = Path(values["ASCEND_HOME_PATH"])
    assert (home / "runtime").is_dir()
    assert (home / "compiler").is_dir()
    assert Path(values["ASCEND_OPP_PATH"]).is_dir()


def test_environ_leaves_its_base_alone_and_puts_the_libraries_first_once(libraries: Path):
    base = {"LD_LIBRARY_PATH": f"/somewhere:{libraries}", "HOME": "/nowhere"}
    once = simnpu.environ(base, log="memory")
    assert once["LD_LIBRARY_PATH"] == f"{libraries}:/somewhere"
    assert once["SIMNPU_LOG"] == "memory"
    assert once["HOME"] == "/nowhere"
    assert set(once) - set(base) <= {"SIMNPU_LOG", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", *ACTIVATED}
    assert simnpu.environ(once) == once
    assert base == {"LD_LIBRARY_PATH": f"/somewhere:{libraries}", "HOME": "/nowhere"}
    with pytest.raises(settings.SettingError, match="SIMNPU_FAULT"):
        simnpu.environ(base, fault="nonsense")


def test_calls_shows_what_a_program_did():
    code = (
        "import ctypes; acl = ctypes.CDLL('libascendcl.so')\n"
        "acl.aclrtSetDevice(0); acl.aclrtFree(None); acl.aclrtFree(None); exit(3)"
    )
    done = command("calls", "--", sys.executable, "-c", code)
    assert done.returncode == 3
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["2", "aclrtFree", "(2", "failed)"],
        ["1", "aclrtSetDevice"],
        ["3", "calls", "in", "all;", "the", "program", "ended", "with", "3"],
    ]


def test_calls_leaves_an_interruption_to_the_program():
    # $PPID is the command; the program, which a terminal would have told as well, goes on to its own end.
    code = "import signal; from simnpu import cli; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = ["sh", "-c", "trap '' INT; kill -INT $PPID; exit 3"]
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; raise SystemExit(cli.main(['calls', '--', *{program!r}]))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "       0 calls in all; the program ended with 3\n"


def test_an_interrupted_command_says_so_and_ends_by_the_signal():
    code = (
        "import signal; from simnpu import cli; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "cli.COMMANDS['build'] = lambda _: signal.raise_signal(signal.SIGINT)\n"
        "cli.main(['build'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "simnpu: interrupted\n")


def test_doctor_is_content_here():
    done = command("doctor")
    assert done.returncode == 0, done.stdout
    assert "MISSING" not in done.stdout
    assert "torch_npu: " in done.stdout


def test_doctor_names_what_is_missing_and_the_remedy(tmp_path: Path):
    # An interpreter that sees this project and nothing else, and no compiler.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "simnpu", "doctor"],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "SIMNPU_DEVICES": "few"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    for what in ("torch_npu", "torch", "compiler", "variables", "libraries"):
        at = next(n for n, line in enumerate(lines) if line.startswith(f"MISSING {what}:"))
        assert lines[at + 1].strip().startswith("remedy: "), lines[at + 1]
    assert done.stderr == ""


def test_help_teaches_with_examples():
    done = command("--help")
    assert done.returncode == 0
    assert "python -m simnpu run -- python train.py" in done.stdout
    for setting in settings.SETTINGS:
        assert setting.name in done.stdout
    for name in cli.COMMANDS:
        assert command(name, "--help").returncode == 0


def test_a_build_is_not_repeated(libraries: Path):
    said: list[str] = []
    assert build.build(said.append) == libraries
    assert said == []


def test_versions_and_source_are_part_of_the_name():
    assert build.build_id().startswith(f"{simnpu.version} torch 2.")
    assert build.build_id().endswith(build.source_hash())
    assert simnpu.build_id() == build.build_id()


def test_building_without_torch_npu_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(build.BuildError, match=r"torch_npu is not installed .* Remedy: install torch"):
        build.find_package("torch_npu")


def test_building_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(build.BuildError, match=r"no C\+\+ compiler .* Remedy: install g\+\+"):
        build.find_compiler()
    monkeypatch.setattr(build.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(build.BuildError, match=r"cmake is missing\. Remedy: pip install"):
        build.find_cmake()


@pytest.fixture
def small_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A source tree that compiles in a moment, and a cache of its own."""
    source = tmp_path / "source"
    (source / "home" / "include").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(small LANGUAGES CXX)\n"
        'set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")\nadd_library(simnpu SHARED small.cpp)\n'
    )
    (source / "small.cpp").write_text("int small() { return 1; }\n")
    monkeypatch.setattr(build, "SOURCE", source)
    monkeypatch.setenv("SIMNPU_CACHE", str(tmp_path / "cache"))
    return source


def test_an_edit_makes_a_new_build_beside_the_old_one(small_source: Path):
    said: list[str] = []
    first = build.build(said.append)
    assert (first / "libsimnpu.so").is_file()
    assert any(line.startswith("[") for line in said), "progress lines while it builds"
    (small_source / "small.cpp").write_text("int small() { return 2; }\n")
    assert build.library_dir() is None
    second = build.build(said.append)
    assert second != first
    assert (first / "libsimnpu.so").is_file()
    assert not list(build.cache_root().glob("publish-*"))


def test_a_failed_build_shows_the_compiler_message_and_publishes_nothing(small_source: Path):
    (small_source / "small.cpp").write_text("int small( { broken }\n")
    with pytest.raises(build.BuildError, match=r"the build failed.*build\.log") as caught:
        build.build(lambda _: None)
    assert "error:" in str(caught.value)
    assert "Remedy" in str(caught.value)
    assert "error:" in (build.cache_root() / "build.log").read_text()
    assert build.library_dir() is None
    (small_source / "small.cpp").write_text("int small() { return 1; }\n")
    build.build(lambda _: None)


def refused_cache() -> str:
    with pytest.raises(build.BuildError) as caught:
        build.cache_root()
    (finding,) = (each for each in doctor.examine() if each.what == "cache")
    assert not finding.good
    assert finding.remedy in str(caught.value)
    return str(caught.value)


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "SIMNPU_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert "has no home directory to keep a cache in. Remedy: set SIMNPU_CACHE (or HOME)" in refused_cache()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_cache_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SIMNPU_CACHE", str(tmp_path))
    os.chown(tmp_path, 12345, 12345)
    assert f"the cache {tmp_path} belongs to user id 12345, not to yours (0)" in refused_cache()


def test_a_cache_that_everybody_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SIMNPU_CACHE", str(tmp_path))
    tmp_path.chmod(0o777)
    assert "can be written by everybody" in refused_cache()
    done = command("run", "--", "true")
    assert done.returncode == 1
    assert "Remedy: set SIMNPU_CACHE to a directory of your own that nobody else can write to" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_lock_that_is_no_file_is_refused_and_not_waited_for(small_source: Path, kind: str):
    lock = build.cache_root() / "build.lock"
    lock.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "link":
        lock.symlink_to(small_source / "elsewhere")
    else:
        lock.mkdir()
    with pytest.raises(build.BuildError, match=r"build\.lock.* Remedy: "):
        build.build(lambda _: None)
    assert not (small_source / "elsewhere").exists()


@pytest.mark.usefixtures("small_source")
def test_a_new_cache_is_private():
    build.build(lambda _: None)
    assert stat.S_IMODE(build.cache_root().stat().st_mode) & 0o077 == 0


def test_processes_that_build_at_once_share_one_build(small_source: Path):
    code = (
        "import sys, pathlib, simnpu.build as b; b.SOURCE = pathlib.Path(sys.argv[1]);"
        "said = []; print(b.build(said.append), any('Building' in line for line in said))"
    )
    builders = [
        subprocess.Popen([sys.executable, "-c", code, str(small_source)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [builder.communicate(timeout=HANG)[0].split() for builder in builders]
    assert all(builder.returncode == 0 for builder in builders)
    assert len({directory for directory, _ in answers}) == 1
    assert sorted(compiled for _, compiled in answers) == ["False", "False", "True"]


def test_a_cache_that_cannot_be_made_says_so(small_source: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SIMNPU_CACHE", str(small_source / "small.cpp" / "cache"))
    with pytest.raises(build.BuildError, match=r"cannot create the cache .* Remedy: set SIMNPU_CACHE"):
        build.build(lambda _: None)


def exported_or_needed(kind: str, *libraries: Path) -> set[str]:
    done = subprocess.run(
        ["nm", "-D", kind, *map(str, libraries)], capture_output=True, text=True, check=True, timeout=HANG
    )
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if len(line.split()) > 1}


def test_every_symbol_that_the_wheel_links_to_exists(libraries: Path):
    wheel, _ = build.find_package("torch_npu")
    # Loaded on request only, and needs libraries of its own that the wheel does not bring.
    optional = {"libop_plugin_atb.so"}
    parts = [*wheel.glob("_C*.so"), *(part for part in wheel.glob("lib/*.so") if part.name not in optional)]
    needed = exported_or_needed("--undefined-only", *parts)
    cann = {name for name in needed if re.match(r"(acl|rt[A-Z]|Msprof|Hccl|mspti|ge[A-Z])", name)}
    assert len(cann) > 50
    assert cann <= exported_or_needed("--defined-only", libraries / "libsimnpu.so")


def test_the_runtime_library_does_not_depend_on_torch_and_hides_its_insides(libraries: Path):
    done = subprocess.run(
        ["readelf", "-d", str(libraries / "libsimnpu.so")],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert "torch" not in done.stdout
    exported = exported_or_needed("--defined-only", libraries / "libsimnpu.so")
    assert not {name for name in exported if "Stream" in name and name.startswith("_Z")}


DEVELOPMENT_FILES = "MLIR and LLVM 19 are not installed; remedy: apt-get install them"


@pytest.mark.parametrize(
    ("there", "lacks", "line"),
    [
        ({"triton-ascend": "3.2.0"}, None, "ok      triton-ascend: 3.2.0"),
        ({"triton-ascend": "3.2.0"}, DEVELOPMENT_FILES, "MISSING LLVM and MLIR: MLIR and LLVM 19 are not inst"),
        ({}, DEVELOPMENT_FILES, "without LLVM and MLIR: MLIR and LLVM 19 are not installed"),
        ({}, None, "without triton-ascend: not installed"),
        ({"triton": "3.5.0"}, None, "without triton-ascend: community triton 3.5.0 in its place"),
        ({"triton": "3.5.0", "triton-ascend": "3.2.0"}, None, "uninstall triton triton-ascend, then make setup"),
    ],
)
def test_doctor_tells_of_triton_and_needs_its_compiler_only_with_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: dict[str, str],
    lacks: str | None,
    line: str,
):
    monkeypatch.setattr(surroundings, "version_of", there.get)
    monkeypatch.setattr(doctor.toolchain, "missing", lambda: lacks)
    monkeypatch.setattr(doctor.toolchain, "directory", lambda: Path("/built"))
    code = cli.main(["doctor"])
    said = capsys.readouterr().out
    assert line in said
    assert code == int("MISSING" in said) == int("triton-ascend" in there and lacks is not None)
    assert ("remedy: apt-get install them" in said) == (lacks is not None)
