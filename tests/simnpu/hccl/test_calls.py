"""Collectives of the simulated HCCL, called as C functions: every rank must hold the numbers that Python works out."""

from __future__ import annotations

import ctypes
import os
import threading

import acl
import pytest
from isolated import on_simulator

from hccl import calls as hccl
from hccl.calls import Buffer, numbers
from hccl.ranks import Rank, on_ranks

BEYOND_THE_RING = 500_001  # a third of it in int32 exceeds what a channel holds at once


@on_ranks(3)
def test_reductions_of_every_type(rank: Rank):
    comm, stream = hccl.begin(rank)
    for kind, (number, _) in hccl.TYPES.items():
        for op, (code, _) in hccl.REDUCTIONS.items():
            inputs = [numbers(r, 7) for r in range(rank.count)]
            expected = hccl.reduced(op, inputs)
            given = Buffer(kind, inputs[rank.number])
            result = Buffer(kind, [0] * 7)
            acl.call("HcclAllReduce", given.pointer, result.pointer, 7, number, code, comm, stream)
            hccl.synchronize(stream)
            assert result.values() == expected, f"all-reduce {op} of {kind}"
            assert given.values() == inputs[rank.number], "the input stays"

            result = Buffer(kind, [0] * 7)
            acl.call("HcclReduce", given.pointer, result.pointer, 7, number, code, 2, comm, stream)
            inputs = [numbers(r, 6) for r in range(rank.count)]
            given = Buffer(kind, inputs[rank.number])
            scattered = Buffer(kind, [0] * 2)
            acl.call("HcclReduceScatter", given.pointer, scattered.pointer, 2, number, code, comm, stream)
            hccl.synchronize(stream)
            assert result.values() == (expected if rank.number == 2 else [0] * 7), f"reduce {op} of {kind}"
            mine = hccl.reduced(op, inputs)[rank.number * 2 : rank.number * 2 + 2]
            assert scattered.values() == mine, f"reduce-scatter {op} of {kind}"


@on_ranks(2)
def test_numbers_at_the_edge(rank: Rank):
    """Rounding, overflow and NaN of the types that the language does not have, and integers that wrap."""
    comm, stream = hccl.begin(rank)
    inf, nan = float("inf"), float("nan")
    cases = [
        # (type, operation, contribution of rank 0, of rank 1, result)
        ("float16", "sum", 2048.0, 1.0, 2048.0),  # tie to even
        ("float16", "sum", 2050.0, 1.0, 2052.0),
        ("float16", "sum", 65504.0, 15.0, 65504.0),
        ("float16", "sum", 65504.0, 16.0, inf),
        ("float16", "sum", 2.0**-24, 2.0**-24, 2.0**-23),  # below the normal numbers
        ("float16", "prod", 2.0**-24, 0.5, 0.0),  # tie to even
        ("float16", "sum", 2.0**-14, -(2.0**-24), 2.0**-14 - 2.0**-24),
        ("bfloat16", "sum", 256.0, 1.0, 256.0),
        ("bfloat16", "sum", 258.0, 1.0, 260.0),
        ("bfloat16", "sum", -inf, 1.0, -inf),
        ("float16", "sum", inf, -inf, nan),
        ("bfloat16", "max", nan, 1.0, nan),
        ("float32", "max", 1.0, nan, nan),
        ("float64", "min", nan, 1.0, nan),
        ("float32", "min", -inf, 3.0, -inf),
        ("int8", "sum", 127, 1, -128),
        ("uint8", "sum", 255, 2, 1),
        ("int16", "prod", -32768, -1, -32768),
        ("int64", "sum", 2**63 - 1, 1, -(2**63)),
        ("uint64", "max", 2**64 - 1, 1, 2**64 - 1),
        ("int64", "min", -(2**63), 1, -(2**63)),
    ]
    for kind, op, first, second, expected in cases:
        buffer = Buffer(kind, [first if rank.number == 0 else second])
        hccl.all_reduce(comm, stream, buffer, 1, op)
        hccl.synchronize(stream)
        found = buffer.values()[0]
        same = found == expected or (expected != expected and found != found)  # noqa: PLR0124 a NaN is not itself
        assert same, f"{op} of {first} and {second} as {kind}: {found}, expected {expected}"


