"""Memory of the simulated runtime: capacity, ownership, bounds, mapped ranges."""

from __future__ import annotations

import ctypes

import acl
from isolated import on_simulator

MEBI = 1 << 20


def free_and_total() -> tuple[int, int]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    acl.call("aclrtGetMemInfo", 1, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


@on_simulator(memory="64M")
def test_capacity_is_counted_per_device_and_given_back():
    acl.set_device(0)
    assert free_and_total() == (64 * MEBI, 64 * MEBI)
    first = acl.malloc(40 * MEBI)
    assert free_and_total() == (24 * MEBI, 64 * MEBI)
    result = ctypes.c_void_p(1)
    acl.refuses(acl.OUT_OF_MEMORY, "device 0 is out of memory", "aclrtMalloc", ctypes.byref(result), 25 * MEBI, 0)
    assert result.value is None
    acl.set_device(1)
    assert free_and_total() == (64 * MEBI, 64 * MEBI)
    acl.malloc(64 * MEBI)
    acl.set_device(0)
    acl.call("aclrtFree", first)
    acl.malloc(64 * MEBI)


@on_simulator()
def test_a_size_that_overflows_is_out_of_memory():
    acl.set_device()
    acl.refuses(
        acl.OUT_OF_MEMORY, "out of memory", "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(-1), 0
    )


@on_simulator()
def test_frees_that_make_no_sense_are_refused():
    acl.set_device()
    memory = acl.malloc(100)
    pinned = acl.out("aclrtMallocHost", 100)
    foreign = ctypes.create_string_buffer(100)
    acl.refuses(acl.PARAM_INVALID, "inside an allocation", "aclrtFree", memory + 8)
    acl.refuses(acl.PARAM_INVALID, "not allocated by the matching call", "aclrtFreeHost", memory)
    acl.refuses(acl.PARAM_INVALID, "not allocated by the matching call", "aclrtFree", pinned)
    acl.refuses(acl.PARAM_INVALID, "foreign", "aclrtFree", ctypes.addressof(foreign))
    acl.refuses(acl.PARAM_INVALID, "null", "aclrtFree", None)
    acl.call("aclrtFree", memory)
    acl.refuses(acl.PARAM_INVALID, "freed before", "aclrtFree", memory)
    acl.call("aclrtFreeHost", pinned)
    acl.refuses(acl.PARAM_INVALID, "freed before", "aclrtFreeHost", pinned)
    acl.refuses(acl.PARAM_INVALID, "0 bytes", "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 0, 0)
    acl.refuses(acl.PARAM_INVALID, "null", "aclrtMalloc", None, 8, 0)


@on_simulator()
def test_copies_out_of_range_are_refused_at_once():
    acl.set_device()
    stream = acl.stream()
    memory = acl.malloc(100)
    host = ctypes.create_string_buffer(200)
    for name, tail in (("aclrtMemcpy", ()), ("aclrtMemcpyAsync", (stream,))):
        past = (acl.PARAM_INVALID, "runs past its allocation", name)
        acl.refuses(*past, memory, 200, host, 200, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(*past, host, 200, memory + 50, 51, acl.DEVICE_TO_HOST, *tail)
        acl.refuses(acl.PARAM_INVALID, "do not fit", name, memory, 10, host, 11, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(acl.PARAM_INVALID, "not in live device memory", name, host, 8, host, 8, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(acl.PARAM_INVALID, "is device memory", name, memory, 8, memory, 8, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(acl.PARAM_INVALID, "null", name, memory, 8, None, 8, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(acl.PARAM_INVALID, "null", name, None, 8, host, 8, acl.HOST_TO_DEVICE, *tail)
        acl.refuses(acl.PARAM_INVALID, "unknown copy kind", name, memory, 8, host, 8, 77, *tail)
        acl.call(name, memory + 92, 8, host, 8, acl.HOST_TO_DEVICE, *tail)
        acl.call(name, memory + 100, 0, host, 0, acl.HOST_TO_DEVICE, *tail)
    acl.refuses(acl.PARAM_INVALID, "runs past", "aclrtMemset", memory, 101, 0, 101)
    acl.refuses(acl.PARAM_INVALID, "runs past", "aclrtMemsetAsync", memory + 1, 100, 0, 100, stream)
    acl.call("aclrtSynchronizeStream", stream)
    acl.call("aclrtFree", memory)
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtMemcpy", host, 8, memory, 8, acl.DEVICE_TO_HOST)


@on_simulator()
def test_copies_move_bytes_between_all_places():
    acl.set_device(0)
    data = bytes(range(64))
    first = acl.malloc(64)
    acl.write(first, data)
    acl.set_device(1)
    second = acl.malloc(64)
    pinned = acl.out("aclrtMallocHost", 64)
    acl.call("aclrtDeviceEnablePeerAccess", 0, 0)
    acl.call("aclrtMemcpy", second, 64, first, 64, acl.DEVICE_TO_DEVICE)
    acl.call("aclrtMemcpy", pinned, 64, second, 64, acl.DEFAULT)
    assert ctypes.string_at(pinned, 64) == data
    acl.call("aclrtMemset", second, 64, 255, 32)
    assert acl.read(second, 64) == b"\xff" * 32 + data[32:]


@on_simulator()
def test_the_buffered_copy_lets_go_of_its_source_at_once():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(4)
    source = ctypes.create_string_buffer(b"abcd", 4)
    gate = acl.Gate(stream)
    acl.call("aclrtMemcpyAsync", memory, 4, source, 4, acl.HOST_TO_BUFFER_TO_DEVICE, stream)
    source[0:4] = b"xxxx"
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 4) == b"abcd"


@on_simulator()
def test_an_asynchronous_copy_reads_its_source_when_it_runs():
    acl.set_device()
    stream, memory = acl.stream(), acl.malloc(4)
    pinned = acl.out("aclrtMallocHost", 4)
    gate = acl.Gate(stream)
    acl.call("aclrtMemcpyAsync", memory, 4, pinned, 4, acl.HOST_TO_DEVICE, stream)
    ctypes.memmove(pinned, b"late", 4)
    gate.open()
    acl.call("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 4) == b"late"


@on_simulator()
def test_pointers_tell_where_they_point():
    class Attributes(ctypes.Structure):
        _fields_ = (
            ("id", ctypes.c_uint32),
            ("type", ctypes.c_int),
            ("page", ctypes.c_uint32),
            ("rest", ctypes.c_uint32 * 4),
        )

    def place(pointer: int) -> tuple[int, int]:
        attributes = Attributes()
        acl.call("aclrtPointerGetAttributes", pointer, ctypes.byref(attributes))
        return attributes.type, attributes.id

    acl.set_device(1)
    memory = acl.malloc(64)
    foreign = ctypes.create_string_buffer(64)
    assert place(memory + 63) == (1, 1)
    assert place(acl.out("aclrtMallocHost", 8)) == (0, 0)
    assert place(ctypes.addressof(foreign)) == (2, 0)
    assert acl.out("aclrtHostRegister", ctypes.addressof(foreign), 64, 0, first=False) == ctypes.addressof(foreign)
    assert place(ctypes.addressof(foreign)) == (0, 0)
    acl.refuses(507910, "registered", "aclrtHostRegisterV2", ctypes.addressof(foreign), 64, 0)
    acl.call("aclrtHostUnregister", ctypes.addressof(foreign))
    acl.refuses(507911, "not the start of registered", "aclrtHostUnregister", ctypes.addressof(foreign))


@on_simulator()
def test_only_memory_of_the_process_can_be_registered():
    acl.set_device()
    for address, size in (
        (0x1234, 64),
        (1 << 46, 64),
        (ctypes.addressof(ctypes.create_string_buffer(64)), (1 << 64) - 1),
        ((1 << 64) - 64, 128),
        (acl.malloc(64), (1 << 64) - 4096),
    ):
        wide = ctypes.c_uint64(size)
        place = ctypes.byref(ctypes.c_void_p())
        acl.refuses(acl.PARAM_INVALID, "bytes", "aclrtHostRegister", ctypes.c_uint64(address), wide, 0, place)
        acl.refuses(acl.PARAM_INVALID, "bytes", "aclrtHostRegisterV2", ctypes.c_uint64(address), wide, 2)


@on_simulator()
def test_pinned_memory_can_be_registered_and_the_device_then_works_on_it():
    acl.set_device()
    pinned, stream = acl.out("aclrtMallocHost", 8192), acl.stream()
    acl.refuses(acl.PARAM_INVALID, "is host memory", "aclrtMemset", pinned, 8, 0, 8)
    assert acl.out("aclrtHostRegister", pinned, 4096, 0, first=False) == pinned
    acl.refuses(507910, "registered", "aclrtHostRegisterV2", pinned + 64, 64, 2)
    acl.call("aclrtHostRegisterV2", pinned + 4096, 4096, 0x10000000)  # pinned only, not mapped
    acl.fill(pinned, ord("p"), 4096, stream)
    acl.call("aclrtSynchronizeStream", stream)
    assert ctypes.string_at(pinned, 4097) == b"p" * 4096 + b"\0"
    acl.refuses(acl.PARAM_INVALID, "is host memory", "aclrtMemset", pinned + 4096, 8, 0, 8)
    acl.refuses(acl.PARAM_INVALID, "is host memory", "aclrtMemset", pinned, 8192, 0, 8192)
    acl.call("aclrtHostUnregister", pinned)
    acl.refuses(507911, "not the start of registered", "aclrtHostUnregister", pinned)
    acl.refuses(acl.PARAM_INVALID, "is host memory", "aclrtMemset", pinned, 8, 0, 8)
    acl.call("aclrtFreeHost", pinned)
    acl.refuses(507911, "not the start of registered", "aclrtHostUnregister", pinned + 4096)


@on_simulator()
def test_address_ranges_that_cannot_be_are_refused():
    acl.set_device()
    for size in ((1 << 64) - 1, (1 << 64) - 4096, (1 << 47) + 1):
        place = ctypes.byref(ctypes.c_void_p())
        acl.refuses(acl.PARAM_INVALID, "than the", "aclrtReserveMemAddress", place, ctypes.c_uint64(size), 0, None, 1)
        for name in ("aclrtMalloc", "aclrtMallocHost"):
            assert acl.code(name, place, ctypes.c_uint64(size), 0) == acl.OUT_OF_MEMORY, name


class Properties(ctypes.Structure):
    """aclrtPhysicalMemProp, with its location spelt out."""

    _fields_ = (
        ("handle_type", ctypes.c_int),
        ("allocation_type", ctypes.c_int),
        ("attribute", ctypes.c_int),
        ("device", ctypes.c_uint32),
        ("location_type", ctypes.c_int),
        ("reserve", ctypes.c_uint64),
    )


def physical(size: int, device: int = 0) -> int:
    return acl.out("aclrtMallocPhysical", size, ctypes.byref(Properties(0, 0, 1, device, 1, 0)), 0)


@on_simulator(memory="8M")
def test_physical_memory_is_mapped_into_a_reserved_range():
    acl.set_device()
    size = 2 * MEBI
    start = acl.out("aclrtReserveMemAddress", 3 * size, 0, None, 1)
    assert start % size == 0
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtMemset", start, 4, 0, 4)
    first, second = physical(size), physical(size)
    assert free_and_total()[0] == 8 * MEBI - 2 * size
    acl.call("aclrtMapMem", start, size, 0, first, 0)
    acl.call("aclrtMapMem", start + size, size, 0, second, 0)
    acl.refuses(acl.PARAM_INVALID, "mapped at", "aclrtMapMem", start, size, 0, second, 0)
    acl.refuses(acl.PARAM_INVALID, "not inside", "aclrtMapMem", start + 3 * size, size, 0, second, 0)
    # Neighbours form one range; the unmapped rest does not belong to it.
    acl.call("aclrtMemset", start, 2 * size, ord("m"), 2 * size)
    assert acl.read(start + size - 2, 4) == b"mmmm"
    acl.refuses(acl.PARAM_INVALID, "runs past", "aclrtMemset", start, 3 * size, 0, 3 * size)
    acl.refuses(acl.PARAM_INVALID, "still mapped", "aclrtReleaseMemAddress", start)
    acl.call("aclrtFreePhysical", second)
    acl.refuses(acl.PARAM_INVALID, "no live physical", "aclrtFreePhysical", second)
    assert free_and_total()[0] == 8 * MEBI - 2 * size, "mapped memory outlives its handle"
    acl.call("aclrtUnmapMem", start + size)
    assert free_and_total()[0] == 8 * MEBI - size
    acl.refuses(acl.PARAM_INVALID, "nothing is mapped", "aclrtUnmapMem", start + size)
    # What was written stays with the physical memory.
    acl.call("aclrtUnmapMem", start)
    acl.call("aclrtMapMem", start + 2 * size, size, 0, first, 0)
    assert acl.read(start + 2 * size, 1) == b"m"
    acl.call("aclrtUnmapMem", start + 2 * size)
    acl.call("aclrtFreePhysical", first)
    acl.call("aclrtReleaseMemAddress", start)
    assert free_and_total()[0] == 8 * MEBI


@on_simulator(memory="4M")
def test_physical_memory_counts_towards_the_capacity():
    acl.set_device()
    physical(3 * MEBI)
    acl.refuses(
        acl.OUT_OF_MEMORY,
        "out of memory",
        "aclrtMallocPhysical",
        ctypes.byref(ctypes.c_void_p()),
        2 * MEBI,
        ctypes.byref(Properties(0, 0, 1, 0, 1, 0)),
        0,
    )


@on_simulator(memory="8M")
def test_a_reset_takes_mapped_memory_too():
    acl.set_device()
    size = 2 * MEBI
    start = acl.out("aclrtReserveMemAddress", size, 0, None, 1)
    handle = physical(size)
    acl.call("aclrtMapMem", start, size, 0, handle, 0)
    acl.call("aclrtResetDevice", 0)
    acl.set_device()
    assert free_and_total()[0] == 8 * MEBI
    acl.refuses(acl.PARAM_INVALID, "not in live device memory", "aclrtMemset", start, 4, 0, 4)
    acl.refuses(acl.PARAM_INVALID, "no live physical", "aclrtFreePhysical", handle)
    acl.refuses(acl.PARAM_INVALID, "nothing is mapped", "aclrtUnmapMem", start)
    acl.call("aclrtReleaseMemAddress", start)
