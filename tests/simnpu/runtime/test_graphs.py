"""Graph capture of the simulated runtime: what is recorded, replayed, updated, refused."""

from __future__ import annotations

import ctypes
import json
import threading

import acl
import pytest
from isolated import on_simulator

SIDE_DEPENDENCY = 107024
UNJOINED = 107025
STREAM_CAPTURED = 107027
EVENT_CAPTURED = 107028
NOT_CAPTURED = 107029
UNSAFE = 107030
DEFAULT_STREAM = 107031
CONFLICT = 107032
GROUP_STATUS = 107033
WRONG_STREAM = 107036
WRONG_THREAD = 107038
UPDATE_FAILED = 107040
INVALIDATED = 507903


def begin(stream: int, mode: int = acl.GLOBAL) -> None:
    acl.call("aclmdlRICaptureBegin", stream, mode)


def end(stream: int) -> int:
    return acl.out("aclmdlRICaptureEnd", stream, first=False)


def state(stream: int) -> int:
    status, model = ctypes.c_int(), ctypes.c_void_p()
    acl.call("aclmdlRICaptureGetInfo", stream, ctypes.byref(status), ctypes.byref(model))
    assert (model.value is None) == (status.value == 0)
    return status.value


def replay(model: int, stream: int) -> None:
    acl.call("aclmdlRIExecuteAsync", model, stream)
    acl.call("aclrtSynchronizeStream", stream)


@on_simulator()
def test_captured_tasks_run_at_each_replay_and_only_then():
    acl.set_device()
    stream = acl.stream()
    source, target = acl.malloc(4), acl.malloc(4)
    acl.write(source, b"aaaa")
    acl.write(target, b"....")
    ran: list[int] = []
    begin(stream)
    assert state(stream) == 1
    acl.copy(target, source, 4, stream)
    acl.host_function(stream, lambda: ran.append(len(ran)))
    acl.fill(source, ord("z"), 2, stream)
    model = end(stream)
    assert state(stream) == 0
    assert acl.read(target, 4) == b"...."
    assert ran == []
    replay(model, stream)
    assert acl.read(target, 4) == b"aaaa"
    assert acl.read(source, 4) == b"zzaa"
    acl.write(source, b"bbbb")
    replay(model, stream)  # reads what the buffers hold now
    assert acl.read(target, 4) == b"bbbb"
    assert ran == [0, 1]
    acl.call("aclmdlRIDestroy", model)
    acl.refuses(acl.PARAM_INVALID, "no live model", "aclmdlRIExecuteAsync", model, stream)
    acl.refuses(acl.PARAM_INVALID, "no live model", "aclmdlRIDestroy", model)


@on_simulator()
def test_a_replay_takes_its_place_in_the_order_of_the_stream():
    acl.set_device()
    capturing, stream = acl.stream(), acl.stream()
    memory = acl.malloc(3)
    begin(capturing)
    acl.fill(memory + 1, ord("2"), 2, capturing)
    model = end(capturing)
    gate = acl.Gate(stream)
    acl.fill(memory, ord("1"), 3, stream)
    acl.call("aclmdlRIExecuteAsync", model, stream)
    acl.fill(memory + 2, ord("3"), 1, stream)
    acl.call("aclmdlRIDestroy", model)  # what is queued holds on to it
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 3) == b"123"


@on_simulator()
def test_a_stream_that_waits_for_a_captured_event_joins_the_capture():
    acl.set_device()
    main, side = acl.stream(), acl.stream()
    memory = acl.malloc(8)
    acl.write(memory, b"--------")
    fork, join = acl.event(), acl.event()
    begin(main)
    acl.fill(memory, ord("a"), 8, main)
    acl.call("aclrtRecordEvent", fork, main)
    acl.call("aclrtStreamWaitEvent", side, fork)
    assert state(side) == 1
    acl.fill(memory + 4, ord("b"), 4, side)
    acl.call("aclrtRecordEvent", join, side)
    acl.call("aclrtStreamWaitEvent", main, join)
    acl.fill(memory + 6, ord("c"), 2, main)
    model = end(main)
    assert state(side) == 0
    assert acl.read(memory, 8) == b"--------"
    replay(model, side)
    assert acl.read(memory, 8) == b"aaaabbcc"
    acl.refuses(EVENT_CAPTURED, "graph capture", "aclrtSynchronizeEvent", join)
    acl.refuses(EVENT_CAPTURED, "has ended", "aclrtStreamWaitEvent", main, join)


