"""The command line: enable or disable for an environment, tell what is in force, explain what a program did."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys

from torch_npu_lazy import activation, fast_launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

_ABOUT = """\
Lazy initialisation for torch_npu: compilers, FSDP, DTensor and the profiler load when they are first used.

A program activates it by `import torch_npu_lazy` before torch; `enable` does so for every program of this environment.
TORCH_NPU_LAZY=0 switches it off for one process and its children.
"""

_DISABLE = """\
Removes the file that `enable` has written. Where not even this runs, because the package is broken:

  python -I -S -c "import os, sysconfig; os.remove(sysconfig.get_path('purelib') + '/torch_npu_lazy.pth')"
"""

_EXPLAIN = """\
Runs a program as Python would and then tells what was deferred, what has run, when, for how long, who asked for it
(module and line), and which errors are kept. Without a program: what `import torch, torch_npu` does.

  python -m torch_npu_lazy explain
  python -m torch_npu_lazy explain train.py --epochs 1
  python -m torch_npu_lazy explain -m package.module
  python -m torch_npu_lazy explain -c "import torch; torch.compile(lambda x: x, backend='eager')(torch.ones(1))"

The explanation goes to stderr, or to --output. It is given however the program ends, but by a signal that no program
can take or by its own death: an exception, sys.exit, os._exit and SIGTERM included.
"""


_BUILD = """\
Builds the C++ part of planned fast launch against the installed wheel, about 20 s, unless it is there. Without this the
first compile with TORCHINDUCTOR_NPU_FAST_LAUNCH=1 does so. It lies in TORCH_NPU_LAZY_CACHE, else in torch_npu_lazy
below XDG_CACHE_HOME or ~/.cache; CXX names another compiler. Images are best built with it inside.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except activation.Unwritable as error:
        print(f"torch_npu_lazy: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m torch_npu_lazy", description=_ABOUT, formatter_class=raw)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    enable = commands.add_parser("enable", help="activate it in every Python process of this environment")
    enable.set_defaults(run=_enable)
    disable = commands.add_parser("disable", help="undo enable", description=_DISABLE, formatter_class=raw)
    disable.set_defaults(run=_disable)
    status = commands.add_parser("status", help="tell whether it is enabled, and for which release there is a profile")
    status.add_argument("--json", action="store_true", help="print the same as one JSON object")
    status.set_defaults(run=_status)

    build = commands.add_parser(
        "build",
        help="build the C++ part of planned fast launch now, instead of at the first compile",
        description=_BUILD,
        formatter_class=raw,
    )
    build.set_defaults(run=_build)

    explain = commands.add_parser(
        "explain",
        help="run a program and tell what was deferred and what ran",
        description=_EXPLAIN,
        formatter_class=raw,
    )
    explain.add_argument("--json", action="store_true", help="as JSON instead of text")
    explain.add_argument("--output", metavar="FILE", help="write it there instead of to stderr")
    # Each takes all that follows, as Python's own do.
    explain.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    explain.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="run code")
    explain.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="run a file, with its arguments")
    explain.set_defaults(run=_explain)
    return parser


def _enable(_: argparse.Namespace) -> int:
    print(f"enabled for {sys.executable}: {activation.enable()}")
    return 0


def _disable(_: argparse.Namespace) -> int:
    removed = activation.disable()
    print(f"disabled: {removed} removed" if removed else f"was not enabled: there is no {activation.path()}")
    return 0


def _status(options: argparse.Namespace) -> int:
    bootstrap = sys.modules.get("torch_npu_lazy.wheel.bootstrap")
    if bootstrap is not None:
        bootstrap.look()
    found = {**activation.status(), "fast_launch": fast_launch.status()}
    if options.json:
        print(json.dumps(found))
        return 0
    enabled = f"enabled by {found['file']}" if found["enabled"] else "not enabled; a program must import torch_npu_lazy"
    # In one piece: a reader may leave after the first line.
    print(
        f"environment  {found['python']}: {enabled}\n"
        f"release      {found['refusal'] or found['profile']}\n"
        f"fast launch  {_fast_launch(found['fast_launch'])}"
    )
    return 0


