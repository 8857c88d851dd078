"""Events of the simulated runtime: order between streams, states, times."""

from __future__ import annotations

import ctypes
import threading

import acl
import pytest
from isolated import on_simulator


@on_simulator()
def test_a_stream_waits_for_an_event_of_another():
    acl.set_device()
    producer, consumer = acl.stream(), acl.stream()
    memory, copy = acl.malloc(32), acl.malloc(32)
    acl.write(memory, b"0" * 32)
    gate = acl.Gate(producer)
    acl.fill(memory, ord("1"), 32, producer)
    event = acl.event()
    acl.call("aclrtRecordEvent", event, producer)
    acl.call("aclrtStreamWaitEvent", consumer, event)
    acl.copy(copy, memory, 32, consumer)
    gate.wait_entered()
    assert not acl.reached(event)
    assert not acl.idle(consumer)
    assert acl.out("aclrtQueryEventWaitStatus", event, kind=ctypes.c_int, first=False) == 1
    gate.open()
    acl.call("aclrtSynchronizeStream", consumer)
    assert acl.read(copy, 32) == b"1" * 32
    assert acl.reached(event)
    assert acl.out("aclrtQueryEventWaitStatus", event, kind=ctypes.c_int, first=False) == 0


@on_simulator()
def test_every_interleaving_of_two_producers_ends_the_same():
    # The gates force each order in which the producers can finish; the consumer must see both results each time.
    acl.set_device()
    streams = [acl.stream(), acl.stream()]
    consumer = acl.stream()
    memory, copy = acl.malloc(2), acl.malloc(2)
    for first in (0, 1):
        acl.write(memory, b"00")
        gates = [acl.Gate(stream) for stream in streams]
        events = [acl.event(), acl.event()]
        for number, stream in enumerate(streams):
            acl.fill(memory + number, ord("a") + number, 1, stream)
            acl.call("aclrtRecordEvent", events[number], stream)
            acl.call("aclrtStreamWaitEvent", consumer, events[number])
        acl.copy(copy, memory, 2, consumer)
        gates[first].open()
        acl.call("aclrtSynchronizeStream", streams[first])
        assert acl.reached(events[first])
        assert not acl.reached(events[1 - first])
        assert not acl.idle(consumer)
        gates[1 - first].open()
        acl.call("aclrtSynchronizeStream", consumer)
        assert acl.read(copy, 2) == b"ab"


@on_simulator()
def test_a_wait_means_the_recording_before_it_not_a_later_one():
    acl.set_device()
    producer, consumer = acl.stream(), acl.stream()
    event = acl.event()
    first = acl.Gate(producer)
    acl.call("aclrtRecordEvent", event, producer)
    acl.call("aclrtStreamWaitEvent", consumer, event)
    second = acl.Gate(producer)
    acl.call("aclrtRecordEvent", event, producer)
    first.open()
    acl.call("aclrtSynchronizeStream", consumer)  # would hang if the wait had moved to the second recording
    assert not acl.reached(event)
    second.open()
    acl.call("aclrtSynchronizeEvent", event)


@pytest.mark.parametrize("flags", [acl.TIME_LINE, acl.IPC])
@on_simulator()
def test_a_wait_holds_however_often_other_streams_record_the_event_again(flags: int):
    # torch_npu takes the events of its copies from a pool: another thread records one as soon as the wait is queued.
    acl.set_device()
    producer, others, consumer = acl.stream(), acl.stream(), acl.stream()
    event = acl.event(flags)
    gate = acl.Gate(producer)
    acl.call("aclrtRecordEvent", event, producer)
    acl.call("aclrtStreamWaitEvent", consumer, event)
    for _ in range(300):
        acl.call("aclrtRecordEvent", event, others)
    acl.call("aclrtSynchronizeStream", others)
    assert acl.reached(event)
    assert not acl.idle(consumer)
    gate.open()
    acl.call("aclrtSynchronizeStream", consumer)


@on_simulator()
def test_an_event_never_recorded_holds_nobody():
    acl.set_device()
    stream, event = acl.stream(), acl.event()
    assert acl.reached(event)
    acl.call("aclrtSynchronizeEvent", event)
    acl.call("aclrtStreamWaitEvent", stream, event)
    acl.call("aclrtSynchronizeStream", stream)


@on_simulator()
def test_destroying_an_event_does_not_disturb_who_waits():
    acl.set_device()
    producer, consumer = acl.stream(), acl.stream()
    event = acl.event()
    gate = acl.Gate(producer)
    acl.call("aclrtRecordEvent", event, producer)
    acl.call("aclrtStreamWaitEvent", consumer, event)
    acl.call("aclrtDestroyEvent", event)
    assert not acl.idle(consumer)
    gate.open()
    acl.call("aclrtSynchronizeStream", consumer)
    acl.refuses(acl.PARAM_INVALID, "no live event", "aclrtDestroyEvent", event)
    acl.refuses(acl.PARAM_INVALID, "no live event", "aclrtRecordEvent", event, consumer)


