"""CANN's C interface by ctypes, for tests of the simulated runtime without torch.

Calls check their result: a wrong code is an AclError that carries the simulator's text.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT, HOST_TO_BUFFER_TO_DEVICE = range(6)
TIME_LINE = 0x8
IPC = 0x40
EXTERNAL = 0x20
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
STOP_ON_FAILURE = 1

PARAM_INVALID = 107000
INVALID_DEVICE = 107001
NO_CONTEXT = 107002
NO_TIME = 107006
NOT_SUBSCRIBED = 107015
OUT_OF_MEMORY = 207001
NOT_SUPPORTED = 207000
STREAM_TIMEOUT = 507046
EVENT_TIMEOUT = 507047
EVENT_NOT_COMPLETE = 507006
REPORT_TIMEOUT = 507012

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_keep: list[Any] = []  # host functions, which C code calls later


@functools.cache
def library() -> ctypes.CDLL:
    """The simulator, found as torch_npu finds it. Not at import: the tests are collected without it."""
    return ctypes.CDLL("libascendcl.so")


class AclError(Exception):
    """A call that returned an error."""

    def __init__(self, name: str, code: int, text: str) -> None:
        super().__init__(f"{name} -> {code}: {text}")
        self.code = code
        self.text = text


def code(name: str, *arguments: Any) -> int:
    """Calls and returns the code. Python integers go as 64 bits, which suits pointers, sizes and C integers alike."""
    converted = [ctypes.c_int64(a) if isinstance(a, int) else a for a in arguments]
    return getattr(library(), name)(*converted)


def text() -> str:
    library().aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library().aclGetRecentErrMsg().decode()


def call(name: str, *arguments: Any) -> None:
    """Calls and raises AclError for a code other than 0."""
    if result := code(name, *arguments):
        raise AclError(name, result, text())


def refuses(expected: int, fragment: str, name: str, *arguments: Any) -> None:
    """The call must return exactly this code, with a text that names the call or task and contains the fragment."""
    result = code(name, *arguments)
    message = text()
    assert result == expected, f"{name} -> {result}, expected {expected}: {message}"
    assert fragment in message, f"{name}: {fragment!r} is not in {message!r}"


def out(name: str, *arguments: Any, kind: type = ctypes.c_void_p, first: bool = True) -> Any:
    """Calls with a result pointer as first (or last) argument and returns what was put there."""
    result = kind()
    call(name, *([ctypes.byref(result), *arguments] if first else [*arguments, ctypes.byref(result)]))
    return result.value


def out_code(name: str, *arguments: Any) -> int:
    """Calls with a result pointer as last argument and returns the code alone."""
    return code(name, *arguments, ctypes.byref(ctypes.c_int64()))


def set_device(device: int = 0) -> None:
    call("aclrtSetDevice", device)


def malloc(size: int) -> int:
    return out("aclrtMalloc", size, 0)


def stream() -> int:
    return out("aclrtCreateStream")


def event(flags: int = TIME_LINE) -> int:
    return out("aclrtCreateEventExWithFlag", flags)


def idle(stream_handle: int) -> bool:
    return out("aclrtStreamQuery", stream_handle, kind=ctypes.c_int, first=False) == 0


def reached(event_handle: int) -> bool:
    return out("aclrtQueryEventStatus", event_handle, kind=ctypes.c_int, first=False) == 1


def read(pointer: int, size: int) -> bytes:
    """Copies device memory to the host, at once."""
    buffer = ctypes.create_string_buffer(size)
    call("aclrtMemcpy", buffer, size, pointer, size, DEVICE_TO_HOST)
    return buffer.raw


def write(pointer: int, data: bytes) -> None:
    """Copies host memory to the device, at once."""
    call("aclrtMemcpy", pointer, len(data), data, len(data), HOST_TO_DEVICE)


def fill(pointer: int, value: int, size: int, stream_handle: int) -> None:
    call("aclrtMemsetAsync", pointer, size, value, size, stream_handle)


def copy(destination: int, source: int, size: int, stream_handle: int) -> None:
    call("aclrtMemcpyAsync", destination, size, source, size, DEVICE_TO_DEVICE, stream_handle)


def host_function(stream_handle: int, function: Callable[[], None]) -> None:
    """Queues a Python function on the stream."""
    wrapped = HOST_FUNCTION(lambda _: function())
    _keep.append(wrapped)
    call("aclrtLaunchHostFunc", stream_handle, wrapped, None)


def until_gone(stream_handle: int) -> None:
    """For a task of a stream that is being destroyed: returns once no new call can reach the stream."""
    while out_code("aclrtStreamGetId", stream_handle) == 0:
        pass


class Gate:
    """A task that holds its stream from when it starts until the test opens the gate."""

    def __init__(self, stream_handle: int) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()
        host_function(stream_handle, self._pass)

    def _pass(self) -> None:
        self.entered.set()
        self._open.wait()

    def wait_entered(self) -> None:
        """Returns once the stream's worker is inside the gate."""
        assert self.entered.wait(30), "the stream never reached the gate"

    def open(self) -> None:
        self._open.set()
