"""Which CANN calls this process has made on the simulator, asked of the library that is loaded already.

Imports nothing heavy and loads nothing: without the simulator there are simply no calls.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

_LIBRARY = "libsimnpu.so"


@dataclass(frozen=True)
class Record:
    """One call from the log: when (seconds since 1970), by whom, with which arguments, result (0: success)."""

    time: float
    pid: int
    tid: int
    name: str
    arguments: str
    result: int


_LINE = re.compile(r"(\d+\.\d+) pid=(\d+) tid=(\d+) (\w+)\((.*)\) -> (-?\d+)")


def parse_record(line: str) -> Record:
    """Reads a line of SIMNPU_LOG. Raises ValueError if it is none."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a line of a simulator log: {line!r}")
    time, pid, tid, name, arguments, result = match.groups()
    return Record(float(time), int(pid), int(tid), name, arguments, int(result))


def _loaded() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    library.simnpu_counts.restype = ctypes.c_size_t
    library.simnpu_counts.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.simnpu_call_times.restype = ctypes.c_size_t
    library.simnpu_call_times.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.simnpu_time_calls.restype = None
    library.simnpu_time_calls.argtypes = [ctypes.c_int]
    library.simnpu_log.restype = ctypes.c_size_t
    library.simnpu_log.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64)]
    library.simnpu_log_kept.restype = ctypes.c_int
    library.simnpu_reset_calls.restype = None
    return library


def _text(ask: Callable[[ctypes.Array[ctypes.c_char] | None, int], int]) -> str:
    room = ask(None, 0)
    while True:
        buffer = ctypes.create_string_buffer(room)
        needed = ask(buffer, room)
        if needed <= room:
            return buffer.value.decode()
        room = needed  # other threads made calls in between


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def counts() -> dict[str, int]:
    """Calls so far by name; {} if the simulator is not loaded in this process."""
    library = _loaded()
    return {} if library is None else _numbers(_text(library.simnpu_counts))


def time_calls(on: bool) -> None:
    """From now on the time inside calls is added up, or no longer. It costs two looks at the clock for every call."""
    library = _loaded()
    if library is not None:
        library.simnpu_time_calls(int(on))


def nanoseconds() -> dict[str, int]:
    """Time by name inside the calls of all threads, by the clock, as far as time_calls(True) held.

    A call that another call makes belongs to that one. {} if the simulator is not loaded.
    """
    library = _loaded()
    return {} if library is None else _numbers(_text(library.simnpu_call_times))


def log() -> list[Record]:
    """The calls so far in order (the latest 100000); [] if the simulator is not loaded.

    Raises RuntimeError if it is loaded but keeps no log: an empty answer would look like "no call was made".
    """
    library = _loaded()
    if library is None:
        return []
    if not library.simnpu_log_kept():
        raise RuntimeError(
            'the simulator keeps no log: start the process with SIMNPU_LOG set to a path, "stderr" or "memory"'
        )
    return [
        parse_record(line) for line in _text(lambda buffer, room: library.simnpu_log(buffer, room, None)).splitlines()
    ]


def reset() -> None:
    """Counts, times and log start over. SIMNPU_FAULT goes on counting from the start of the process."""
    library = _loaded()
    if library is not None:
        library.simnpu_reset_calls()