@pytest.mark.parametrize("late", [False, True])
@on_simulator()
def test_a_capture_whose_side_stream_is_not_waited_for_is_refused(late: bool):
    acl.set_device()
    main, side = acl.stream(), acl.stream()
    memory = acl.malloc(8)
    fork, join = acl.event(), acl.event()
    begin(main)
    acl.call("aclrtRecordEvent", fork, main)
    acl.call("aclrtStreamWaitEvent", side, fork)
    if late:
        acl.call("aclrtRecordEvent", join, side)
        acl.call("aclrtStreamWaitEvent", main, join)
    acl.fill(memory, 1, 8, side)
    acl.refuses(UNJOINED, "never waited for", "aclmdlRICaptureEnd", main, ctypes.byref(ctypes.c_void_p()))
    assert state(main) == state(side) == 0


@on_simulator()
def test_what_would_wait_for_recorded_work_is_refused_and_the_capture_goes_on():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(8)
    acl.write(memory, b"--------")
    place = ctypes.byref(ctypes.c_void_p())
    begin(stream)
    for at, (code, name, arguments) in enumerate(
        (
            (STREAM_CAPTURED, "aclrtSynchronizeStream", (stream,)),
            (STREAM_CAPTURED, "aclrtSynchronizeStreamWithTimeout", (stream, 1)),
            (STREAM_CAPTURED, "aclrtStreamQuery", (stream, place)),
            (STREAM_CAPTURED, "aclrtDestroyStream", (stream,)),
            (STREAM_CAPTURED, "aclrtDestroyStreamForce", (stream,)),
            (UNSAFE, "aclrtSynchronizeDevice", ()),
            (UNSAFE, "aclrtSynchronizeDeviceWithTimeout", (1,)),
        )
    ):
        acl.refuses(code, name, name, *arguments)
        assert state(stream) == 1, name
        acl.fill(memory + at, ord("0") + at, 1, stream)
    model = end(stream)
    assert acl.read(memory, 8) == b"--------"
    replay(model, stream)
    assert acl.read(memory, 8) == b"0123456-"


@on_simulator()
def test_depending_on_something_outside_is_refused_and_spoils_the_capture():
    acl.set_device()
    stream, other = acl.stream(), acl.stream()
    place = ctypes.byref(ctypes.c_void_p())
    event, shared = acl.event(), acl.event(acl.IPC)
    acl.call("aclrtRecordEvent", event, other)
    for code, name, arguments in (
        (SIDE_DEPENDENCY, "aclrtStreamWaitEvent", (stream, event)),
        (STREAM_CAPTURED, "aclrtStreamWaitEvent", (stream, shared)),
        (STREAM_CAPTURED, "aclrtRecordEvent", (shared, stream)),
    ):
        begin(stream)
        acl.refuses(code, name, name, *arguments)
        assert state(stream) == 2
        assert acl.code("aclrtMemsetAsync", acl.malloc(8), 8, 0, 8, stream) == INVALIDATED
        acl.refuses(INVALIDATED, "no longer valid", "aclmdlRICaptureEnd", stream, place)
        assert state(stream) == 0
        acl.call("aclrtSynchronizeStream", stream)


@on_simulator()
def test_synchronous_copies_depend_on_the_mode():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(8)
    place = ctypes.byref(ctypes.c_void_p())
    for mode, elsewhere, allowed in (
        (acl.GLOBAL, False, False),
        (acl.GLOBAL, True, False),
        (acl.THREAD_LOCAL, False, False),
        (acl.THREAD_LOCAL, True, True),
        (acl.RELAXED, False, True),
        (acl.RELAXED, True, True),
    ):
        begin(stream, mode)
        results: list[int] = []

        def attempt(results: list[int] = results) -> None:
            acl.set_device()
            results.append(acl.code("aclrtMemset", memory, 8, 0, 8))

        if elsewhere:
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()
        else:
            attempt()
        assert results == [0 if allowed else UNSAFE], (mode, elsewhere)
        assert acl.code("aclmdlRICaptureEnd", stream, place) == (0 if allowed else INVALIDATED)
    # A thread may relax its own mode for a while.
    begin(stream)
    mode = ctypes.c_int(acl.RELAXED)
    acl.call("aclmdlRICaptureThreadExchangeMode", ctypes.byref(mode))
    assert mode.value == acl.GLOBAL
    acl.call("aclrtMemset", memory, 8, 0, 8)
    acl.call("aclmdlRICaptureThreadExchangeMode", ctypes.byref(mode))
    assert mode.value == acl.RELAXED
    end(stream)


