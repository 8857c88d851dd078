"""Collectives that cannot finish: ranks that die, leave, never come or disagree become an error that names them.

Unless a test sets a limit, the limits are minutes: an error within the test's time was noticed, not timed out.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import acl
import pytest

from hccl import calls as hccl
from hccl.calls import Buffer, numbers
from hccl.ranks import Rank, on_ranks

KILLED = -signal.SIGKILL
INT32 = hccl.TYPES["int32"][0]


def fails(stream: int, *fragments: str, code: int = hccl.STREAM_FAILED) -> str:
    """The stream must report an error with all these fragments."""
    with pytest.raises(acl.AclError) as caught:
        hccl.synchronize(stream)
    for fragment in fragments:
        assert fragment in caught.value.text, caught.value.text
    assert caught.value.code == code, caught.value.text
    return caught.value.text


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_sender(rank: Rank) -> None:
    """Kills the rank that put its pid into the inbox, and returns when it is dead."""
    process = os.pidfd_open(int(rank.hear(16)))
    signal.pidfd_send_signal(process, signal.SIGKILL)
    assert select.select([process], [], [], 30)[0], "the killed rank did not die"
    os.close(process)


def offer_to_be_killed(rank: Rank, by: int) -> None:
    rank.tell(by, str(os.getpid()).encode())
    rank.hear()  # never comes


def mark(stream: int) -> int:
    """An event here in the stream."""
    event = acl.event()
    acl.call("aclrtRecordEvent", event, stream)
    return event


@pytest.fixture(autouse=True)
def _nothing_stays_behind():
    """However the ranks of a test end, the shared memory's file system is as before."""
    before = sorted(path.name for path in Path("/dev/shm").iterdir())
    yield
    after = sorted(path.name for path in Path("/dev/shm").iterdir())
    new = [name for name in after if name not in before and "simnpu" in name]
    assert not new


@on_ranks(3, dies={1: KILLED})
def test_a_rank_killed_before_it_arrives(rank: Rank):
    comm, stream = hccl.begin(rank)
    buffer = Buffer("int32", [rank.number])
    hccl.all_reduce(comm, stream, buffer, 1)
    hccl.synchronize(stream)
    if rank.number == 1:
        kill_myself()
    hccl.all_reduce(comm, stream, buffer, 1, "max")
    what = "HcclAllReduce(max, 1 x int32), call 2 of rank"
    fails(stream, what, "rank 1 (pid ", "device 1) has died", "waited ")
    # The communicator stays broken, and says since when.
    acl.call("HcclBroadcast", buffer.pointer, 1, INT32, 0, comm, stream)
    fails(stream, "HcclBroadcast: communicator simnpu-", " is broken since: HcclAllReduce(max")
    # Streams and other communicators do not suffer.
    others = hccl.init(rank, [0, 2])
    left = Buffer("int32", [rank.number])
    hccl.all_reduce(others, stream, left, 1)
    hccl.synchronize(stream)
    assert left.values() == [2]


@pytest.mark.parametrize("count", [1, 500_001])
def test_a_rank_killed_inside_a_collective(count: int):
    """Rank 2 holds the collective up, so rank 1 is waiting in it when it is killed."""
    _killed_inside(count=count)


@on_ranks(3, dies={1: KILLED})
def _killed_inside(rank: Rank, count: int):
    comm, stream = hccl.begin(rank)
    buffer = Buffer("int32", numbers(rank.number, count))
    if rank.number == 1:
        before = mark(stream)
        hccl.all_reduce(comm, stream, buffer, count)
        acl.call("aclrtSynchronizeEvent", before)
        # The stream goes on to the collective; what it has put into the rings by now, if anything, is not enough.
        offer_to_be_killed(rank, 2)
    if rank.number == 2:
        kill_sender(rank)
    hccl.all_reduce(comm, stream, buffer, count)
    fails(stream, "HcclAllReduce(sum", "rank 1 (pid ", "has died")


