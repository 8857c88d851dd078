"""Devices and contexts of the simulated runtime: choosing, counting uses, resetting, properties, forked children."""

from __future__ import annotations

import ctypes
import os
import threading

import acl
import pytest
from isolated import on_simulator

NO_DEVICE = 207004


def count() -> int:
    return acl.out("aclrtGetDeviceCount", kind=ctypes.c_uint32)


def current() -> int:
    return acl.out("aclrtGetDevice", kind=ctypes.c_int32)


@on_simulator(devices=3)
def test_the_number_of_devices_is_chosen_by_the_environment():
    assert count() == 3
    acl.set_device(2)
    assert current() == 2
    acl.refuses(acl.INVALID_DEVICE, "there is no device 3, only 3", "aclrtSetDevice", 3)
    acl.refuses(acl.INVALID_DEVICE, "there is no device -1", "aclrtSetDevice", ctypes.c_int32(-1))


@on_simulator(devices=0)
def test_a_machine_without_devices():
    assert count() == 0
    acl.refuses(acl.INVALID_DEVICE, "there is no device 0", "aclrtSetDevice", 0)


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ("1", [1]),
        ("0,2", [0, 2]),
        ("01,2", [1, 2]),
        ("0,7,8", [0]),
        ("0,99999999999", [0]),
        ("0,,1", [0]),
        ("0, 1", [0]),
        ("2,x", [2]),
        (" 1,2", []),
        ("", []),
        ("x", []),
        ("-1", []),
        ("\uff11", []),
    ],
)
@on_simulator(devices=3)
def test_visible_devices_count_up_to_the_first_that_makes_no_sense(chosen: str, seen: list[int]):
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = chosen
    assert count() == len(seen)
    chips = [acl.out("aclrtGetLogicDevIdByUserDevId", n, kind=ctypes.c_int32, first=False) for n in range(len(seen))]
    assert chips == seen


@pytest.mark.parametrize("chosen", ["1,0", "1,1", "0,2,1", "0,1,0,x"])
@on_simulator(devices=3)
def test_visible_devices_that_do_not_ascend_leave_no_device(chosen: str):
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = chosen
    message = f"ASCEND_RT_VISIBLE_DEVICES={chosen} must be configured in ascending order"
    acl.refuses(NO_DEVICE, message, "aclrtGetDeviceCount", ctypes.byref(ctypes.c_uint32()))
    acl.refuses(NO_DEVICE, message, "aclrtSetDevice", 0)
    assert acl.out("drvGetDevNum", kind=ctypes.c_uint32) == 3, "the driver counts what is there"
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1"
    assert count() == 2


@on_simulator(devices=3, torch=True)
def test_torch_sees_the_visible_devices_until_the_first_use():
    import torch
    import torch_npu  # noqa: F401

    for chosen, seen in (("1,0", 0), ("3,1", 0), (" 1, 2", 0), ("0,2", 2), ("2", 1), ("1,2", 2)):
        os.environ["ASCEND_RT_VISIBLE_DEVICES"] = chosen
        assert (torch.npu.is_available(), torch.npu.device_count()) == (seen > 0, seen), chosen
    assert torch.ones(2, device="npu:1").sum().item() == 2.0
    assert torch.npu.device_count() == 2


@on_simulator()
def test_peers_reach_each_other_once_that_is_enabled_and_in_that_direction():
    acl.set_device(1)
    far = acl.malloc(8)
    acl.write(far, b"far data")
    acl.set_device(0)
    near, stream = acl.malloc(8), acl.stream()
    refusal = f"0x{far:x} is memory of device 1, which device 0 cannot reach"

    def copies_are_refused() -> None:
        acl.refuses(acl.PARAM_INVALID, refusal, "aclrtMemcpyAsync", near, 8, far, 8, acl.DEVICE_TO_DEVICE, stream)
        acl.refuses(acl.PARAM_INVALID, refusal, "aclrtMemcpy", far, 8, near, 8, acl.DEVICE_TO_DEVICE)

    copies_are_refused()
    acl.set_device(1)
    acl.call("aclrtDeviceEnablePeerAccess", 0, 0)
    acl.set_device(0)
    copies_are_refused()
    acl.call("aclrtDeviceEnablePeerAccess", 1, 0)
    acl.copy(near, far, 8, stream)
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(near, 8) == b"far data"
    acl.call("aclrtDeviceDisablePeerAccess", 1)
    copies_are_refused()
    acl.refuses(acl.PARAM_INVALID, "the current device itself", "aclrtDeviceEnablePeerAccess", 0, 0)