@on_simulator()
def test_captures_that_make_no_sense_are_refused():
    acl.set_device()
    stream, other = acl.stream(), acl.stream()
    place = ctypes.byref(ctypes.c_void_p())
    acl.refuses(NOT_CAPTURED, "not being captured", "aclmdlRICaptureEnd", stream, place)
    acl.refuses(DEFAULT_STREAM, "default stream", "aclmdlRICaptureBegin", None, acl.GLOBAL)
    acl.refuses(acl.PARAM_INVALID, "unknown mode 8", "aclmdlRICaptureBegin", stream, 8)
    begin(stream)
    acl.refuses(STREAM_CAPTURED, "already", "aclmdlRICaptureBegin", stream, acl.GLOBAL)
    fork = acl.event()
    acl.call("aclrtRecordEvent", fork, stream)
    acl.call("aclrtStreamWaitEvent", other, fork)
    acl.refuses(WRONG_STREAM, "another stream", "aclmdlRICaptureEnd", other, place)
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(acl.code("aclmdlRICaptureEnd", stream, place)))
    thread.start()
    thread.join()
    assert results == [WRONG_THREAD]
    model = end(stream)
    replay(model, stream)  # an empty graph
    begin(stream)
    begin(other)
    acl.call("aclrtRecordEvent", fork, stream)
    acl.refuses(CONFLICT, "two different captures", "aclrtStreamWaitEvent", other, fork)
    for spoilt in (stream, other):
        acl.refuses(INVALIDATED, "another capture", "aclmdlRICaptureEnd", spoilt, place)


@on_simulator()
def test_a_failing_task_ends_the_replay():
    acl.set_device()
    stream = acl.stream()
    gone, kept = acl.malloc(8), acl.malloc(8)
    acl.write(kept, b"--------")
    begin(stream)
    acl.fill(gone, 1, 8, stream)
    acl.fill(kept, ord("x"), 8, stream)
    model = end(stream)
    acl.call("aclrtFree", gone)
    acl.call("aclmdlRIExecuteAsync", model, stream)
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtSynchronizeStream", stream)
    assert acl.read(kept, 8) == b"--------"


@on_simulator()
def test_task_groups_are_updated_in_the_order_of_the_stream():
    acl.set_device()
    stream, updating = acl.stream(), acl.stream()
    memory = acl.malloc(3)
    place = ctypes.byref(ctypes.c_void_p())
    begin(stream)
    acl.fill(memory, ord("1"), 3, stream)
    acl.call("aclmdlRICaptureTaskGrpBegin", stream)
    acl.refuses(GROUP_STATUS, "open already", "aclmdlRICaptureTaskGrpBegin", stream)
    acl.fill(memory + 1, ord("2"), 1, stream)
    group = acl.out("aclmdlRICaptureTaskGrpEnd", stream, first=False)
    acl.fill(memory + 2, ord("3"), 1, stream)
    model = end(stream)
    replay(model, stream)
    assert acl.read(memory, 3) == b"123"
    acl.call("aclmdlRICaptureTaskUpdateBegin", updating, group)
    acl.fill(memory + 1, ord("x"), 1, updating)
    acl.call("aclmdlRICaptureTaskUpdateEnd", updating)
    acl.call("aclrtSynchronizeStream", updating)
    assert acl.read(memory, 3) == b"123", "an update changes the graph and runs nothing"
    replay(model, stream)
    assert acl.read(memory, 3) == b"1x3"
    acl.call("aclmdlRICaptureTaskUpdateBegin", updating, group)
    acl.refuses(UPDATE_FAILED, "the group has 1 tasks, the update brings 0", "aclmdlRICaptureTaskUpdateEnd", updating)
    acl.refuses(GROUP_STATUS, "no update", "aclmdlRICaptureTaskUpdateEnd", updating)
    acl.refuses(NOT_CAPTURED, "not being captured", "aclmdlRICaptureTaskGrpBegin", stream)
    begin(stream)
    acl.call("aclmdlRICaptureTaskGrpBegin", stream)
    acl.refuses(GROUP_STATUS, "not ended", "aclmdlRICaptureEnd", stream, place)
    acl.call("aclmdlRIDestroy", model)
    acl.refuses(acl.PARAM_INVALID, "no live task group", "aclmdlRICaptureTaskUpdateBegin", updating, group)


