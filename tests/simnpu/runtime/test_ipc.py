"""Device memory and events shared between processes: keys, allowed processes, processes that end, what is left."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from typing import Any

import acl
import pytest
from isolated import ROOT, on_simulator

KEY_BYTES = 65  # what torch_npu passes
ANYONE = 1
MEBI = 1 << 20
SECONDS = 900  # a hang only; runs as a program, too


class Other:
    """A second process on the simulator that makes the calls it is told, one after the other."""

    def __init__(self, device: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(device)],
            cwd=ROOT / "tests" / "simnpu",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.ask("pid")

    def ask(self, action: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([action, *arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the other process ended in {action}"
        return json.loads(answer)

    def end(self, by_signal: bool = False) -> None:
        if by_signal:
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)


class Actions:
    """What the other process can be told to do."""

    def __init__(self) -> None:
        self.gates: list[acl.Gate] = []

    def pid(self) -> int:
        return os.getpid()

    def malloc(self, size: int) -> int:
        return acl.malloc(size)

    def export(self, pointer: int, size: int) -> str:
        return export(pointer, size, ANYONE)

    def free(self, pointer: int) -> int:
        return acl.code("aclrtFree", pointer)

    def import_code(self, key: str) -> list:
        code = acl.code("aclrtIpcMemImportByKey", ctypes.byref(ctypes.c_void_p()), key.encode(), 0)
        return [code, acl.text()]

    def import_(self, key: str) -> int:
        return acl.out("aclrtIpcMemImportByKey", key.encode(), 0)

    def close(self, key: str) -> int:
        return acl.code("aclrtIpcMemClose", key.encode())

    def write(self, pointer: int, data: str) -> None:
        acl.write(pointer, data.encode())

    def read(self, pointer: int, size: int) -> str:
        return acl.read(pointer, size).decode()

    def physical(self, handle: int) -> list:
        result = ctypes.c_void_p()
        code = acl.code("aclrtMemImportFromShareableHandle", handle, 0, ctypes.byref(result))
        if code:
            return [code, acl.text()]
        start = acl.out("aclrtReserveMemAddress", 2 * MEBI, 0, None, 1)
        acl.call("aclrtMapMem", start, 2 * MEBI, 0, result, 0)
        return [0, acl.read(start, 5).decode()]

    def event(self) -> list:
        event = acl.event(acl.IPC)
        return [event, event_handle(event).hex()]

    def open_event(self, handle: str) -> int:
        return open_event(bytes.fromhex(handle))

    def reached(self, event: int) -> bool:
        return acl.reached(event)

    def record_behind_gate(self, event: int) -> None:
        stream = acl.stream()
        self.gates.append(acl.Gate(stream))
        acl.call("aclrtRecordEvent", event, stream)

    def open_gate(self) -> None:
        self.gates[-1].open()


def export(pointer: int, size: int, flags: int) -> str:
    key = ctypes.create_string_buffer(KEY_BYTES)
    acl.call("aclrtIpcMemGetExportKey", pointer, size, key, KEY_BYTES, flags)
    return key.value.decode()


class EventHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


def event_handle(event: int) -> bytes:
    handle = EventHandle()
    acl.call("aclrtIpcGetEventHandle", event, ctypes.byref(handle))
    return bytes(handle)


def open_event(handle: bytes) -> int:
    result = ctypes.c_void_p()
    acl.call("aclrtIpcOpenEventHandle", EventHandle.from_buffer_copy(handle), ctypes.byref(result))
    assert result.value is not None
    return result.value


@on_simulator()
def test_memory_is_the_same_in_both_processes():
    acl.set_device()
    pointer = acl.malloc(4096 + 64)
    acl.write(pointer, b"hello")
    other = Other()
    key = export(pointer, 4096, ANYONE)
    assert export(pointer, 4096, ANYONE) == key
    there = other.ask("import_", key)
    assert other.ask("read", there, 5) == "hello"
    other.ask("write", there, "howdy")
    assert acl.read(pointer, 5) == b"howdy"
    # A part that begins inside a page.
    part = other.ask("import_", export(pointer + 1, 8, ANYONE))
    assert other.ask("read", part, 4) == "owdy"
    assert other.ask("free", part) == acl.PARAM_INVALID, "only who allocated it may free it"
    assert other.ask("close", key) == 0
    assert other.ask("close", key) == acl.PARAM_INVALID
    assert acl.read(pointer, 5) == b"howdy"
    other.end()


@on_simulator()
def test_imported_memory_has_bounds():
    acl.set_device()
    other = Other()
    pointer = other.ask("malloc", 4096)
    key = other.ask("export", pointer, 100)
    here = acl.out("aclrtIpcMemImportByKey", key.encode(), 0)
    acl.call("aclrtMemset", here, 100, 65, 100)
    assert other.ask("read", pointer, 100) == "A" * 100
    acl.refuses(acl.PARAM_INVALID, "runs past its allocation", "aclrtMemset", here, 101, 0, 101)
    acl.call("aclrtResetDevice", 0)
    acl.set_device()
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtMemset", here, 4, 0, 4)
    acl.refuses(acl.PARAM_INVALID, "neither exported nor imported", "aclrtIpcMemClose", key.encode())
    other.end()


@on_simulator()
def test_only_allowed_processes_may_import():
    acl.set_device()
    pointer = acl.malloc(64)
    key = export(pointer, 64, 0)
    other = Other()
    code, text = other.ask("import_code", key)
    assert (code, "has not allowed this process" in text) == (acl.PARAM_INVALID, True), text
    acl.call("aclrtIpcMemSetImportPid", key.encode(), (ctypes.c_int32 * 1)(other.pid), 1)
    assert other.ask("import_code", key)[0] == 0
    other.end()


@pytest.mark.parametrize("how", ["freed", "closed", "ended", "killed"])
@on_simulator()
def test_memory_that_is_no_longer_there_cannot_be_imported(how: str):
    acl.set_device()
    other = Other()
    pointer = other.ask("malloc", 64)
    key = other.ask("export", pointer, 64)
    other.ask("write", pointer, "kept")
    here = acl.out("aclrtIpcMemImportByKey", key.encode(), 0)
    if how == "freed":
        assert other.ask("free", pointer) == 0
    elif how == "closed":
        assert other.ask("close", key) == 0
    else:
        other.end(by_signal=how == "killed")
    result = ctypes.byref(ctypes.c_void_p())
    acl.refuses(acl.PARAM_INVALID, "is not there", "aclrtIpcMemImportByKey", result, key.encode(), 0)
    if how in ("ended", "killed"):
        assert acl.read(here, 4) == b"kept", "what was imported stays"
    acl.call("aclrtIpcMemClose", key.encode())
    if how in ("freed", "closed"):
        other.end()


@on_simulator()
def test_keys_that_are_none_are_refused():
    acl.set_device()
    pointer = acl.malloc(64)
    key = ctypes.create_string_buffer(KEY_BYTES)
    result = ctypes.byref(ctypes.c_void_p())
    for wrong in (b"", b"simnpu-", b"x" * 64, b"simnpu-zzzzzzzzzzzzzzzz"):
        acl.refuses(acl.PARAM_INVALID, "none of aclrtIpcMemGetExportKey", "aclrtIpcMemImportByKey", result, wrong, 0)
    acl.refuses(acl.PARAM_INVALID, "is not there", "aclrtIpcMemImportByKey", result, b"simnpu-" + b"0" * 16, 0)
    acl.refuses(acl.PARAM_INVALID, "room", "aclrtIpcMemGetExportKey", pointer, 64, key, 8, 0)
    acl.refuses(acl.PARAM_INVALID, "runs past", "aclrtIpcMemGetExportKey", pointer, 65, key, KEY_BYTES, 0)
    acl.refuses(acl.PARAM_INVALID, "neither", "aclrtIpcMemClose", b"simnpu-" + b"0" * 16)


@on_simulator(memory="8M")
def test_physical_memory_is_shared_by_handle():
    from runtime.test_memory import physical

    acl.set_device()
    size = 2 * MEBI
    handle = physical(size)
    start = acl.out("aclrtReserveMemAddress", size, 0, None, 1)
    acl.call("aclrtMapMem", start, size, 0, handle, 0)
    acl.write(start, b"hello")
    shareable = acl.out("aclrtMemExportToShareableHandle", handle, 0, 0, kind=ctypes.c_uint64, first=False)
    other = Other()
    code, text = other.ask("physical", shareable)
    assert (code, "has not allowed" in text) == (acl.PARAM_INVALID, True), text
    acl.call("aclrtMemSetPidToShareableHandle", shareable, (ctypes.c_int32 * 1)(other.pid), 1)
    assert other.ask("physical", shareable) == [0, "hello"]
    acl.call("aclrtUnmapMem", start)
    acl.call("aclrtFreePhysical", handle)
    code, text = other.ask("physical", shareable)
    assert (code, "is not there" in text) == (acl.PARAM_INVALID, True), text
    other.end()


@on_simulator()
def test_a_stream_waits_for_an_event_of_another_process():
    acl.set_device()
    other = Other()
    theirs, handle = other.ask("event")
    event = open_event(bytes.fromhex(handle))
    assert acl.reached(event), "never recorded: holds nobody"
    other.ask("record_behind_gate", theirs)
    stream = acl.stream()
    acl.call("aclrtStreamWaitEvent", stream, event)
    assert not acl.reached(event)
    assert not acl.idle(stream)
    acl.refuses(acl.EVENT_TIMEOUT, "not reached within 30 ms", "aclrtSynchronizeEventWithTimeout", event, 30)
    other.ask("open_gate")
    acl.call("aclrtSynchronizeEvent", event)
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.reached(event)
    acl.refuses(acl.NO_TIME, "keeps no time", "aclrtEventGetTimestamp", event, ctypes.byref(ctypes.c_uint64()))
    acl.refuses(
        acl.PARAM_INVALID,
        "without ACL_EVENT_IPC",
        "aclrtIpcGetEventHandle",
        acl.event(),
        ctypes.byref(EventHandle()),
    )
    other.end()


@on_simulator()
def test_an_event_shared_while_its_recording_is_under_way_holds_the_other_process():
    acl.set_device()
    other = Other()
    event, stream = acl.event(acl.IPC), acl.stream()
    gate = acl.Gate(stream)
    acl.call("aclrtRecordEvent", event, stream)
    theirs = other.ask("open_event", event_handle(event).hex())
    assert not other.ask("reached", theirs)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert other.ask("reached", theirs)
    other.end()


@on_simulator()
def test_too_many_recordings_of_a_shared_event_under_way_are_refused_and_not_mixed_up():
    acl.set_device()
    event, behind, ahead = acl.event(acl.IPC), acl.stream(), acl.stream()
    event_handle(event)
    gate = acl.Gate(behind)
    for _ in range(1000):  # of one stream: they are passed in order, whatever their number
        acl.call("aclrtRecordEvent", event, behind)
    consumer = acl.stream()
    acl.call("aclrtStreamWaitEvent", consumer, event)
    with pytest.raises(acl.AclError, match="recordings of several streams are under way"):
        acl.call("aclrtRecordEvent", event, ahead)
    assert not acl.idle(consumer)
    gate.open()
    acl.call("aclrtSynchronizeStream", consumer)
    acl.call("aclrtRecordEvent", event, ahead)
    acl.call("aclrtSynchronizeEvent", event)


@on_simulator()
def test_nobody_waits_for_a_process_that_was_killed():
    acl.set_device()
    other = Other()
    theirs, handle = other.ask("event")
    event = open_event(bytes.fromhex(handle))
    other.ask("record_behind_gate", theirs)
    stream = acl.stream()
    acl.call("aclrtStreamWaitEvent", stream, event)
    other.end(by_signal=True)
    with pytest.raises(acl.AclError, match="ended before its stream reached the event"):
        acl.call("aclrtSynchronizeStream", stream)
    with pytest.raises(acl.AclError, match="ended before its stream reached the event"):
        acl.call("aclrtSynchronizeEvent", event)


@on_simulator()
def test_freed_memory_goes_back_to_the_host():
    def used() -> int:
        with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
            return next(int(line.split()[1]) for line in file if line.startswith("RssShmem"))

    acl.set_device()
    before = used()
    pointers = [acl.malloc(MEBI) for _ in range(8)]
    for pointer in pointers:
        acl.call("aclrtMemset", pointer, MEBI, 1, MEBI)
    assert used() - before >= 8 * 1024
    for pointer in pointers:
        acl.call("aclrtFree", pointer)
    assert used() - before < 1024
    again = acl.malloc(MEBI)
    assert acl.read(again, MEBI) == bytes(MEBI)


if __name__ == "__main__":
    acl.set_device(int(sys.argv[1]))
    actions = Actions()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(actions, name)(*arguments)), flush=True)