@on_simulator(devices=3)
def test_visible_devices_are_read_until_a_device_is_set_and_then_fixed():
    assert count() == 3
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1,2"
    assert count() == 2
    acl.set_device()
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1"
    assert count() == 2


@on_simulator()
def test_each_thread_has_a_device_of_its_own():
    acl.set_device(1)
    found: list[int] = []

    def elsewhere() -> None:
        found.append(acl.out_code("aclrtGetDevice"))
        acl.set_device(0)
        found.append(current())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [acl.NO_CONTEXT, 0]
    assert current() == 1


@on_simulator()
def test_contexts_carry_the_device_from_thread_to_thread():
    acl.set_device(1)
    primary = acl.out("aclrtGetCurrentContext")
    second = acl.out("aclrtCreateContext", 0)
    assert current() == 0
    acl.call("aclrtSetCurrentContext", primary)
    assert current() == 1
    acl.call("aclrtDestroyContext", second)
    acl.refuses(acl.NO_CONTEXT, "no live context", "aclrtSetCurrentContext", second)
    acl.refuses(acl.NO_CONTEXT, "no live context", "aclrtDestroyContext", second)
    acl.refuses(acl.PARAM_INVALID, "aclrtResetDevice", "aclrtDestroyContext", primary)
    acl.refuses(acl.NO_CONTEXT, "no live context", "aclrtSetCurrentContext", None)


def active(device: int) -> bool:
    flags, state = ctypes.c_uint32(), ctypes.c_int32()
    acl.call("aclrtGetPrimaryCtxState", device, ctypes.byref(flags), ctypes.byref(state))
    return state.value == 1