@on_ranks(2, dies={1: KILLED})
def test_a_sender_killed_in_the_middle_of_a_message(rank: Rank):
    """The message does not fit into the ring, so the sender is inside until the receiver takes it."""
    comm, stream = hccl.begin(rank)
    count = 500_001
    buffer = Buffer("int32", numbers(rank.number, count))
    if rank.number == 1:
        acl.call("HcclSend", buffer.pointer, count, INT32, 0, comm, stream)
        assert not acl.idle(stream)
        offer_to_be_killed(rank, 0)
    kill_sender(rank)
    acl.call("HcclRecv", buffer.pointer, count, INT32, 1, comm, stream)
    fails(stream, f"HcclRecv({count} x int32), call 1 of rank 0", "rank 1 (pid ", "has died")


@on_ranks(2, dies={1: KILLED})
def test_what_a_dead_rank_sent_still_counts(rank: Rank):
    comm, stream = hccl.begin(rank)
    buffer = Buffer("int32", [41 + rank.number])
    if rank.number == 1:
        acl.call("HcclSend", buffer.pointer, 1, INT32, 0, comm, stream)
        hccl.synchronize(stream)
        offer_to_be_killed(rank, 0)
    kill_sender(rank)
    acl.call("HcclRecv", buffer.pointer, 1, INT32, 1, comm, stream)
    hccl.synchronize(stream)
    assert buffer.values() == [42]


@on_ranks(2)
def test_a_rank_that_ends_in_good_order_while_another_waits(rank: Rank):
    comm, stream = hccl.begin(rank)
    if rank.number == 1:
        return
    acl.call("HcclBarrier", comm, stream)
    fails(stream, "HcclBarrier(), call 1 of rank 0", "rank 1 (pid ", "has died: its process has ended")


@on_ranks(2)
def test_the_failure_reaches_streams_that_wait_for_the_result(rank: Rank):
    comm, stream = hccl.begin(rank)
    if rank.number == 1:
        return
    before, after = acl.stream(), acl.stream()
    acl.call("HcclBarrier", comm, stream)
    event = mark(stream)
    acl.call("aclrtStreamWaitEvent", before, event)
    fails(before, "HcclBarrier(), call 1 of rank 0", "rank 1 (pid ")
    acl.call("aclrtStreamWaitEvent", after, event)  # the event is long past
    fails(after, "HcclBarrier(), call 1 of rank 0", "rank 1 (pid ")
    fails(stream, "HcclBarrier(), call 1 of rank 0", "rank 1 (pid ")


@on_ranks(2)
def test_a_rank_that_destroys_its_communicator(rank: Rank):
    comm, stream = hccl.begin(rank)
    if rank.number == 1:
        acl.call("HcclCommDestroy", comm)
        rank.hear()
    else:
        acl.call("HcclBarrier", comm, stream)
        fails(stream, "rank 1 (pid ", "has destroyed its communicator")
        rank.tell(1)


@on_ranks(2)
def test_a_process_ends_although_its_collective_cannot(rank: Rank):
    comm, stream = hccl.begin(rank)
    if rank.number == 0:
        before = mark(stream)
        acl.call("HcclBarrier", comm, stream)
        acl.call("aclrtSynchronizeEvent", before)
        return  # rank 1 never comes, and this rank's stream waits for it
    # The inbox' writing ends are open here as well, so the end of rank 0 shows only through HCCL.
    buffer = Buffer("int32", [1])
    acl.call("HcclRecv", buffer.pointer, 1, INT32, 0, comm, stream)
    with pytest.raises(acl.AclError) as caught:
        hccl.synchronize(stream)
    # Its barrier may have got as far as saying so.
    assert "rank 0" in caught.value.text


@pytest.mark.parametrize("variable", ["SIMNPU_HCCL_TIMEOUT", "HCCL_EXEC_TIMEOUT"])
def test_a_rank_that_never_comes(variable: str):
    (_never_comes_short if variable == "SIMNPU_HCCL_TIMEOUT" else _never_comes)(variable=variable)


