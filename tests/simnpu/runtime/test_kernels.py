"""Kernels on the simulated device: loading binaries, launches in stream order, and everything that can be wrong."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import acl
import kernels
import pytest
from isolated import on_simulator

AICORE_EXCEPTION = 507015
TRAP = 507016
LOOKUP = 507027
DUPLICATE = 507028


def device_integers(*values: int) -> int:
    pointer = acl.malloc(4 * len(values))
    acl.write(pointer, struct.pack(f"<{len(values)}i", *values))
    return pointer


@on_simulator()
@pytest.mark.parametrize("ffts", [True, False])
def test_a_launch_runs_its_blocks_between_the_copies_around_it(ffts: bool):
    acl.set_device()
    stream = acl.stream()
    stub = kernels.stub_of(kernels.load(), "twice_plus_one")
    source, data, result = device_integers(*range(100)), acl.malloc(400), acl.malloc(400)
    gate = acl.Gate(stream)
    acl.copy(data, source, 400, stream)
    kernels.launch(stub, stream, data, blocks=100, ffts=ffts)
    kernels.launch(stub, stream, data, blocks=50, ffts=ffts)
    acl.copy(result, data, 400, stream)
    acl.fill(data, 0, 400, stream)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(result, 100) == [4 * i + 3 if i < 50 else 2 * i + 1 for i in range(100)]
    assert kernels.integers(data, 100) == [0] * 100


@on_simulator()
def test_arguments_are_copied_at_the_launch_and_a_graph_replays_them():
    acl.set_device()
    stream = acl.stream()
    binary = kernels.load()
    stub = kernels.stub_of(binary, "twice_plus_one")
    data = device_integers(1, 1, 1)
    acl.call("aclmdlRICaptureBegin", stream, acl.GLOBAL)
    arguments = ctypes.create_string_buffer(kernels.packed(data, blocks=3), kernels.ARGUMENT_BYTES)
    acl.call("rtKernelLaunch", stub, 3, arguments, kernels.ARGUMENT_BYTES, None, stream)
    ctypes.memset(arguments, 0, kernels.ARGUMENT_BYTES)
    graph = acl.out("aclmdlRICaptureEnd", stream, first=False)
    assert kernels.integers(data, 3) == [1, 1, 1], "a captured launch must not run"
    # What was recorded keeps the binary.
    acl.call("rtDevBinaryUnRegister", binary)
    for expected in (3, 7, 15):
        acl.call("aclmdlRIExecuteAsync", graph, stream)
        acl.call("aclrtSynchronizeStream", stream)
        assert kernels.integers(data, 3) == [expected] * 3


@on_simulator()
def test_the_acl_flavour_and_stubs_go_by_either_call():
    acl.set_device()
    stream = acl.stream()
    data = kernels.compile_binary()
    binary = acl.out("aclrtBinaryLoadFromData", data, len(data), None, first=False)
    function = acl.out("aclrtBinaryGetFunction", binary, b"twice_plus_one", first=False)
    assert acl.out("aclrtBinaryGetFunction", binary, b"twice_plus_one", first=False) == function
    stub = kernels.stub_of(binary, "twice_plus_one")
    memory = device_integers(0)
    arguments = kernels.packed(memory)
    for kernel in (function, stub):
        acl.call("rtKernelLaunch", kernel, 1, arguments, len(arguments), None, stream)
        acl.call("aclrtLaunchKernelWithHostArgs", kernel, 1, stream, None, arguments, len(arguments), None, 0)
    # aclrtLaunchKernel takes its arguments from device memory, when it runs.
    on_device = acl.malloc(len(arguments))
    gate = acl.Gate(stream)
    acl.call("aclrtLaunchKernel", function, 1, on_device, len(arguments), stream)
    acl.write(on_device, arguments)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(memory, 1) == [31]
    acl.refuses(
        acl.PARAM_INVALID,
        "not in live device memory",
        "aclrtLaunchKernel",
        function,
        1,
        arguments,
        len(arguments),
        stream,
    )
    cube, vector = ctypes.c_void_p(), ctypes.c_void_p()
    acl.call("aclrtGetFunctionAddr", function, ctypes.byref(cube), ctypes.byref(vector))
    assert cube.value
    assert cube.value == vector.value
    acl.call("aclrtBinaryUnLoad", binary)
    acl.refuses(LOOKUP, "was unloaded", "rtKernelLaunch", function, 1, arguments, len(arguments), None, stream)
    acl.refuses(acl.PARAM_INVALID, "unloaded before", "aclrtBinaryUnLoad", binary)


@on_simulator()
def test_launches_that_cannot_be_meant_are_refused_by_name():
    acl.set_device()
    stream = acl.stream()
    binary = kernels.load()
    stub = kernels.stub_of(binary, "twice_plus_one")
    data = device_integers(0)
    arguments = kernels.packed(data)

    def refuses(fragment: str, blocks: int = 1, bytes_: bytes | None = arguments, size: int = len(arguments)) -> None:
        acl.refuses(acl.PARAM_INVALID, "twice_plus_one", "rtKernelLaunch", stub, blocks, bytes_, size, None, stream)
        acl.refuses(acl.PARAM_INVALID, fragment, "rtKernelLaunch", stub, blocks, bytes_, size, None, stream)

    refuses("0 blocks", blocks=0)
    refuses("65536 blocks, an NPU takes at most 65535", blocks=65536)
    refuses("the arguments are null", bytes_=None)
    refuses("takes 56 bytes of arguments, or 48 without the FFTS address; 52 were given", size=52)
    refuses("0 were given", size=0)
    nowhere = kernels.new_stub()
    acl.refuses(LOOKUP, "is no kernel", "rtKernelLaunch", nowhere, 1, arguments, len(arguments), None, stream)
    acl.refuses(LOOKUP, "no binary failed", "rtKernelLaunch", None, 1, arguments, len(arguments), None, stream)
    acl.refuses(DUPLICATE, "stands for kernel twice_plus_one", "rtFunctionRegister", binary, stub, b"", b"write_at", 0)
    acl.refuses(acl.PARAM_INVALID, "the stub is null", "rtFunctionRegister", binary, None, b"", b"write_at", 0)
    acl.refuses(
        acl.NOT_SUPPORTED,
        "placeholders",
        *("aclrtLaunchKernelWithHostArgs", stub, 1, stream, None, arguments, len(arguments), None, 1),
    )
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [0]


@contextlib.contextmanager
def _stderr() -> Iterator[list[str]]:
    """What is written to the descriptor meanwhile, once it is over."""
    said: list[str] = []
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read().decode())


def _elf(kind: str) -> bytes:
    whole = kernels.compile_binary()
    return {
        "garbage": b"not an ELF file at all, but long enough for a header of one" * 4,
        "short": b"\x7fELF",
        "cut_off": whole[: len(whole) // 2],
        "other_machine": whole[:18] + struct.pack("<H", 4137) + whole[20:],
        "no_shared_object": whole[:16] + struct.pack("<H", 1) + whole[18:],
        "headers_outside": whole[:32] + struct.pack("<Q", 1 << 40) + whole[40:],
    }[kind]


@on_simulator()
@pytest.mark.parametrize(
    ("kind", "fragment"),
    [
        ("garbage", "is no ELF file"),
        ("short", "is no ELF file"),
        ("cut_off", "cut off"),
        ("other_machine", "code for machine 4137"),
        ("no_shared_object", "is no shared object"),
        ("headers_outside", "program headers lie outside"),
    ],
)
def test_a_launch_without_its_binary_says_why_it_is_missing(kind: str, fragment: str):
    acl.set_device()
    stream = acl.stream()
    binary = kernels.described(_elf(kind))
    handle = ctypes.c_void_p(1)
    with _stderr() as said:
        acl.refuses(acl.PARAM_INVALID, fragment, "rtDevBinaryRegister", ctypes.byref(binary), ctypes.byref(handle))
    assert handle.value is None
    # Libraries bring code of a real NPU along, and keep the error to themselves: a person has to see it.
    assert (fragment in said[0]) == (kind == "other_machine")
    arguments = kernels.packed(0)
    for because in ("its binary could not be loaded", fragment):
        acl.refuses(LOOKUP, because, "rtKernelLaunch", None, 1, arguments, len(arguments), None, stream)
    # The next one loads all the same.
    stub = kernels.stub_of(kernels.load(), "twice_plus_one")
    data = device_integers(1)
    kernels.launch(stub, stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [3]


@on_simulator()
@pytest.mark.parametrize(
    ("name", "code", "fragment"),
    [
        ("absent", LOOKUP, "no kernel absent (no symbol simnpu_kernel_absent)"),
        ("of_tomorrow", acl.PARAM_INVALID, "version 2 of the kernels' interface, this simulator has 1"),
        ("incomplete", acl.PARAM_INVALID, "kernel incomplete is incomplete"),
    ],
)
def test_a_kernel_that_the_binary_cannot_offer_is_named(name: str, code: int, fragment: str):
    acl.set_device()
    stream = acl.stream()
    binary = kernels.load()
    acl.refuses(code, fragment, "rtFunctionRegister", binary, kernels.new_stub(), b"", name.encode(), 0)
    arguments = kernels.packed(0)
    acl.refuses(LOOKUP, fragment, "rtKernelLaunch", None, 1, arguments, len(arguments), None, stream)


@on_simulator()
def test_loading_needs_a_device():
    binary = kernels.described(kernels.compile_binary())
    handle = ctypes.byref(ctypes.c_void_p())
    acl.refuses(acl.NO_CONTEXT, "rtDevBinaryRegister", "rtDevBinaryRegister", ctypes.byref(binary), handle)


@on_simulator()
def test_binaries_come_and_go_without_being_taken_for_one_another():
    acl.set_device()
    stream = acl.stream()
    data = kernels.compile_binary()
    memory = device_integers(0)
    for expected in (1, 3, 7, 15):
        binary = kernels.load(data)
        kernels.launch(kernels.stub_of(binary, "twice_plus_one"), stream, memory)
        acl.call("aclrtSynchronizeStream", stream)
        acl.call("rtDevBinaryUnRegister", binary)
        assert kernels.integers(memory, 1) == [expected]
    assert "simnpu-kernel" not in Path("/proc/self/maps").read_text(), "an unregistered binary must go"


@on_simulator()
def test_queued_work_keeps_its_binary():
    acl.set_device()
    stream = acl.stream()
    binary = kernels.load()
    stub = kernels.stub_of(binary, "twice_plus_one")
    data = device_integers(5)
    gate = acl.Gate(stream)
    gate.wait_entered()
    kernels.launch(stub, stream, data)
    acl.call("rtDevBinaryUnRegister", binary)
    arguments = kernels.packed(data)
    acl.refuses(LOOKUP, "was unloaded", "rtKernelLaunch", stub, 1, arguments, len(arguments), None, stream)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [11]


@on_simulator()
def test_scratch_memory_is_given_back_after_each_launch_even_a_failed_one():
    acl.set_device()
    stream = acl.stream()
    binary = kernels.load()
    data = acl.malloc(4096)
    kernels.launch(kernels.stub_of(binary, "twice_plus_one"), stream, data, blocks=9)
    kernels.launch(kernels.stub_of(binary, "complain"), stream, data, index=3, blocks=9)
    acl.refuses(
        TRAP,
        "rtKernelLaunch: kernel complain: assertion failed: x > 0, block 3 of 9",
        *("aclrtSynchronizeStream", stream),
    )
    kernels.launch(kernels.stub_of(binary, "write_at"), stream, data, index=1024)
    acl.refuses(AICORE_EXCEPTION, "write_at", "aclrtSynchronizeStream", stream)
    kernels.launch(kernels.stub_of(binary, "finishes"), stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [3]


@on_simulator(fault="rtKernelLaunch:2:error,rtDevBinaryRegister:2:error=207001")
def test_calls_fail_on_request():
    acl.set_device()
    stream = acl.stream()
    stub = kernels.stub_of(kernels.load(), "twice_plus_one")
    data = device_integers(0)
    kernels.launch(stub, stream, data)
    arguments = kernels.packed(data)
    acl.refuses(507000, "SIMNPU_FAULT", "rtKernelLaunch", stub, 1, arguments, len(arguments), None, stream)
    kernels.launch(stub, stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [3]
    binary = kernels.described(kernels.compile_binary())
    handle = ctypes.byref(ctypes.c_void_p())
    acl.refuses(acl.OUT_OF_MEMORY, "SIMNPU_FAULT", "rtDevBinaryRegister", ctypes.byref(binary), handle)
    acl.refuses(LOOKUP, "SIMNPU_FAULT", "rtKernelLaunch", None, 1, arguments, len(arguments), None, stream)


@on_simulator(log="memory")
def test_the_log_names_the_kernel():
    from simnpu import calls

    acl.set_device()
    stream = acl.stream()
    kernels.launch(kernels.stub_of(kernels.load(), "twice_plus_one"), stream, device_integers(0))
    acl.call("aclrtSynchronizeStream", stream)
    assert calls.counts()["rtKernelLaunch"] == 1
    assert any("kernel=twice_plus_one blocks=1 bytes=56" in str(record) for record in calls.log())


@on_simulator()
def test_a_forked_child_is_told_that_the_device_stayed_behind():
    acl.set_device()
    stream = acl.stream()
    stub = kernels.stub_of(kernels.load(), "twice_plus_one")
    data = device_integers(0)
    kernels.launch(stub, stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    arguments = kernels.packed(data)
    binary = kernels.described(kernels.compile_binary())
    child = os.fork()
    if child == 0:
        try:
            handle = ctypes.byref(ctypes.c_void_p())
            acl.refuses(acl.NO_CONTEXT, "forked", "rtKernelLaunch", stub, 1, arguments, len(arguments), None, stream)
            acl.refuses(acl.NO_CONTEXT, "forked", "rtDevBinaryRegister", ctypes.byref(binary), handle)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kernels.launch(stub, stream, data)
    acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 1) == [3]


@on_simulator()
@pytest.mark.parametrize(("name", "most"), [("meet", 2), ("meet_alone", 1)])
def test_kernels_with_atomics_exclude_each_other(name: str, most: int):
    acl.set_device()
    streams = acl.stream(), acl.stream()
    stub = kernels.stub_of(kernels.load(), name)
    data = device_integers(0, 0, 0)  # inside now, the most at once, gate open
    kernels.launch(stub, streams[0], data)
    while kernels.integers(data, 1) != [1]:
        pass
    gate = acl.Gate(streams[1])
    kernels.launch(stub, streams[1], data)
    gate.wait_entered()
    gate.open()
    # The second one is on its way in, and comes in if it may; if it may not, it gets many chances to do so wrongly.
    for _ in range(20_000):
        if kernels.integers(data, 1)[0] == 2:
            break
    if most == 2:
        while kernels.integers(data, 1) != [2]:
            pass
    acl.write(data + 8, struct.pack("<i", 1))
    for stream in streams:
        acl.call("aclrtSynchronizeStream", stream)
    assert kernels.integers(data, 2) == [0, most]


@on_simulator()
def test_the_runtime_below_acl_is_the_same_device():
    name = ctypes.create_string_buffer(64)
    acl.call("rtGetSocVersion", name, 64)
    assert name.value == b"Ascend910B3"
    assert acl.out("rtGetAiCoreCount", kind=ctypes.c_uint32) == 24
    acl.call("rtSetDevice", 0)
    address, size = ctypes.c_uint64(), ctypes.c_uint32()
    acl.call("rtGetC2cCtrlAddr", ctypes.byref(address), ctypes.byref(size))
    assert address.value
    assert size.value
    assert acl.out("aclrtGetHardwareSyncAddr", kind=ctypes.c_void_p) == address.value
    stream = acl.out("rtStreamCreate", 0)
    device, host = acl.out("rtMalloc", 64, 2, 0), acl.out("rtMallocHost", 64, 0)
    ctypes.memset(host, 5, 64)
    acl.call("rtMemcpy", device, 64, host, 64, acl.HOST_TO_DEVICE)
    assert acl.read(device, 64) == b"\x05" * 64
    acl.call("rtStreamSynchronize", stream)
    acl.call("rtDeviceSetLimit", 0, 3, 1 << 20)
    acl.refuses(acl.PARAM_INVALID, "unknown kind of limit 9", "rtDeviceSetLimit", 0, 9, 1)
    acl.call("rtStreamDestroy", stream)
    acl.call("rtFree", device)
    acl.call("rtFreeHost", host)