@on_simulator()
def test_a_device_ends_with_the_last_matching_reset():
    assert not active(0)
    acl.set_device(0)
    acl.set_device(0)
    assert active(0)
    assert not active(1)
    memory, stream, event = acl.malloc(64), acl.stream(), acl.event()
    acl.call("aclrtResetDevice", 0)
    acl.fill(memory, 1, 64, stream)
    acl.call("aclrtResetDevice", 0)
    assert not active(0)
    acl.refuses(acl.NO_CONTEXT, "reset", "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 8, 0)
    acl.refuses(acl.NO_CONTEXT, "is not set", "aclrtResetDevice", 0)
    acl.set_device(0)
    acl.refuses(acl.PARAM_INVALID, "device reset", "aclrtSynchronizeStream", stream)
    acl.refuses(acl.PARAM_INVALID, "device reset", "aclrtRecordEvent", event, 0)
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtMemset", memory, 64, 0, 64)
    acl.refuses(acl.PARAM_INVALID, "device reset", "aclrtFree", memory)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    acl.call("aclrtGetMemInfo", 1, ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value
    acl.call("aclrtSynchronizeDevice")


@on_simulator()
def test_a_forced_reset_waits_for_work_and_spares_the_other_device():
    acl.set_device(1)
    other = acl.malloc(8)
    acl.set_device(0)
    acl.set_device(0)
    ran: list[bool] = []
    acl.host_function(acl.stream(), lambda: ran.append(True))
    acl.call("aclrtResetDeviceForce", 0)
    assert ran == [True]
    acl.set_device(1)
    acl.call("aclrtMemset", other, 8, 1, 8)


@on_simulator()
def test_finalize_ends_every_device_and_init_may_follow():
    acl.call("aclInit", None)
    acl.refuses(100002, "called before", "aclInit", None)
    acl.set_device(0)
    acl.call("aclFinalize")
    acl.refuses(100037, "already", "aclFinalize")
    acl.refuses(acl.NO_CONTEXT, "gone", "aclrtSynchronizeDevice")
    acl.call("aclInit", None)
    acl.refuses(100003, "cannot read", "aclInit", b"/no/such/file.json")
    acl.set_device(0)
    acl.call("aclrtSynchronizeDevice")


@on_simulator(memory="96M")
def test_every_query_tells_the_same_about_the_hardware():
    acl.set_device()

    def info(attribute: int) -> int:
        return acl.out("aclrtGetDeviceInfo", 0, attribute, kind=ctypes.c_int64, first=False)

    def capability(attribute: int) -> int:
        return acl.out("aclGetDeviceCapability", 0, attribute, kind=ctypes.c_int64, first=False)

    def limit(resource: int) -> int:
        return acl.out("aclrtGetDeviceResLimit", 0, resource, kind=ctypes.c_uint32, first=False)

    cube = acl.out("rtGetAiCoreCount", kind=ctypes.c_uint32)
    assert cube == info(101) == info(102) == capability(0) == limit(0)
    assert info(201) == capability(1) == limit(1) == 2 * cube
    assert info(302) == capability(2)
    assert info(301) == 96 << 20
    acl.library().aclrtGetSocName.restype = ctypes.c_char_p
    name = ctypes.create_string_buffer(64)
    acl.call("rtGetSocVersion", name, 64)
    assert name.value == acl.library().aclrtGetSocName()
    acl.refuses(acl.PARAM_INVALID, "shorter", "rtGetSocVersion", name, 3)
    acl.refuses(acl.NOT_SUPPORTED, "attribute 999 is not simulated", "aclrtGetDeviceInfo", 0, 999, name)
    acl.refuses(acl.INVALID_DEVICE, "no device 9", "aclrtGetDeviceInfo", 9, 101, name)


@on_simulator()
def test_limits_on_cores_are_kept_within_the_hardware():
    def limit() -> int:
        return acl.out("aclrtGetDeviceResLimit", 0, 0, kind=ctypes.c_uint32, first=False)

    most = limit()
    acl.call("aclrtSetDeviceResLimit", 0, 0, 8)
    assert limit() == 8
    acl.refuses(acl.PARAM_INVALID, "the device has", "aclrtSetDeviceResLimit", 0, 0, most + 1)
    acl.call("aclrtResetDeviceResLimit", 0)
    assert limit() == most


@on_simulator()
def test_entry_points_without_an_implementation_say_so_by_name():
    for name in ("aclmdlInitDump", "aclmdlSetDump", "aclmdlFinalizeDump"):
        acl.refuses(acl.NOT_SUPPORTED, f"{name} is not simulated", name)


def in_child(body) -> int:
    """Forks, runs `body` in the child, returns the child's exit code (99: it raised)."""
    pid = os.fork()
    if pid == 0:
        try:
            body()
        except BaseException as error:
            print(f"child: {error}", flush=True)
            os._exit(99)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@on_simulator()
def test_a_forked_child_gets_errors_where_its_parent_had_used_the_device():
    acl.set_device()
    stream, event, memory = acl.stream(), acl.event(), acl.malloc(8)
    gate = acl.Gate(stream)
    gate.wait_entered()
    acl.call("aclrtRecordEvent", event, stream)

    def child() -> None:
        place = ctypes.byref(ctypes.c_int64())
        for name, *arguments in (
            ("aclrtSetDevice", 0),
            ("aclrtSynchronizeStream", stream),
            ("aclrtSynchronizeDevice",),
            ("aclrtSynchronizeEvent", event),
            ("aclrtStreamQuery", stream, place),
            ("aclrtMalloc", place, 8, 0),
            ("aclrtMemset", memory, 8, 0, 8),
            ("aclrtGetDeviceCount", place),
            ("aclFinalize",),
        ):
            acl.refuses(acl.NO_CONTEXT, f"{name}: this process was forked", name, *arguments)

    assert in_child(child) == 0
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)


@on_simulator()
def test_a_forked_child_may_use_the_device_if_its_parent_had_not():
    assert count() == 2  # counting is no use

    def child() -> None:
        acl.set_device(1)
        stream, memory = acl.stream(), acl.malloc(8)
        acl.fill(memory, 5, 8, stream)
        acl.call("aclrtSynchronizeStream", stream)
        assert acl.read(memory, 8) == b"\5" * 8

    assert in_child(child) == 0
    acl.set_device(0)