def _wait_for_rank_1(rank: Rank, variable: str):
    comm, stream = hccl.begin(rank)
    buffer = Buffer("float32", [1, 2])
    if rank.number == 1:
        rank.hear()
        hccl.all_reduce(comm, stream, buffer, 2)
        fails(stream, "rank 1 has not arrived", code=hccl.STREAM_TIMED_OUT)
        return
    hccl.all_reduce(comm, stream, buffer, 2)
    what = "HcclAllReduce(sum, 2 x float32), call 1 of rank 0 on communicator simnpu-"
    text = fails(stream, what, "rank 1 has not arrived after ", f"(limit {variable})", code=hccl.STREAM_TIMED_OUT)
    assert "Remedy" in text
    rank.tell(1)


@on_ranks(2, environment={"SIMNPU_HCCL_TIMEOUT": "0.3", "HCCL_EXEC_TIMEOUT": "1000"})
def _never_comes_short(rank: Rank, variable: str):
    _wait_for_rank_1(rank, variable)


@on_ranks(2, environment={"HCCL_EXEC_TIMEOUT": "1"})
def _never_comes(rank: Rank, variable: str):
    _wait_for_rank_1(rank, variable)


@on_ranks(3, environment={"HCCL_CONNECT_TIMEOUT": "1"})
def test_a_rank_that_never_comes_to_the_making(rank: Rank):
    acl.set_device(rank.number)
    blob = hccl.share_root(rank)
    if rank.number == 1:
        rank.hear()
        rank.hear()
    with pytest.raises(acl.AclError) as caught:
        acl.out("HcclCommInitRootInfo", 3, blob, rank.number, first=False)
    text = caught.value.text
    if rank.number == 1:
        assert "given up" in text or "rank 1 has not arrived" in text, text
    else:
        assert "rank 1 has not arrived after " in text, text
        assert "(limit HCCL_CONNECT_TIMEOUT); here: 0, 2 of 3 ranks" in text, text
        assert caught.value.code == hccl.TIMEOUT
        rank.tell(1)


@on_ranks(3, dies={1: KILLED}, environment={"HCCL_CONNECT_TIMEOUT": "1"})
def test_a_rank_killed_before_the_making(rank: Rank):
    acl.set_device(rank.number)
    blob = hccl.share_root(rank)
    if rank.number == 1:
        kill_myself()
    with pytest.raises(acl.AclError, match=r"rank 1 has not arrived after .* here: 0, 2 of 3 ranks"):
        acl.out("HcclCommInitRootInfo", 3, blob, rank.number, first=False)


@on_ranks(2, dies={0: KILLED})
def test_the_maker_of_the_root_information_dies(rank: Rank):
    acl.set_device(rank.number)
    blob = hccl.share_root(rank)
    if rank.number == 0:
        kill_myself()
    with pytest.raises(acl.AclError, match=r"root information.*has ended"):
        acl.out("HcclCommInitRootInfo", 2, blob, 1, first=False)


@on_ranks(2)
def test_ranks_that_disagree_about_their_communicator(rank: Rank):
    acl.set_device(rank.number)
    for ranks, number, fragment in [
        (2 + rank.number, rank.number, "ranks, but an earlier one with"),
        (2, 0, "rank 0 came twice"),
    ]:
        blob = hccl.share_root(rank)
        with pytest.raises(acl.AclError, match=fragment):
            acl.out("HcclCommInitRootInfo", ranks, blob, number, first=False)


