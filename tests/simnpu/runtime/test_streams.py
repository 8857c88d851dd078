"""Streams of the simulated runtime: order, who is busy, waiting with a limit, what happens to a failed task."""

from __future__ import annotations

import ctypes
import threading

import acl
import pytest
from isolated import on_simulator


@on_simulator()
def test_tasks_of_a_stream_run_in_order():
    acl.set_device()
    stream = acl.stream()
    seen: list[int] = []
    for number in range(200):
        acl.host_function(stream, lambda number=number: seen.append(number))
    acl.call("aclrtSynchronizeStream", stream)
    assert seen == list(range(200))


@on_simulator()
def test_a_stream_is_busy_while_its_only_task_runs():
    acl.set_device()
    stream = acl.stream()
    assert acl.idle(stream)
    gate = acl.Gate(stream)
    gate.wait_entered()  # nothing is queued any more: only the task in flight keeps the stream busy
    assert not acl.idle(stream)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.idle(stream)


@on_simulator()
def test_streams_run_side_by_side():
    acl.set_device()
    held, free = acl.stream(), acl.stream()
    gate = acl.Gate(held)
    memory = acl.malloc(16)
    acl.fill(memory, 7, 16, free)
    acl.call("aclrtSynchronizeStream", free)  # would hang if one thread served both
    assert acl.read(memory, 16) == b"\7" * 16
    assert not acl.idle(held)
    gate.open()
    acl.call("aclrtSynchronizeDevice")
    assert acl.idle(held)


@on_simulator()
def test_the_null_stream_is_the_default_stream_of_the_current_device():
    acl.set_device(0)
    default = acl.out("aclrtCtxGetCurrentDefaultStream")
    gate = acl.Gate(0)
    gate.wait_entered()
    assert not acl.idle(0)
    assert not acl.idle(default)
    acl.set_device(1)
    assert acl.idle(0)
    gate.open()
    acl.set_device(0)
    acl.call("aclrtSynchronizeStream", 0)


@on_simulator()
def test_waiting_with_a_limit_gives_up_and_leaves_the_work_alone():
    acl.set_device()
    stream = acl.stream()
    gate = acl.Gate(stream)
    acl.refuses(
        acl.STREAM_TIMEOUT, "did not finish in time", "aclrtSynchronizeStreamWithTimeout", stream, acl.ctypes.c_int(1)
    )
    acl.refuses(acl.STREAM_TIMEOUT, "did not finish", "aclrtSynchronizeDeviceWithTimeout", acl.ctypes.c_int(1))
    gate.open()
    acl.call("aclrtSynchronizeStreamWithTimeout", stream, acl.ctypes.c_int(-1))


@on_simulator()
def test_a_failed_task_is_reported_once_at_the_next_synchronize():
    acl.set_device()
    stream = acl.stream()
    memory = acl.malloc(64)
    gate = acl.Gate(stream)
    acl.fill(memory, 1, 64, stream)
    acl.call("aclrtFree", memory)  # the task finds its memory gone
    gate.open()
    acl.refuses(acl.PARAM_INVALID, "aclrtMemsetAsync: the destination", "aclrtSynchronizeStream", stream)
    acl.call("aclrtSynchronizeStream", stream)


@pytest.mark.parametrize("stop", [False, True])
@on_simulator()
def test_what_follows_a_failed_task_runs_unless_the_stream_stops_on_failure(stop: bool):
    acl.set_device()
    stream = acl.stream()
    if stop:
        acl.call("aclrtSetStreamFailureMode", stream, acl.STOP_ON_FAILURE)
    gone, kept = acl.malloc(64), acl.malloc(64)
    acl.write(kept, b"a" * 64)
    gate = acl.Gate(stream)
    acl.fill(gone, 1, 64, stream)
    acl.fill(kept, ord("b"), 64, stream)
    event = acl.event()
    acl.call("aclrtRecordEvent", event, stream)
    acl.call("aclrtFree", gone)
    gate.open()
    # The event is passed in any case, and tells of the failure.
    acl.refuses(acl.PARAM_INVALID, "aclrtMemsetAsync", "aclrtSynchronizeEvent", event)
    assert acl.read(kept, 64) == (b"a" if stop else b"b") * 64
    acl.refuses(acl.PARAM_INVALID, "aclrtMemsetAsync", "aclrtSynchronizeStream", stream)
    acl.fill(kept, ord("c"), 64, stream)
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(kept, 64) == b"c" * 64


@on_simulator()
def test_the_error_text_belongs_to_the_thread_that_asks():
    acl.set_device()
    stream = acl.stream()
    memory = acl.malloc(64)
    gate = acl.Gate(stream)
    acl.fill(memory, 1, 64, stream)
    acl.call("aclrtFree", memory)
    texts: list[str] = []

    def elsewhere() -> None:
        acl.set_device()
        gate.open()
        assert acl.code("aclrtSynchronizeStream", stream) == acl.PARAM_INVALID
        texts.append(acl.text())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "aclrtMemsetAsync" in texts[0]
    assert acl.text() == ""


