"""The first program in every fresh interpreter: starts the import recorder, runs one case as __main__ and writes how it
ended. The parent believes in a pass only if the last record is there and the interpreter then ended with 0."""

from __future__ import annotations

import sys

_HERE = __file__.rpartition("/")[0]


def bind() -> None:
    """Bind `harness` to the folder of this file. Were the name looked up on sys.path, where the judged package's folder
    may stand first, the judged could replace the judge."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("harness", f"{_HERE}/__init__.py", submodule_search_locations=[_HERE])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["harness"] = module
    spec.loader.exec_module(module)


def main(arguments: list[str]) -> int:
    """Run the case named by arguments[0]. Returns the interpreter's exit code."""
    from . import collecting, jitter, protocol, recorder

    recorder.install()

    import faulthandler
    import json
    import os
    import types

    collecting.rarely()
    descriptor, dump, parent = (
        os.environ.pop(name, None) for name in (protocol.RESULT_FD, protocol.DUMP_FD, protocol.PARENT)
    )
    if parent is None or descriptor is None or dump is None or not arguments:
        print(
            "this program is started by the runner. To run one case: python -m harness run CASE key=value",
            file=sys.stderr,
        )
        return 2
    _bind_to(int(parent))
    os.set_inheritable(int(dump), False)
    faulthandler.enable(file=int(dump), all_threads=True)

    from .probe import _session

    path = arguments[0]
    session = _session.begin(_session.SealedSession(json.loads(os.environ[protocol.POINT]), int(descriptor)))

    try:
        code = compile(open(path, "rb").read(), path, "exec", dont_inherit=True)  # noqa: PTH123, SIM115
    except (OSError, SyntaxError) as error:
        session.emit({"kind": "broken", "message": f"the case cannot be read: {error}"})
        return 1

    program = types.ModuleType("__main__")
    program.__dict__.update({"__file__": path, "__cached__": None, "__builtins__": __builtins__})
    own = sys.modules["__main__"]  # kept: a dropped module's globals are cleared
    sys.modules["__main__"] = program
    sys.argv = list(arguments)

    status = 0
    soak = os.environ.get(protocol.SOAK)
    if soak is not None:
        jitter.start(soak)
    try:
        preamble = os.environ.get(protocol.PREAMBLE)
        if preamble:
            __import__(preamble)
        exec(code, program.__dict__)
        session.finish()
        end: dict = {"how": "returned"}
    except _session.Unsupported:
        end = {"how": "unsupported"}
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        end = {"how": "exit", "code": status, "message": str(error.code), **_trace(error)}
        if not isinstance(error.code, int) and error.code is not None:
            print(error.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        # A failed check is in the records already; its traceback would only say it twice.
        trace = _trace(error, shown=not isinstance(error, _session.CheckFailed))
        end = {"how": "raised", "type": type(error).__name__, "message": _message(error), **trace}
        end["probe_error"] = isinstance(error, _session.ProbeError)
    if session.owner:
        session.emit({"kind": "versions", **_versions(), "modules": len(sys.modules)})
        session.emit({"kind": "end", **end, **session.counts()})
    del own
    return status


def _bind_to(parent: int) -> None:
    """Die with the runner, take signals as in a shell, leave no core file. Not done between fork and exec: the runner
    has threads."""
    import ctypes
    import os
    import resource
    import signal

    # What the runner's parents ignore (nohup, an xdist worker) must not decide how a case takes a signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:
        return f"<its str() raises {type(other).__name__}>"


def _trace(error: BaseException, shown: bool = False) -> dict:
    """The traceback without this file's frames, also on stderr when `shown`."""
    import traceback

    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
    if shown:
        traceback.print_exception(type(error), error, error.__traceback__)
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"traceback": frames}


def _versions() -> dict:
    """What the loaded packages say of themselves, read from their dictionaries: asking a lazy module could load it."""
    from . import protocol

    found: dict = {}
    for name in ("torch", "torch_npu", *protocol.PREAMBLES):
        module = sys.modules.get(name)
        namespace = getattr(module, "__dict__", None)
        if isinstance(namespace, dict):
            version, file = namespace.get("__version__"), namespace.get("__file__")
            found[name] = {
                "version": None if version is None else str(version),
                "file": None if file is None else str(file),
            }
    return found


if __name__ == "__main__":
    if sys.path and sys.path[0] == _HERE:  # Python 3.10 has no -P
        del sys.path[0]
    bind()
    __package__ = "harness"
    sys.exit(main(sys.argv[1:]))