def _disagreements(buffer: Buffer) -> dict[str, tuple[Callable[[int, int], None], ...]]:
    """What the two ranks call instead of the same, by what differs."""
    p = buffer.pointer
    counts = hccl.counts

    def reduce_(count: int = 4, kind: int = INT32, op: int = 0) -> Callable[[int, int], None]:
        return lambda comm, stream: acl.call("HcclAllReduce", p, p, count, kind, op, comm, stream)

    def broadcast(root: int) -> Callable[[int, int], None]:
        return lambda comm, stream: acl.call("HcclBroadcast", p, 4, INT32, root, comm, stream)

    def exchange(send: tuple[int, int], receive: tuple[int, int]) -> Callable[[int, int], None]:
        places = counts(0, 8)
        return lambda comm, stream: acl.call(
            *("HcclAlltoAllV", p, counts(*send), places, INT32, p, counts(*receive), places, INT32, comm, stream)
        )

    def send(count: int) -> Callable[[int, int], None]:
        return lambda comm, stream: acl.call("HcclSend", p, count, INT32, 1, comm, stream)

    def receive(count: int, kind: int = INT32) -> Callable[[int, int], None]:
        return lambda comm, stream: acl.call("HcclRecv", p, count, kind, 0, comm, stream)

    def barrier(comm: int, stream: int) -> None:
        acl.call("HcclBarrier", comm, stream)

    return {
        "count": (reduce_(count=4), reduce_(count=5)),
        "type": (reduce_(kind=INT32), reduce_(kind=4)),
        "reduction": (reduce_(op=0), reduce_(op=2)),
        "root": (broadcast(0), broadcast(1)),
        "call": (reduce_(), barrier),
        "part": (exchange((1, 2), (1, 3)), exchange((4, 1), (2, 1))),
        "message": (send(3), receive(4)),
        "message type": (send(4), receive(4, 4)),
        "collective and message": (send(3), barrier),
    }


# Where only the receiver can see it: the rank whose call may end well.
ONE_SIDED = {"part": 1, "message": 0, "message type": 0, "collective and message": 0}

NAMED = {
    "count": ("4 x int32", "5 x int32"),
    "type": ("4 x int32", "4 x float32"),
    "reduction": ("(sum, ", "(max, "),
    "root": ("root 0", "root 1"),
    "call": ("HcclAllReduce(sum, 4 x int32)", "HcclBarrier()"),
    "part": ("bytes to rank", "which expects"),
    "message": ("3 x int32", "4 x int32"),
    "message type": ("4 x int32", "4 x float32"),
    "collective and message": ("HcclSend(3 x int32)", "HcclBarrier()"),
}


@on_ranks(2, environment={"SIMNPU_HCCL_TIMEOUT": "30"})
def test_ranks_that_disagree_about_a_call(rank: Rank):
    acl.set_device(rank.number)
    stream = acl.stream()
    buffer = Buffer("int32", [7] * 16)
    for what, calls in _disagreements(buffer).items():
        comm = hccl.init(rank)
        calls[rank.number](comm, stream)
        if rank.number == ONE_SIDED.get(what):
            # What it sent is on its way when its call ends; the receiver sees the difference, the next call says so.
            rank.hear()
            with contextlib.suppress(acl.AclError):
                hccl.synchronize(stream)
            acl.call("HcclBarrier", comm, stream)
            fails(stream, "is broken since", "the ranks disagree")
        else:
            fails(stream, "the ranks disagree", "rank 0", "rank 1", *NAMED[what])
            if what in ONE_SIDED:
                rank.tell(1 - rank.number)
        acl.call("HcclCommDestroy", comm)


@on_ranks(2)
def test_nothing_stays_in_the_process(rank: Rank):
    def shared() -> list[str]:
        maps = Path("/proc/self/maps").read_text().splitlines()
        return [line for line in maps if "simnpu-hccl" in line]

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    acl.set_device(rank.number)
    stream = acl.stream()
    buffer = Buffer("int32", [1])  # a device's first allocation opens the file that holds its memory
    before = descriptors()
    comm = hccl.init(rank)
    assert len(shared()) == 1
    # A forked child (a data loader's worker) neither keeps the memory nor can use it.
    child = os.fork()
    if child == 0:
        refused = acl.code("HcclBarrier", comm, stream)
        os._exit(0 if not shared() and refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    hccl.all_reduce(comm, stream, buffer, 1)
    hccl.synchronize(stream)
    acl.call("HcclBarrier", comm, stream)
    acl.call("HcclCommDestroy", comm)
    hccl.synchronize(stream)
    assert not shared()
    assert descriptors() == before