def _fast_launch(found: dict[str, object]) -> str:
    if not found["on"]:
        return f"off; {fast_launch.VARIABLE}=1 switches it on"
    if found["refusal"]:
        return f"on, but not usable, so every launch takes the usual way: {found['refusal']}"
    return f"on, with {found['extension'] or 'an extension that the first compile will build'}"


def _build(_: argparse.Namespace) -> int:
    from torch_npu_lazy.fast_launch import native

    try:
        if not (path := native.kept()).exists():
            print(f"building {path}", file=sys.stderr)
        print(native.build())
    except native.Unavailable as why:
        print(f"torch_npu_lazy: {why}", file=sys.stderr)
        return 1
    return 0


def _explain(options: argparse.Namespace) -> int:
    from torch_npu_lazy import explanation

    out = None
    if options.output:
        # Before the program, which may take hours.
        try:
            out = open(options.output, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        except OSError as error:
            print(
                f"torch_npu_lazy: cannot write {options.output}: {error.strerror}; name another file with --output",
                file=sys.stderr,
            )
            return 2
    told = False

    def tell() -> int:
        """Once, in this process alone. Returns 2 if it cannot be written, else 0."""
        nonlocal told
        if told or os.getpid() != process:
            return 0
        told = True
        text = json.dumps(explanation.as_data()) + "\n" if options.json else explanation.as_text()
        try:
            if out is not None:
                with out:
                    out.write(text)
            else:
                # The program may have closed both, or taken them away.
                with contextlib.suppress(AttributeError, ValueError):
                    sys.stdout.flush()
                _stderr.write(text)
                _stderr.flush()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            os.write(2, f"torch_npu_lazy: the explanation cannot be written: {reason}\n".encode())
            return 2
        return 0

    process = os.getpid()
    # A descriptor of its own: the program may close its stderr, or put something else there.
    _stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    _tell_at_other_ends(tell)
    try:
        code = _run(options)
    except BaseException:
        tell()
        raise
    return tell() or code


def _tell_at_other_ends(tell: Callable[[], int]) -> None:
    """os._exit passes by everything, and SIGTERM does so unless the program takes it."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        tell()
        leave(status)

    def terminated(number: int, _: object) -> None:
        tell()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    os._exit = _exit  # type: ignore[assignment]
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminated)


def _run(options: argparse.Namespace) -> int:
    """Run the program in this process, as the interpreter would."""
    import runpy

    for option, words in (("-c CODE", options.code), ("-m MODULE", options.module)):
        if words is not None and not words:
            print(f"torch_npu_lazy: {option[:2]} needs what to run: {option}", file=sys.stderr)
            return 2
    if options.code:
        code, *rest = options.code
        sys.argv = ["-c", *rest]
        _first_on_path("")
        # What the program defines is to be found there, by pickle for one.
        program = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(code, "<string>", "exec"), vars(program))
    elif options.module:
        module, *rest = options.module
        sys.argv = [module, *rest]
        _first_on_path(os.getcwd())  # noqa: PTH109
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif options.script:
        script, *rest = options.script
        if not os.path.exists(script):  # noqa: PTH110
            print(
                f"torch_npu_lazy: there is no file {script}; name a script, or use -m MODULE or -c CODE",
                file=sys.stderr,
            )
            return 2
        sys.argv = [script, *rest]
        _first_on_path(os.path.dirname(os.path.abspath(script)))  # noqa: PTH100, PTH120
        runpy.run_path(script, run_name="__main__")
    else:
        import torch
        import torch_npu

        print(f"torch {torch.__version__}, torch_npu {torch_npu.__version__} imported", file=sys.stderr)
    return 0


def _first_on_path(directory: str) -> None:
    """In place of the working directory, which `-m` has put there, unless Python was told to put nothing there."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = directory


if __name__ == "__main__":
    sys.exit(main())