@on_simulator()
def test_destroying_a_stream_waits_for_its_work():
    acl.set_device()
    stream = acl.stream()
    memory = acl.malloc(16)
    acl.host_function(stream, lambda: acl.until_gone(stream))
    acl.fill(memory, 3, 16, stream)
    acl.call("aclrtDestroyStream", stream)
    assert acl.read(memory, 16) == b"\3" * 16
    acl.refuses(acl.PARAM_INVALID, "no live stream", "aclrtSynchronizeStream", stream)
    acl.refuses(acl.PARAM_INVALID, "no live stream", "aclrtDestroyStream", stream)


@on_simulator()
def test_destroying_by_force_drops_queued_work():
    acl.set_device()
    stream = acl.stream()
    memory = acl.malloc(16)
    acl.write(memory, b"x" * 16)
    acl.host_function(stream, lambda: acl.until_gone(stream))
    acl.fill(memory, 3, 16, stream)
    acl.call("aclrtDestroyStreamForce", stream)
    assert acl.read(memory, 16) == b"x" * 16


@on_simulator()
def test_a_task_that_waits_for_its_own_stream_gets_an_error_instead_of_waiting_for_ever():
    acl.set_device()
    stream = acl.stream()
    results: list[int] = []
    acl.host_function(stream, lambda: results.append(acl.code("aclrtSynchronizeStream", stream)))
    acl.call("aclrtSynchronizeStream", stream)
    assert results != [0]


@on_simulator()
def test_bad_streams_are_refused():
    acl.refuses(acl.NO_CONTEXT, "aclrtSetDevice first", "aclrtSynchronizeStream", 0)
    acl.refuses(acl.NO_CONTEXT, "aclrtSetDevice first", "aclrtCreateStream", acl.ctypes.byref(acl.ctypes.c_void_p()))
    acl.set_device()
    acl.refuses(acl.PARAM_INVALID, "null", "aclrtCreateStream", None)
    acl.refuses(acl.PARAM_INVALID, "null", "aclrtStreamQuery", acl.stream(), None)
    acl.refuses(acl.PARAM_INVALID, "no live stream", "aclrtSynchronizeStream", 0x1234)
    acl.refuses(acl.PARAM_INVALID, "no live stream", "aclrtSynchronizeStream", acl.event())
    acl.refuses(acl.PARAM_INVALID, "default stream", "aclrtDestroyStream", acl.out("aclrtCtxGetCurrentDefaultStream"))
    acl.refuses(acl.PARAM_INVALID, "function is null", "aclrtLaunchHostFunc", acl.stream(), None, None)


@on_simulator()
def test_threads_start_with_the_first_task_only():
    def workers() -> int:
        from pathlib import Path

        names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
        return sum(name.startswith("npu") for name in names)

    acl.set_device()
    streams = [acl.stream() for _ in range(8)]
    assert workers() == 0
    acl.host_function(streams[3], lambda: None)
    acl.call("aclrtSynchronizeStream", streams[3])
    assert workers() == 1


@on_simulator()
def test_a_process_may_end_while_streams_wait():
    acl.set_device()
    first, second = acl.stream(), acl.stream()
    gate = acl.Gate(first)
    gate.wait_entered()
    event = acl.event()
    acl.call("aclrtRecordEvent", event, first)
    acl.call("aclrtStreamWaitEvent", second, event)
    acl.host_function(second, lambda: None)
    # `gate` is never opened: the process ends all the same (the limit of on_simulator would show if not).


@on_simulator()
def test_priorities_are_kept_and_read_back():
    acl.set_device()
    for priority in (0, 7):
        stream = acl.out("aclrtCreateStreamWithConfig", priority, 0)
        assert acl.out("aclrtStreamGetPriority", stream, kind=ctypes.c_uint32, first=False) == priority
    acl.refuses(
        acl.PARAM_INVALID, "0 (first) to 7", "aclrtCreateStreamWithConfig", ctypes.byref(ctypes.c_void_p()), 8, 0
    )


@on_simulator()
def test_a_host_function_that_ends_its_thread_is_an_error_and_the_stream_goes_on():
    # As Python's own threads do that want the interpreter when it has ended.
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(8)
    acl.call("aclrtLaunchHostFunc", stream, ctypes.CDLL(None).pthread_exit, None)
    acl.fill(memory, 7, 8, stream)
    acl.refuses(500000, "host function: it ended the stream's thread", "aclrtSynchronizeStream", stream)
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 8) == b"\x07" * 8, "what was queued behind it has run"