@on_simulator()
def test_an_external_event_holds_each_replay_until_it_is_recorded():
    acl.set_device()
    stream, outside = acl.stream(), acl.stream()
    memory = acl.malloc(4)
    event = acl.event(acl.EXTERNAL)
    begin(stream)
    acl.call("aclrtStreamWaitEvent", stream, event)
    acl.call("aclrtResetEvent", event, stream)
    acl.fill(memory, ord("x"), 4, stream)
    model = end(stream)
    for _ in range(2):
        acl.write(memory, b"----")
        acl.call("aclmdlRIExecuteAsync", model, stream)
        assert not acl.idle(stream)
        assert acl.read(memory, 4) == b"----"
        acl.call("aclrtRecordEvent", event, outside)
        acl.call("aclrtSynchronizeStream", stream)
        assert acl.read(memory, 4) == b"xxxx"


@on_simulator()
def test_a_graph_can_be_extended_and_shown():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(2)
    begin(stream)
    acl.fill(memory, ord("1"), 2, stream)
    model = end(stream)
    acl.call("aclmdlRICaptureToModelRIBegin", stream, model, acl.GLOBAL)
    acl.refuses(107026, "still being captured", "aclmdlRIExecuteAsync", model, stream)
    acl.fill(memory + 1, ord("2"), 1, stream)
    assert end(stream) == model
    replay(model, stream)
    assert acl.read(memory, 2) == b"12"
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph.json"
        acl.call("aclmdlRIDebugJsonPrint", model, str(path).encode(), 0)
        tasks = json.loads(path.read_text())
        assert [task["name"] for task in tasks] == ["aclrtMemsetAsync"] * 2
        assert [(task["ph"], task["ts"], task["dur"]) for task in tasks] == [("X", 0, 1), ("X", 1, 1)]
        number = acl.out("aclrtStreamGetId", stream, kind=ctypes.c_int32, first=False)
        assert {(task["tid"], task["args"]["Stream Id"]) for task in tasks} == {(f"stream{number}", number)}
        acl.refuses(107010, "cannot write", "aclmdlRIDebugJsonPrint", model, f"{directory}/no/graph.json".encode(), 0)


@on_simulator()
def test_a_reset_ends_captures_and_graphs_of_its_device():
    acl.set_device()
    stream = acl.stream()
    begin(stream)
    model = end(stream)
    begin(stream)
    acl.call("aclrtResetDevice", 0)
    acl.set_device()
    acl.refuses(acl.PARAM_INVALID, "no live model", "aclmdlRIExecuteAsync", model, 0)
    acl.call("aclrtSynchronizeDevice")
    begin(acl.stream())


@on_simulator()
def test_graphs_may_contain_graphs_but_not_each_other():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(4)
    acl.write(memory, b"----")
    begin(stream)
    acl.fill(memory, ord("i"), 2, stream)
    inner = end(stream)
    begin(stream)
    acl.call("aclmdlRIExecuteAsync", inner, stream)
    acl.fill(memory + 1, ord("o"), 1, stream)
    outer = end(stream)
    replay(outer, stream)
    assert acl.read(memory, 4) == b"io--"
    acl.call("aclmdlRICaptureToModelRIBegin", stream, inner, acl.GLOBAL)
    acl.call("aclmdlRIExecuteAsync", outer, stream)
    end(stream)
    acl.call("aclmdlRIExecuteAsync", outer, stream)
    acl.refuses(507011, "replay each other", "aclrtSynchronizeStream", stream)


@on_simulator()
def test_an_operator_of_the_legacy_path_spoils_the_capture():
    acl.set_device()
    stream = acl.stream()
    nothing = (0, None, None, 0, None, None, None, 0, 0, None)
    acl.refuses(100024, "Sum of the legacy path is not simulated", "aclopCompileAndExecute", b"Sum", *nothing, stream)
    acl.call("aclmdlRICaptureBegin", stream, acl.RELAXED)
    acl.refuses(107027, "cannot be recorded", "aclopCompileAndExecute", b"Sum", *nothing, stream)
    acl.refuses(
        507903, "Sum of the legacy path was called", "aclmdlRICaptureEnd", stream, ctypes.byref(ctypes.c_void_p())
    )
