"""Call accounting: counts, the log, injected faults, values that cannot be understood."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import acl
import pytest
from deadlines import HANG
from isolated import ROOT, on_simulator

import simnpu
from simnpu import calls, settings


def test_without_the_simulator_there_are_no_calls():
    assert calls.counts() == {}
    assert calls.log() == []
    calls.reset()


@on_simulator()
def test_counts_tell_every_call_until_reset():
    acl.set_device()
    for _ in range(3):
        acl.call("aclrtFree", acl.malloc(8))
    acl.code("aclrtFree", None)
    assert calls.counts() == {"aclrtSetDevice": 1, "aclrtMalloc": 3, "aclrtFree": 4}
    calls.reset()
    assert calls.counts() == {}
    acl.stream()
    assert calls.counts() == {"aclrtCreateStream": 1}


@on_simulator()
def test_counts_are_complete_when_many_threads_call():
    import threading

    acl.set_device()
    threads = [threading.Thread(target=lambda: [acl.code("aclrtFree", None) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.counts()["aclrtFree"] == 2000


@on_simulator(log="memory")
def test_the_log_holds_each_call_with_arguments_and_result():
    acl.set_device()
    acl.malloc(123)
    acl.code("aclrtFree", None)
    records = calls.log()
    assert [(record.name, record.arguments, record.result) for record in records] == [
        ("aclrtSetDevice", "device=0", 0),
        ("aclrtMalloc", "size=123 policy=0", 0),
        ("aclrtFree", "ptr=(nil)", acl.PARAM_INVALID),
    ]
    assert {record.pid for record in records} == {os.getpid()}
    assert records[0].time <= records[1].time <= records[2].time
    calls.reset()
    assert calls.log() == []


@on_simulator()
def test_asking_for_a_log_that_is_not_kept_is_an_error_and_not_an_empty_answer():
    acl.set_device()
    with pytest.raises(RuntimeError, match="SIMNPU_LOG"):
        calls.log()


def native(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code with `acl` imported on the simulator."""
    return subprocess.run(
        [sys.executable, "-c", f"import acl\n{code}"],
        env=simnpu.environ() | environment | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def test_a_log_file_collects_the_lines_of_several_processes(tmp_path: Path):
    log = tmp_path / "calls.log"
    for device in (0, 1):
        assert native(f"acl.set_device({device})", SIMNPU_LOG=str(log)).returncode == 0
    records = [calls.parse_record(line) for line in log.read_text().splitlines()]
    assert [record.arguments for record in records] == ["device=0", "device=1"]
    assert len({record.pid for record in records}) == 2


def test_the_log_can_go_to_stderr():
    done = native("acl.set_device()", SIMNPU_LOG="stderr")
    assert calls.parse_record(done.stderr.strip()).name == "aclrtSetDevice"


def test_a_line_that_is_no_record_is_refused():
    with pytest.raises(ValueError, match="not a line"):
        calls.parse_record("hello")


@on_simulator(fault="aclrtMalloc:2:error=207001,aclrtFree:*:error,aclrtStreamQuery:1:delay=1")
def test_faults_hit_the_chosen_calls_only():
    acl.set_device()
    place = ctypes.byref(ctypes.c_void_p())
    memory = acl.malloc(8)
    acl.refuses(acl.OUT_OF_MEMORY, "aclrtMalloc: call 2 failed on request (SIMNPU_FAULT)", "aclrtMalloc", place, 8, 0)
    acl.malloc(8)
    for _ in range(2):
        acl.refuses(507000, "on request", "aclrtFree", memory)
    calls.reset()
    acl.malloc(8)  # a reset of the counts does not make it the first call again
    acl.malloc(8)
    assert acl.idle(acl.stream())


def said(name: str, *arguments: Any) -> str:
    """What a call says that fails."""
    assert acl.code(name, *arguments) != 0
    return acl.text()


@on_simulator(memory="8M")
def test_a_message_begins_with_the_innermost_call_or_the_task_that_failed():
    acl.set_device()
    place = ctypes.byref(ctypes.c_void_p())
    assert said("rtMalloc", place, 1 << 30, 0, 0).startswith("aclrtMalloc: device 0 is out of memory")
    assert said("rtGetSocVersion", None, 0).startswith("rtGetSocVersion: the buffer")

    # A task's name is that of the call that queued it, whatever its thread called before, and whoever asks.
    stream, memory, inside = acl.stream(), acl.malloc(8), []
    gate = acl.Gate(stream)
    acl.host_function(stream, lambda: inside.append(said("aclrtFree", 1)))
    acl.fill(memory, 0, 8, stream)
    gate.wait_entered()
    acl.call("aclrtFree", memory)
    gate.open()
    assert said("aclrtSynchronizeStream", stream).startswith("aclrtMemsetAsync: the destination")
    assert inside == ["aclrtFree: 0x1 is no live allocation (freed before, its device reset, or foreign)"]

    # So it is in a graph.
    memory = acl.malloc(8)
    acl.call("aclmdlRICaptureBegin", stream, acl.GLOBAL)
    acl.copy(memory, memory, 8, stream)
    model = acl.out("aclmdlRICaptureEnd", stream, first=False)
    acl.call("aclrtFree", memory)
    acl.call("aclmdlRIExecuteAsync", model, stream)
    assert said("aclrtSynchronizeStream", stream).startswith("aclrtMemcpyAsync: the destination")


MALFORMED = [
    ("SIMNPU_FAULT", "aclrtMalloc"),
    ("SIMNPU_FAULT", "aclrtMalloc:0:error"),
    ("SIMNPU_FAULT", "aclrtMalloc:x:error"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:explode"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:error=0"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:error=abc"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:delay"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:delay=-5"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:error,"),
    ("SIMNPU_FAULT", ":1:error"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:error=4294967296"),
    ("SIMNPU_FAULT", "aclrtMalloc:4294967296:error"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:delay=99999999999999999999"),
    ("SIMNPU_FAULT", "aclrtMalloc:1:delay=\uff15"),
    ("SIMNPU_DEVICES", "two"),
    ("SIMNPU_DEVICES", "-1"),
    ("SIMNPU_DEVICES", "65"),
    ("SIMNPU_MEMORY", "0"),
    ("SIMNPU_MEMORY", "1.5G"),
    ("SIMNPU_MEMORY", "2T"),
    ("SIMNPU_MEMORY", "G"),
    ("SIMNPU_MEMORY", "2000000000000G"),
    ("SIMNPU_MEMORY", "99999999999999999999"),
    ("SIMNPU_MEMORY", "\uff15G"),
    ("SIMNPU_DEVICES", "\uff12"),
]


@pytest.mark.parametrize(("name", "value"), MALFORMED)
def test_values_that_cannot_be_understood_are_refused_before_a_program_starts(name: str, value: str):
    with pytest.raises(settings.SettingError, match=name):
        settings.check_settings({name: value})


@pytest.mark.parametrize(("name", "value"), MALFORMED)
@on_simulator()
def test_values_that_cannot_be_understood_are_refused_at_the_first_call(name: str, value: str):
    os.environ[name] = value
    result = acl.code("aclrtGetDeviceCount", ctypes.byref(ctypes.c_uint32()))
    message = acl.text()
    assert result == 100000, message
    assert message.startswith(f"{name}="), message
    assert "cannot be understood" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SIMNPU_FAULT", "aclrtMalloc:1:error,aclrtFree:*:delay=0,aclrtFree:12:error=5"),
        ("SIMNPU_DEVICES", "64"),
        ("SIMNPU_DEVICES", "0"),
        ("SIMNPU_MEMORY", "512M"),
        ("SIMNPU_MEMORY", "4096"),
        ("SIMNPU_MEMORY", ""),
    ],
)
@on_simulator()
def test_good_values_are_taken_by_both_checks(name: str, value: str):
    settings.check_settings({name: value})
    os.environ[name] = value
    assert acl.code("aclrtGetDeviceCount", ctypes.byref(ctypes.c_uint32())) == 0, acl.text()


def test_the_refusal_is_also_shown_where_a_person_looks():
    done = native("acl.out_code('aclrtGetDeviceCount'); acl.out_code('aclrtGetDeviceCount')", SIMNPU_DEVICES="many")
    assert done.stderr.count("simnpu: SIMNPU_DEVICES=many cannot be understood") == 1


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path):
    done = native(
        "assert acl.code('aclrtSetDevice', 0) == 100000; print(acl.text())", SIMNPU_LOG=str(tmp_path / "no" / "log")
    )
    assert "cannot be opened" in done.stdout


def test_importing_the_calls_module_loads_nothing_of_the_build():
    code = "import sys, simnpu.calls; print('subprocess' in sys.modules, 'simnpu.build' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANG
    )
    assert done.stdout == "False False\n"