@on_ranks(3)
def test_moving_of_every_type_and_size(rank: Rank):
    comm, stream = hccl.begin(rank)
    me, n = rank.number, rank.count
    plan = [(kind, count) for kind in hccl.TYPES for count in (0, 1, 5)] + [("int32", BEYOND_THE_RING // 3)]
    for kind, count in plan:
        number = hccl.TYPES[kind][0]
        mine = Buffer(kind, numbers(me, count))

        gathered = Buffer(kind, [0] * count * n)
        acl.call("HcclAllGather", mine.pointer, gathered.pointer, count, number, comm, stream)
        broadcast = Buffer(kind, numbers(me, count))
        acl.call("HcclBroadcast", broadcast.pointer, count, number, 1, comm, stream)
        everything = Buffer(kind, numbers(me, count * n))
        scattered = Buffer(kind, [0] * count)
        acl.call("HcclScatter", everything.pointer, scattered.pointer, count, number, 2, comm, stream)
        exchanged = Buffer(kind, [0] * count * n)
        acl.call("HcclAlltoAll", everything.pointer, count, number, exchanged.pointer, count, number, comm, stream)
        ring = Buffer(kind, [0] * count)
        parts = hccl.items(("send", mine, count, (me + 1) % n), ("receive", ring, count, (me - 1) % n))
        acl.call("HcclBatchSendRecv", parts, 2, comm, stream)
        hccl.synchronize(stream)

        what = f"{count} x {kind}"
        assert gathered.values() == [v for r in range(n) for v in numbers(r, count)], f"all-gather of {what}"
        assert broadcast.values() == numbers(1, count), f"broadcast of {what}"
        assert scattered.values() == numbers(2, count * n)[me * count : (me + 1) * count], f"scatter of {what}"
        expected = [v for r in range(n) for v in numbers(r, count * n)[me * count : (me + 1) * count]]
        assert exchanged.values() == expected, f"all-to-all of {what}"
        assert ring.values() == numbers((me - 1) % n, count), f"ring of {what}"


@on_ranks(3)
def test_parts_of_different_sizes(rank: Rank):
    comm, stream = hccl.begin(rank)
    me, n = rank.number, rank.count
    number = hccl.TYPES["int32"][0]
    large = BEYOND_THE_RING // 4
    # Rank r sends matrix[r][c] elements to rank c; nothing on some ways, more than the ring holds on others.
    matrix = [[2, 0, large], [0, 0, 3], [1, large, 4]]
    sizes, wanted = matrix[me], [matrix[r][me] for r in range(n)]
    data = [numbers(me, sizes[c], seed=c) for c in range(n)]
    expected = [v for r in range(n) for v in numbers(r, matrix[r][me], seed=me)]
    packed = Buffer("int32", [v for part in data for v in part])
    places = [sum(sizes[:c]) for c in range(n)]
    got_places = [sum(wanted[:r]) for r in range(n)]

    for call in ("HcclAlltoAllV", "HcclAlltoAllVC"):
        result = Buffer("int32", [0] * sum(wanted))
        if call == "HcclAlltoAllV":
            send, receive = hccl.counts(*sizes), hccl.counts(*wanted)
            from_, to = hccl.counts(*places), hccl.counts(*got_places)
            acl.call(call, packed.pointer, send, from_, number, result.pointer, receive, to, number, comm, stream)
            for array in (send, receive, from_, to):  # the caller may do with them what it likes
                ctypes.memset(array, 0xFF, ctypes.sizeof(array))
        else:
            every = hccl.counts(*(v for row in matrix for v in row))
            acl.call(call, packed.pointer, every, number, result.pointer, number, comm, stream)
        hccl.synchronize(stream)
        assert result.values() == expected, call

    own = [3, 0, large]
    holes = [0, 3, 5]  # the third part starts two elements after the first ends
    gathered = Buffer("int32", [0] * (5 + large))
    mine = Buffer("int32", numbers(me, own[me]))
    acl.call(
        *("HcclAllGatherV", mine.pointer, own[me], gathered.pointer),
        *(hccl.counts(*own), hccl.counts(*holes), number, comm, stream),
    )
    whole = Buffer("int32", numbers(me, 5 + large))
    part = Buffer("int32", [0] * own[me])
    acl.call(
        *("HcclReduceScatterV", whole.pointer, hccl.counts(*own), hccl.counts(*holes)),
        *(part.pointer, own[me], number, 0, comm, stream),
    )
    hccl.synchronize(stream)
    assert gathered.values() == [*numbers(0, 3), 0, 0, *numbers(2, large)]
    total = hccl.reduced("sum", [numbers(r, 5 + large) for r in range(n)])
    assert part.values() == total[holes[me] : holes[me] + own[me]]


@on_ranks(3)
def test_larger_than_the_ring_in_place(rank: Rank):
    comm, stream = hccl.begin(rank)
    count = BEYOND_THE_RING
    inputs = [numbers(r, count) for r in range(rank.count)]
    buffer = Buffer("int32", inputs[rank.number])
    hccl.all_reduce(comm, stream, buffer, count)
    part = count // rank.count
    whole = Buffer("int32", inputs[rank.number])
    own = whole.at(rank.number * part)
    acl.call("HcclReduceScatter", whole.pointer, own, part, hccl.TYPES["int32"][0], 0, comm, stream)
    acl.call("HcclAllGather", own, whole.pointer, part, hccl.TYPES["int32"][0], comm, stream)
    hccl.synchronize(stream)
    total = hccl.reduced("sum", inputs)
    assert buffer.values() == total
    assert whole.values() == total


@on_ranks(2)
def test_sends_and_receives(rank: Rank):
    comm, stream = hccl.begin(rank)
    other = 1 - rank.number
    number = hccl.TYPES["float32"][0]
    first, second = Buffer("float32", [rank.number] * 3), Buffer("float32", [rank.number + 10] * 5)
    got, then = Buffer("float32", [0] * 3), Buffer("float32", [0] * 5)
    if rank.number == 0:
        acl.call("HcclSend", first.pointer, 3, number, other, comm, stream)
        acl.call("HcclSend", second.pointer, 5, number, other, comm, stream)
    else:
        acl.call("HcclRecv", got.pointer, 3, number, other, comm, stream)
        acl.call("HcclRecv", then.pointer, 5, number, other, comm, stream)
    hccl.synchronize(stream)
    if rank.number == 1:
        assert got.values() == [0] * 3, "messages keep their order"
        assert then.values() == [10] * 5

    # Both halves of an exchange that is too large to be buffered: only together can they finish.
    count = BEYOND_THE_RING
    outgoing, incoming = Buffer("int32", numbers(rank.number, count)), Buffer("int32", [0] * count)
    own_out, own_in = Buffer("int32", [7]), Buffer("int32", [0])
    whole = hccl.TYPES["int32"][0]
    acl.call("HcclGroupStart")
    acl.call("HcclSend", outgoing.pointer, count, whole, other, comm, stream)
    acl.call("HcclRecv", own_in.pointer, 1, whole, rank.number, comm, stream)
    acl.call("HcclRecv", incoming.pointer, count, whole, other, comm, stream)
    acl.call("HcclSend", own_out.pointer, 1, whole, rank.number, comm, stream)
    acl.call("HcclGroupEnd")
    acl.call("HcclBarrier", comm, stream)
    hccl.synchronize(stream)
    assert incoming.values() == numbers(other, count)
    assert own_in.values() == [7], "a message to itself"
    acl.refuses(hccl.PARAMETER, "no group was started", "HcclGroupEnd")


@on_ranks(2)
def test_collectives_are_asynchronous_and_in_order(rank: Rank):
    comm, stream = hccl.begin(rank)
    other_stream = acl.stream()
    gate = acl.Gate(stream)
    first, second = Buffer("int32", [rank.number]), Buffer("int32", [rank.number + 10])
    hccl.all_reduce(comm, stream, first, 1)
    # Made after the first, on a stream that is free: it must wait, for the other rank takes them in this order.
    hccl.all_reduce(comm, other_stream, second, 1, "max")
    gate.wait_entered()
    assert not acl.idle(stream)
    assert not acl.idle(other_stream)
    assert second.values() == [rank.number + 10]
    gate.open()
    hccl.synchronize(other_stream)
    hccl.synchronize(stream)
    assert first.values() == [1]
    assert second.values() == [11]

    # The other way round on rank 1 alone, by two communicators: independent of each other.
    another = hccl.init(rank)
    gate = acl.Gate(stream)
    third, fourth = Buffer("int32", [rank.number]), Buffer("int32", [rank.number])
    hccl.all_reduce(comm, stream, third, 1)
    hccl.all_reduce(another, other_stream, fourth, 1)
    hccl.synchronize(other_stream)
    assert fourth.values() == [1]
    gate.open()
    hccl.synchronize(stream)
    assert third.values() == [1]


@on_ranks(2)
def test_a_captured_collective_runs_at_each_replay(rank: Rank):
    comm, stream = hccl.begin(rank)
    buffer = Buffer("int32", [rank.number + 1])
    acl.call("aclmdlRICaptureBegin", stream, acl.RELAXED)
    hccl.all_reduce(comm, stream, buffer, 1)
    model = acl.out("aclmdlRICaptureEnd", stream, first=False)
    assert buffer.values() == [rank.number + 1], "recorded, not run"
    eager = Buffer("int32", [rank.number])
    hccl.all_reduce(comm, stream, eager, 1)
    for _ in range(3):
        acl.call("aclmdlRIExecuteAsync", model, stream)
    hccl.synchronize(stream)
    assert eager.values() == [1]
    assert buffer.values() == [3 * 2 * 2], "the first replay adds 1 and 2, the others double"


@on_ranks(3)
def test_communicators_of_some_ranks(rank: Rank):
    comm, stream = hccl.begin(rank)
    assert acl.out("HcclGetRankSize", comm, kind=ctypes.c_uint32, first=False) == 3
    assert acl.out("HcclGetRankId", comm, kind=ctypes.c_uint32, first=False) == rank.number
    # Two members in another order; the rank that is no member says so with no ranks.
    members = [2, 0]
    parent = ctypes.c_void_p(comm)
    sub = ctypes.c_void_p(1)
    if rank.number in members:
        ids = (ctypes.c_uint32 * 2)(*members)
        place = members.index(rank.number)
        config = bytearray(2500)
        ctypes.c_size_t.from_buffer(config).value = len(config)
        config[32:42] = b"even ranks"
        ctypes.c_int32.from_buffer(config, 316).value = -1
        raw = (ctypes.c_char * len(config)).from_buffer(config)
        acl.call("HcclCreateSubCommConfig", ctypes.byref(parent), 2, ids, 77, place, raw, ctypes.byref(sub))
        assert sub.value
        name = ctypes.create_string_buffer(128)
        acl.call("HcclGetCommName", sub.value, name)
        assert name.value == b"even ranks"
        gathered = Buffer("int32", [0, 0])
        mine = Buffer("int32", [rank.number])
        acl.call("HcclAllGather", mine.pointer, gathered.pointer, 1, hccl.TYPES["int32"][0], sub.value, stream)
        hccl.synchronize(stream)
        assert gathered.values() == members
        acl.call("HcclCommDestroy", sub.value)
        acl.refuses(hccl.PARAMETER, "no live communicator", "HcclCommDestroy", sub.value)
    else:
        acl.call("HcclCreateSubCommConfig", ctypes.byref(parent), 2, None, 77, 0, None, ctypes.byref(sub))
        assert not sub.value
    # And the parent still works.
    buffer = Buffer("int32", [1])
    hccl.all_reduce(comm, stream, buffer, 1)
    hccl.synchronize(stream)
    assert buffer.values() == [3]


@on_simulator(devices=3)
def test_one_process_with_all_devices():
    devices = (ctypes.c_int32 * 3)(2, 0, 1)
    comms = (ctypes.c_void_p * 3)()
    acl.call("HcclCommInitAll", 3, devices, comms)
    made = []
    for rank, device in enumerate(devices):
        acl.set_device(device)
        buffer, stream = Buffer("float32", numbers(rank, 100_000)), acl.stream()
        comm = comms[rank]
        assert comm is not None
        hccl.all_reduce(comm, stream, buffer, 100_000)
        made.append((device, buffer, stream))
    expected = hccl.reduced("sum", [numbers(rank, 100_000) for rank in range(3)])
    for device, buffer, stream in made:
        acl.set_device(device)
        hccl.synchronize(stream)
        assert buffer.values() == expected


@on_simulator()
def test_a_communicator_of_one():
    acl.set_device()
    blob = ctypes.create_string_buffer(hccl.ROOT_INFO_BYTES)
    acl.call("HcclGetRootInfo", blob)
    comm, stream = acl.out("HcclCommInitRootInfo", 1, blob, 0, first=False), acl.stream()
    given, result = Buffer("float16", [1, 2, 3]), Buffer("float16", [0] * 3)
    kind = hccl.TYPES["float16"][0]
    acl.call("HcclAllReduce", given.pointer, result.pointer, 3, kind, 0, comm, stream)
    hccl.synchronize(stream)
    assert result.values() == [1, 2, 3]
    copied = Buffer("float16", [0] * 3)
    acl.call("HcclAllGather", given.pointer, copied.pointer, 3, kind, comm, stream)
    acl.call("HcclBarrier", comm, stream)
    hccl.synchronize(stream)
    assert copied.values() == [1, 2, 3]


@on_simulator()
def test_arguments_that_cannot_be():
    acl.set_device()
    blob = ctypes.create_string_buffer(hccl.ROOT_INFO_BYTES)
    refused = (hccl.PARAMETER, "not made by this simulator's HcclGetRootInfo")
    acl.refuses(*refused, "HcclCommInitRootInfo", 1, blob, 0, ctypes.byref(ctypes.c_void_p()))
    acl.call("HcclGetRootInfo", blob)
    acl.refuses(hccl.PARAMETER, "rank 2 of 2", "HcclCommInitRootInfo", 2, blob, 2, ctypes.byref(ctypes.c_void_p()))
    acl.call("HcclGetRootInfo", blob)
    comm, stream = acl.out("HcclCommInitRootInfo", 1, blob, 0, first=False), acl.stream()
    repeated = (hccl.REMOTE, "was used before")
    acl.refuses(*repeated, "HcclCommInitRootInfo", 1, blob, 0, ctypes.byref(ctypes.c_void_p()))
    buffer = Buffer("int32", [1])
    p = buffer.pointer
    acl.refuses(hccl.PARAMETER, "no live communicator", "HcclAllReduce", p, p, 1, 2, 0, 4711, stream)
    acl.refuses(hccl.NOT_SUPPORTED, "data type 13", "HcclAllReduce", p, p, 1, 13, 0, comm, stream)
    acl.refuses(hccl.NOT_SUPPORTED, "reduction 9", "HcclAllReduce", p, p, 1, 2, 9, comm, stream)
    acl.refuses(hccl.PARAMETER, "root 3", "HcclBroadcast", p, 1, 2, 3, comm, stream)
    host = ctypes.create_string_buffer(64)
    place = ctypes.addressof(host)
    acl.refuses(hccl.PARAMETER, "does not lie in live device memory", "HcclBroadcast", place, 1, 2, 0, comm, stream)
    acl.refuses(hccl.PARAMETER, "does not lie in live device memory", "HcclBroadcast", p, 1 << 20, 2, 0, comm, stream)
    for wraps in (1 << 62, (1 << 62) + 1, (1 << 64) - 1):  # times 4 bytes: 0, 4, less than 0
        many = ctypes.c_uint64(wraps)
        for name, arguments in (
            ("HcclBroadcast", (p, many, 2, 0)),
            ("HcclAllReduce", (p, p, many, 2, 0)),
            ("HcclReduce", (p, p, many, 2, 0, 0)),
            ("HcclAllGather", (p, p, many, 2)),
            ("HcclReduceScatter", (p, p, many, 2, 0)),
            ("HcclScatter", (p, p, many, 2, 0)),
            ("HcclAlltoAll", (p, many, 2, p, many, 2)),
            ("HcclSend", (p, many, 2, 0)),
        ):
            acl.refuses(hccl.PARAMETER, "does not lie in live device memory", name, *arguments, comm, stream)
    acl.set_device(1)
    far = acl.malloc(4)
    acl.set_device(0)
    acl.refuses(hccl.PARAMETER, "is memory of device 1", "HcclBroadcast", far, 1, 2, 0, comm, stream)
    acl.set_device(1)
    other = acl.stream()
    acl.refuses(hccl.PARAMETER, "the stream is on device 1", "HcclBroadcast", far, 1, 2, 0, comm, other)


@on_simulator(fault="HcclBarrier:1:error=4,HcclBarrier:2:error")
def test_a_collective_can_be_made_to_fail():
    acl.set_device()
    blob = ctypes.create_string_buffer(hccl.ROOT_INFO_BYTES)
    acl.call("HcclGetRootInfo", blob)
    comm, stream = acl.out("HcclCommInitRootInfo", 1, blob, 0, first=False), acl.stream()
    assert acl.code("HcclBarrier", comm, stream) == 4
    assert acl.code("HcclBarrier", comm, stream) == 4, "a runtime's code becomes an internal error of HCCL"
    acl.call("HcclBarrier", comm, stream)


@on_ranks(2)
def test_many_small_ones_from_two_threads(rank: Rank):
    """Two communicators driven by a thread each must not disturb one another."""
    acl.set_device(rank.number)
    comms = [hccl.init(rank), hccl.init(rank)]
    failures: list[BaseException] = []

    def drive(comm: int, seed: int) -> None:
        try:
            acl.set_device(rank.number)
            stream = acl.stream()
            for step in range(200):
                buffer = Buffer("int32", numbers(rank.number, 3, seed + step))
                hccl.all_reduce(comm, stream, buffer, 3)
                hccl.synchronize(stream)
                assert buffer.values() == hccl.reduced("sum", [numbers(r, 3, seed + step) for r in range(2)])
                acl.call("aclrtFree", buffer.pointer)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=drive, args=(comm, seed)) for seed, comm in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_limit_that_is_no_number(value: str):
    _limit_is_refused(value=value)


@on_simulator()
def _limit_is_refused(value: str):
    os.environ["HCCL_EXEC_TIMEOUT"] = value
    acl.set_device()
    blob = ctypes.create_string_buffer(hccl.ROOT_INFO_BYTES)
    acl.call("HcclGetRootInfo", blob)
    wanted = (hccl.PARAMETER, f"HCCL_EXEC_TIMEOUT={value} cannot be understood")
    acl.refuses(*wanted, "HcclCommInitRootInfo", 1, blob, 0, ctypes.byref(ctypes.c_void_p()))