@on_simulator()
def test_events_order_streams_of_two_devices():
    acl.set_device(0)
    producer, here = acl.stream(), acl.malloc(8)
    acl.write(here, b"00000000")
    event = acl.event()
    gate = acl.Gate(producer)
    acl.fill(here, ord("7"), 8, producer)
    acl.call("aclrtRecordEvent", event, producer)
    acl.set_device(1)
    acl.call("aclrtDeviceEnablePeerAccess", 0, 0)
    consumer, there = acl.stream(), acl.malloc(8)
    acl.call("aclrtStreamWaitEvent", consumer, event)
    acl.copy(there, here, 8, consumer)
    assert not acl.idle(consumer)
    gate.open()
    acl.call("aclrtSynchronizeDevice")
    assert acl.read(there, 8) == b"77777777"


@on_simulator()
def test_elapsed_time_is_that_of_the_work_between():
    acl.set_device()
    stream = acl.stream()
    start, end = acl.event(), acl.event()
    acl.call("aclrtRecordEvent", start, stream)
    gate = acl.Gate(stream)
    acl.call("aclrtRecordEvent", end, stream)
    gate.wait_entered()
    acl.refuses(
        acl.EVENT_NOT_COMPLETE, "not reached", "aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), start, end
    )
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    forward = acl.out("aclrtEventElapsedTime", start, end, kind=ctypes.c_float)
    assert forward > 0
    assert acl.out("aclrtEventElapsedTime", end, start, kind=ctypes.c_float) == -forward
    begin, finish = (
        acl.out("aclrtEventGetTimestamp", event, kind=ctypes.c_uint64, first=False) for event in (start, end)
    )
    assert begin <= finish


@on_simulator()
def test_times_that_do_not_exist_are_refused():
    acl.set_device()
    stream = acl.stream()
    result = ctypes.byref(ctypes.c_float())
    recorded, fresh, timeless = acl.event(), acl.event(), acl.event(1)
    acl.call("aclrtRecordEvent", recorded, stream)
    acl.call("aclrtRecordEvent", timeless, stream)
    acl.call("aclrtSynchronizeStream", stream)
    acl.refuses(acl.NO_TIME, "never recorded", "aclrtEventElapsedTime", result, recorded, fresh)
    acl.refuses(acl.NO_TIME, "without ACL_EVENT_TIME_LINE", "aclrtEventElapsedTime", result, timeless, recorded)
    acl.refuses(acl.PARAM_INVALID, "null", "aclrtEventElapsedTime", None, recorded, recorded)
    acl.refuses(acl.PARAM_INVALID, "unknown flag", "aclrtCreateEventWithFlag", result, 0x4000)


@on_simulator()
def test_waiting_for_an_event_with_a_limit():
    acl.set_device()
    stream, event = acl.stream(), acl.event()
    gate = acl.Gate(stream)
    acl.call("aclrtRecordEvent", event, stream)
    acl.refuses(acl.EVENT_TIMEOUT, "not reached within", "aclrtSynchronizeEventWithTimeout", event, ctypes.c_int(1))
    gate.open()
    acl.call("aclrtSynchronizeEventWithTimeout", event, ctypes.c_int(-1))


@pytest.mark.parametrize("kind", ["plain", "external", "shared"])
@on_simulator()
def test_who_sees_an_event_reached_sees_the_stream_that_far(kind: str):
    acl.set_device()
    stream, waiting = acl.stream(), acl.stream()
    event = acl.event({"plain": acl.TIME_LINE, "external": acl.EXTERNAL, "shared": acl.IPC}[kind])
    if kind == "shared":
        acl.call("aclrtIpcGetEventHandle", event, ctypes.create_string_buffer(64))
    size = 1 << 20
    memory = acl.malloc(size)
    for number in range(300):
        if kind == "external":
            acl.call("aclrtResetEvent", event, stream)
        acl.fill(memory, 1, size, stream)  # long enough that the wait below sleeps
        acl.call("aclrtRecordEvent", event, stream)
        acl.call("aclrtStreamWaitEvent", waiting, event)
        # Whichever of them is asked first: the others say the same.
        if number % 3 == 0:
            acl.call("aclrtSynchronizeEvent", event)
            assert acl.idle(stream), number
        elif number % 3 == 1:
            while not acl.reached(event):
                pass
            assert acl.idle(stream), number
        else:
            acl.call("aclrtSynchronizeStream", stream)
            assert acl.reached(event), number
        while acl.out("aclrtQueryEventWaitStatus", event, kind=ctypes.c_int, first=False) != 0:
            pass
        assert acl.idle(waiting), number


@on_simulator()
def test_many_threads_hand_a_value_round():
    # Each thread waits for the event of the one before it and adds one on a stream of its own.
    acl.set_device()
    threads_count, rounds = 4, 25
    total: list[int] = []
    streams = [acl.stream() for _ in range(threads_count)]
    turn = [threading.Event() for _ in range(threads_count)]
    latest = [acl.event()]
    turn[0].set()

    def work(number: int) -> None:
        acl.set_device()
        for _ in range(rounds):
            turn[number].wait()
            turn[number].clear()
            acl.call("aclrtStreamWaitEvent", streams[number], latest[0])
            acl.host_function(streams[number], lambda: total.append(len(total)))
            latest[0] = acl.event()
            acl.call("aclrtRecordEvent", latest[0], streams[number])
            turn[(number + 1) % threads_count].set()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    acl.call("aclrtSynchronizeDevice")
    assert total == list(range(threads_count * rounds))
