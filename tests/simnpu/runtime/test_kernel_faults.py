"""Kernels that go wrong while they run: out of bounds, null, divided by zero. The launch fails, the process lives."""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import subprocess
import sys
import tempfile

import acl
import kernels
import pytest
from deadlines import HANG
from isolated import on_simulator

EXCEPTION = 507015
PAGE = 4096


def _prepare(name: str) -> tuple[int, int]:
    acl.set_device()
    return acl.stream(), kernels.stub_of(kernels.load(), name)


def _still_works(stream: int) -> None:
    data = acl.malloc(4)
    kernels.launch(kernels.stub_of(kernels.load(), "twice_plus_one"), stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [1]


@on_simulator()
@pytest.mark.parametrize(
    ("name", "index", "told"),
    [
        ("write_at", PAGE, "wrote out of bounds: address 0x{end:x}, 0 bytes behind"),
        ("write_at", PAGE + 100, "wrote out of bounds: address 0x{beyond:x}, 400 bytes behind"),
        ("write_at", -1, "wrote out of bounds: address 0x{before:x}, 4 bytes before"),
        ("read_at", PAGE + 100, "read out of bounds: address 0x{beyond:x}, 400 bytes behind"),
    ],
)
def test_out_of_bounds_is_told_with_its_place(name: str, index: int, told: str):
    stream, stub = _prepare(name)
    data = acl.malloc(4 * PAGE)
    kernels.launch(stub, stream, data, index, blocks=3)
    place = told.format(end=data + 4 * PAGE, beyond=data + 4 * PAGE + 400, before=data - 4)
    expected = f"kernel {name} {place} the allocation of {4 * PAGE} bytes at 0x{data:x}, block 0 of 3"
    acl.refuses(EXCEPTION, expected, "aclrtSynchronizeStream", stream)
    _still_works(stream)


@on_simulator()
@pytest.mark.parametrize("name", ["write_at", "read_at"])
def test_a_null_pointer_is_told(name: str):
    stream, stub = _prepare(name)
    kernels.launch(stub, stream, 0, 2)
    did = "wrote" if name == "write_at" else "read"
    acl.refuses(EXCEPTION, f"{did} through a null pointer: address 0x8", "aclrtSynchronizeStream", stream)
    _still_works(stream)


@on_simulator()
def test_an_address_far_from_everything_is_told():
    stream, stub = _prepare("write_at")
    data = acl.malloc(PAGE)
    kernels.launch(stub, stream, 1 << 46, 0)
    acl.refuses(EXCEPTION, "address 0x400000000000, which is in no allocation", "aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, data, -(1 << 40))
    expected = f"{4 << 40} bytes before the allocation of {PAGE} bytes at 0x{data:x}, the closest of its arguments"
    acl.refuses(EXCEPTION, expected, "aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, 1 << 60, 0)
    acl.refuses(EXCEPTION, "an address that is not known", "aclrtSynchronizeStream", stream)
    acl.call("aclrtFree", data)
    kernels.launch(stub, stream, data, 0)
    acl.refuses(EXCEPTION, f"address 0x{data:x}, which is in no allocation", "aclrtSynchronizeStream", stream)
    _still_works(stream)


@on_simulator()
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("divide", "divided an integer by zero"),
        ("trap", "came to an illegal instruction"),
        ("recurse", "needs more stack than its thread has"),
    ],
)
def test_other_faults_are_told(name: str, told: str):
    stream, stub = _prepare(name)
    data = acl.malloc(PAGE)
    for _ in range(3):
        kernels.launch(stub, stream, data, blocks=2)
        acl.refuses(EXCEPTION, f"rtKernelLaunch: kernel {name} {told}", "aclrtSynchronizeStream", stream)
    _still_works(stream)


@on_simulator()
def test_a_write_between_the_end_and_the_page_is_seen_after_the_kernel():
    stream, stub = _prepare("write_at")
    data, other = acl.malloc(400), acl.malloc(100)
    kernels.launch(stub, stream, data, 99)
    acl.call("aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, data, 102, blocks=2)
    expected = (
        f"kernel write_at wrote out of bounds in one of its 2 blocks: address 0x{data + 408:x}, 8 bytes behind the "
        f"allocation of 400 bytes at 0x{data:x}"
    )
    acl.refuses(EXCEPTION, expected, "aclrtSynchronizeStream", stream)
    # Told once. A kernel that finds another's damage is not blamed for it.
    kernels.launch(stub, stream, data, 0)
    acl.call("aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, 0, (other + 100) // 4)
    acl.call("aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, other, 0)
    acl.refuses(EXCEPTION, "was not run, because something before it wrote", "aclrtSynchronizeStream", stream)
    assert acl.read(other, 4) == b"\0\0\0\0"
    kernels.launch(stub, stream, other, 0)
    acl.call("aclrtSynchronizeStream", stream)


@on_simulator()
def test_what_lies_behind_the_input_is_not_what_lay_behind_the_output():
    stream, stub = _prepare("copy_at")
    source, data = acl.malloc(400), acl.malloc(400)
    arguments = kernels.packed(data, 100, workspace=source)
    acl.call("rtKernelLaunch", stub, 1, arguments, len(arguments), None, stream)
    acl.refuses(EXCEPTION, f"behind the allocation of 400 bytes at 0x{data:x}", "aclrtSynchronizeStream", stream)


@on_simulator()
def test_memory_of_another_device_faults_until_access_to_it_is_enabled():
    acl.set_device(1)
    far = acl.malloc(PAGE)
    stream, stub = _prepare("write_at")
    kernels.launch(stub, stream, far, 3)
    expected = (
        "kernel write_at on device 0 was given memory of device 1, which it cannot reach: pointer 1 of its arguments, "
        f"into the allocation of {PAGE} bytes at 0x{far:x}"
    )
    acl.refuses(EXCEPTION, expected, "aclrtSynchronizeStream", stream)
    assert acl.read(far, PAGE) == bytes(PAGE)
    acl.call("aclrtDeviceEnablePeerAccess", 1, 0)
    kernels.launch(stub, stream, far, 3)
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(far, PAGE) != bytes(PAGE)
    _still_works(stream)


@on_simulator()
def test_reserved_ranges_have_guards_too():
    stream, stub = _prepare("write_at")
    size = 2 << 20
    start = acl.out("aclrtReserveMemAddress", 2 * size, 0, None, 1)
    location = (ctypes.c_uint32 * 64)()
    location[4] = 1  # a device, number 0
    memory = acl.out("aclrtMallocPhysical", size, location, 0)
    acl.call("aclrtMapMem", start, size, 0, memory, 0)
    kernels.launch(stub, stream, start, size // 4 - 1)
    acl.call("aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, start, size // 4)
    acl.refuses(EXCEPTION, f"0 bytes behind the allocation of {size} bytes", "aclrtSynchronizeStream", stream)
    kernels.launch(stub, stream, start, -1)
    acl.refuses(EXCEPTION, f"4 bytes before the allocation of {size} bytes", "aclrtSynchronizeStream", stream)


@on_simulator()
@pytest.mark.parametrize("enabled", ["before", "after", "both"])
def test_pythons_fault_handler_does_not_see_a_kernels_fault(enabled: str):
    with tempfile.TemporaryFile("w+") as dumps:
        if enabled != "after":
            faulthandler.enable(dumps)
        stream, stub = _prepare("write_at")
        data = acl.malloc(PAGE)
        _still_works(stream)
        if enabled != "before":
            faulthandler.disable()
            faulthandler.enable(dumps)
        for _ in range(2):
            kernels.launch(stub, stream, data, PAGE // 4)
            acl.refuses(EXCEPTION, "0 bytes behind the allocation", "aclrtSynchronizeStream", stream)
        dumps.seek(0)
        assert dumps.read() == ""


CRASH = """
import ctypes, faulthandler, sys
sys.path[:0] = ["tests/simnpu", "tests"]
import acl, kernels
from runtime import test_kernel_faults as here
if "before" in sys.argv: faulthandler.enable()
stream, stub = here._prepare("write_at")
here._still_works(stream)
if "after" in sys.argv: faulthandler.enable()
here._still_works(stream)
print("ready", flush=True)
ctypes.string_at(64)
"""


@on_simulator()
@pytest.mark.parametrize("enabled", ["before", "after", "never", "before after"])
def test_the_programs_own_fault_ends_it_as_ever(enabled: str):
    done = subprocess.run(
        [sys.executable, "-c", CRASH, *enabled.split()], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.stdout == "ready\n", done.stderr
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Fatal Python error: Segmentation fault") == (0 if enabled == "never" else 1), done.stderr
