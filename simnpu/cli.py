"""Commands of `python -m simnpu`.

Kept apart from __main__ so that tests can call them.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import simnpu
from simnpu import build as building
from simnpu import output
from simnpu.doctor import examine
from simnpu.settings import SETTINGS, SettingError, check_faults_exist, check_log_opens
from simnpu.toolchain.surroundings import ACTIVATED, prepare

# What a shell answers for a program it cannot find or cannot start.
NOT_FOUND = 127
NOT_EXECUTABLE = 126
USAGE = 2

CHANGED = (
    "LD_LIBRARY_PATH",
    "ASCEND_HOME_PATH",
    "ASCEND_OPP_PATH",
    *ACTIVATED,
    *(setting.name for setting in SETTINGS),
)


def _variables() -> str:
    lines = [f"  {setting.name:<19} {setting.meaning}" for setting in SETTINGS]
    lines.append("  SIMNPU_CACHE        where built libraries are kept (default ~/.cache/simnpu)")
    lines.append("  ASCEND_RT_VISIBLE_DEVICES  which of the devices a program sees, as on a real machine")
    return "\n".join(lines)


EPILOG = f"""\
examples:
  python -m simnpu run -- python train.py
  python -m simnpu run --devices 4 --memory 512M -- python -c "import torch; print(torch.ones(2, device='npu'))"
  SIMNPU_LOG=calls.log python -m simnpu run -- python train.py    # every CANN call, one per line
  python -m simnpu run --fault aclrtMalloc:3:error=207001 -- python train.py    # the third allocation fails
  eval "$(python -m simnpu env)"    # this shell runs on the simulator from now on

variables:
{_variables()}
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simnpu",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A simulated Ascend NPU: the unmodified torch_npu wheel on a machine without one.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"simnpu {simnpu.version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str, details: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=textwrap.dedent(details).strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    run = command(
        "run",
        "run a program on the simulated NPU",
        """
        Starts a program with the simulator in place of CANN, builds the simulator first if needed, and ends with the
        program's exit code.

          python -m simnpu run -- python train.py
        """,
    )
    _steering(run)
    _log(run)
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- CMD…", help="the program and its arguments")

    command(
        "build",
        "build the libraries for the installed torch_npu",
        """
        Compiles the simulator for the torch and torch_npu of this Python, and prints the directory of the libraries.
        Nothing is done if it was built before; an edit of the source or another wheel makes a new build.
        With triton-ascend installed the kernel compiler is built too, and a first kernel run.
        """,
    )
    command(
        "doctor",
        "tell what is there and what is missing",
        """
        Looks at everything the simulator needs, says what is missing and what to do about it. Changes nothing.
        Exit code 0 if all is there, 1 if not. What only kernels need may be missing where triton-ascend is, too.
        """,
    )
    env = command(
        "env",
        "print the environment that activates the simulator",
        """
        Prints the variables that put the simulator in place of CANN, for a shell:

          eval "$(python -m simnpu env)"
        """,
    )
    _steering(env)
    _log(env)
    env.add_argument(
        "--format", choices=("shell", "json"), default="shell", help="shell: export lines; json: one object"
    )
    calls = command(
        "calls",
        "run a program and show which CANN calls it made",
        """
        Runs a program on the simulated NPU and then prints, per CANN call, how often it was made and how many of them
        failed, from the log of every process the program started.

          python -m simnpu calls -- python -c "import torch, torch_npu; torch.npu.is_available()"
        """,
    )
    _steering(calls)
    calls.add_argument("program", nargs=argparse.REMAINDER, metavar="-- CMD…", help="the program and its arguments")
    return parser


def _steering(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--devices", metavar="N", help="number of devices (SIMNPU_DEVICES)")
    parser.add_argument("--memory", metavar="SIZE", help="memory per device, such as 512M (SIMNPU_MEMORY)")
    parser.add_argument("--fault", metavar="RULES", help="CALL:N:error[=CODE] or CALL:N:delay=MS (SIMNPU_FAULT)")
    parser.add_argument("--visible", metavar="LIST", help="devices the program sees (ASCEND_RT_VISIBLE_DEVICES)")


def _log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", metavar="PATH", help='a line per CANN call into this file, or "stderr" (SIMNPU_LOG)')


def _environment(arguments: argparse.Namespace, log: str | None) -> dict[str, str]:
    environment = simnpu.environ(
        devices=arguments.devices,
        memory=arguments.memory,
        log=log,
        fault=arguments.fault,
        visible=arguments.visible,
    )
    check_log_opens(environment)
    if libraries := building.library_dir():
        check_faults_exist(environment, libraries)
    return environment


class _NotStarted(Exception):
    """A program that cannot be started; `code` is what a shell answers then."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def _program(arguments: argparse.Namespace) -> list[str]:
    program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not program:
        raise SettingError(f"no program given. Remedy: python -m simnpu {arguments.command} -- python your_program.py")
    return program


def _find(program: str, environment: Mapping[str, str]) -> str:
    """The file to start for what stands first on the command line; raises _NotStarted."""
    if found := shutil.which(program, path=environment.get("PATH")):
        return found
    if os.sep not in program or not Path(program).exists():
        raise _NotStarted(f"{program}: no such program. Remedy: give its path, or check PATH", NOT_FOUND)
    if Path(program).is_dir():
        raise _NotStarted(f"{program} is a directory. Remedy: name a program in it", NOT_EXECUTABLE)
    remedy = "start it with its interpreter (python …)" if program.endswith(".py") else f"chmod +x {program}"
    raise _NotStarted(f"{program} is not executable. Remedy: {remedy}", NOT_EXECUTABLE)


def _unstartable(path: str, error: OSError) -> _NotStarted:
    remedy = ". Remedy: start it with its interpreter (python …)" if error.errno == errno.ENOEXEC else ""
    return _NotStarted(f"cannot start {path}: {error.strerror}{remedy}", NOT_EXECUTABLE)


def _run(arguments: argparse.Namespace) -> int:
    program = _program(arguments)
    environment = _environment(arguments, arguments.log)
    path = _find(program[0], environment)
    if sys.stdout is not None:
        sys.stdout.flush()
    # Python ignores it, and the program would inherit that: `yes | head` in a script would end in an error.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        # In place of this process, so that signals and the exit code are the program's own.
        os.execve(path, program, environment)
    except OSError as error:
        raise _unstartable(path, error) from None


def _build(_: argparse.Namespace) -> int:
    libraries = building.build()
    prepare(simnpu.environ(), building.say_on_stderr)
    print(libraries)
    return 0


def _doctor(_: argparse.Namespace) -> int:
    findings = examine()
    for finding in findings:
        sign = "ok     " if finding.good else "MISSING" if finding.needed else "without"
        print(f"{sign} {finding.what}: {finding.detail}")
        if finding.remedy:
            print(f"        remedy: {finding.remedy}")
    return 0 if all(finding.good or not finding.needed for finding in findings) else 1


def _env(arguments: argparse.Namespace) -> int:
    environment = _environment(arguments, arguments.log)
    names = [name for name in (*CHANGED, "ASCEND_RT_VISIBLE_DEVICES") if name in environment]
    # Of the many variables that a shell has anyway, those that are different now.
    wanted = {
        name: environment[name] for name in names if name not in ACTIVATED or environment[name] != os.environ.get(name)
    }
    if arguments.format == "json":
        print(json.dumps(wanted, indent=2))
    else:
        for name, value in wanted.items():
            print(f"export {name}={shlex.quote(value)}")
    return 0


def _calls(arguments: argparse.Namespace) -> int:
    import tempfile

    from simnpu.calls import parse_record

    program = _program(arguments)
    with tempfile.TemporaryDirectory(prefix="simnpu-calls-") as directory:
        log = Path(directory) / "calls.log"
        environment = _environment(arguments, str(log))
        path = _find(program[0], environment)
        with _interruptions_left_to_the_program():
            try:
                code = subprocess.run(program, executable=path, env=environment, check=False).returncode
            except OSError as error:
                raise _unstartable(path, error) from None
        lines = log.read_text().splitlines() if log.exists() else []
    made: dict[str, int] = {}
    failed: dict[str, int] = {}
    for line in lines:
        record = parse_record(line)
        made[record.name] = made.get(record.name, 0) + 1
        failed[record.name] = failed.get(record.name, 0) + (record.result != 0)
    for name in sorted(made):
        print(f"{made[name]:8} {name}" + (f"  ({failed[name]} failed)" if failed[name] else ""))
    print(f"{sum(made.values()):8} calls in all; the program ended with {code}")
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _interruptions_left_to_the_program() -> Iterator[None]:
    """While it lasts, Ctrl-C does here what the program makes of it: a terminal tells both."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        # Not SIG_IGN, which the program would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "build": _build,
    "doctor": _doctor,
    "env": _env,
    "calls": _calls,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code (2: asked for wrongly, 1: the simulator cannot be built)."""
    with output.for_anybody("simnpu"):
        arguments = _parser().parse_args(argv)
        try:
            return COMMANDS[arguments.command](arguments)
        except SettingError as error:
            print(f"simnpu: {error}", file=sys.stderr)
            return USAGE
        except _NotStarted as error:
            print(f"simnpu: {error}", file=sys.stderr)
            return error.code
        except building.BuildError as error:
            print(f"simnpu: {error}", file=sys.stderr)
            return 1
