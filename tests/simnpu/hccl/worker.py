"""Started by torchrun on every rank: torch.distributed's collectives on "hccl" against what the CPU works out.

Ends with 0 only if every check passed. The names of the checks go to a file per rank, so that a test sees them done.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CHECKS: list[Callable[[], None]] = []
LARGE = 300_007  # odd, and in float32 more than the ranks' shared memory holds at once


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


def given(rank: int, count: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """What a rank brings: small whole numbers, exact in every type; on the CPU."""
    return ((torch.arange(count) * 3 + rank * 5 + seed) % 3 + 1).to(dtype)


def npu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("npu")


def same(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    found = found.cpu()
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: {found.shape}, expected {expected.shape}"
    assert torch.equal(found, expected), f"{what}: {found}, expected {expected}"


def everyone(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.stack([given(r, count, dtype) for r in range(SIZE)])


@check
def all_reduce() -> None:
    whole = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
    operations = {
        dist.ReduceOp.SUM: lambda x: x.sum(0),
        dist.ReduceOp.MAX: lambda x: x.amax(0),
        dist.ReduceOp.MIN: lambda x: x.amin(0),
        dist.ReduceOp.PRODUCT: lambda x: x.prod(0),
    }
    for dtype in [*whole, torch.float16, torch.bfloat16, torch.float32]:  # torch_npu refuses to reduce float64
        for operation, combine in operations.items():
            tensor = npu(given(RANK, 5, dtype))
            dist.all_reduce(tensor, operation)
            same(tensor, combine(everyone(5, dtype).double()).to(dtype), f"all_reduce {operation} {dtype}")
    for count in (0, 1, LARGE):
        tensor = npu(given(RANK, count))
        dist.all_reduce(tensor)
        same(tensor, everyone(count).sum(0), f"all_reduce of {count}")
    tensor = npu(torch.tensor([RANK == 0, False]))
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    same(tensor, torch.tensor([True, False]), "all_reduce of bool")


@check
def average() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        tensor = npu(given(RANK, 6, dtype))
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        same(tensor, (everyone(6).sum(0) / SIZE).to(dtype), f"average {dtype}")
    part = npu(torch.empty(2))
    dist.reduce_scatter_single(part, npu(given(RANK, 2 * SIZE)), dist.ReduceOp.AVG)
    same(part, (everyone(2 * SIZE).sum(0) / SIZE)[2 * RANK : 2 * RANK + 2], "reduce_scatter average")


@check
def a_view_that_is_not_contiguous() -> None:
    base = npu(given(RANK, 12)).reshape(3, 4)
    gathered = [npu(torch.empty(4, 3)) for _ in range(SIZE)]
    dist.all_gather(gathered, base.t().contiguous())
    for r in range(SIZE):
        same(gathered[r], given(r, 12).reshape(3, 4).t().contiguous(), "all_gather of a transposed one")


@check
def gathering() -> None:
    for dtype in (torch.int64, torch.bfloat16, torch.bool, torch.float64):
        expected = [given(r, 3, dtype) for r in range(SIZE)]
        gathered = [npu(torch.empty(3, dtype=dtype)) for _ in range(SIZE)]
        dist.all_gather(gathered, npu(given(RANK, 3, dtype)))
        for r in range(SIZE):
            same(gathered[r], expected[r], f"all_gather {dtype}")
        into = npu(torch.empty(3 * SIZE, dtype=dtype))
        dist.all_gather_into_tensor(into, npu(given(RANK, 3, dtype)))
        same(into, torch.cat(expected), f"all_gather_into_tensor {dtype}")
    uneven = [npu(torch.empty(r + 1)) for r in range(SIZE)]
    dist.all_gather(uneven, npu(given(RANK, RANK + 1)))
    for r in range(SIZE):
        same(uneven[r], given(r, r + 1), "all_gather of different sizes")
    into = npu(torch.empty(LARGE * SIZE))
    dist.all_gather_into_tensor(into, npu(given(RANK, LARGE)))
    same(into, everyone(LARGE).flatten(), "a large all_gather_into_tensor")
    collected = [npu(torch.empty(3)) for _ in range(SIZE)] if RANK == 1 else None
    dist.gather(npu(given(RANK, 3)), collected, dst=1)
    for r, tensor in enumerate(collected or []):
        same(tensor, given(r, 3), "gather")


@check
def scattering() -> None:
    part = npu(torch.empty(3))
    dist.reduce_scatter_tensor(part, npu(given(RANK, 3 * SIZE)))
    same(part, everyone(3 * SIZE).sum(0)[3 * RANK : 3 * RANK + 3], "reduce_scatter_tensor")
    part = npu(torch.empty(3))
    dist.reduce_scatter(part, [npu(given(RANK, 3, seed=r)) for r in range(SIZE)], dist.ReduceOp.MAX)
    same(part, torch.stack([given(r, 3, seed=RANK) for r in range(SIZE)]).amax(0), "reduce_scatter")
    part = npu(torch.empty(RANK + 1))
    dist.reduce_scatter(part, [npu(given(RANK, r + 1, seed=r)) for r in range(SIZE)])
    same(part, torch.stack([given(r, RANK + 1, seed=RANK) for r in range(SIZE)]).sum(0), "uneven reduce_scatter")
    part = npu(torch.empty(2))
    dist.scatter(part, [npu(given(r, 2)) for r in range(SIZE)] if RANK == 1 else None, src=1)
    same(part, given(RANK, 2), "scatter")


@check
def one_to_all_and_all_to_one() -> None:
    for count in (0, 1, LARGE):
        tensor = npu(given(RANK, count, torch.int64))
        dist.broadcast(tensor, 1)
        same(tensor, given(1, count, torch.int64), f"broadcast of {count}")
    tensor = npu(given(RANK, 4))
    dist.reduce(tensor, 1)
    if RANK == 1:
        same(tensor, everyone(4).sum(0), "reduce")


@check
def all_to_all() -> None:
    into = npu(torch.empty(2 * SIZE))
    dist.all_to_all_single(into, npu(given(RANK, 2 * SIZE)))
    same(into, torch.cat([given(r, 2 * SIZE)[2 * RANK : 2 * RANK + 2] for r in range(SIZE)]), "all_to_all_single")
    splits = [(RANK + c) % 3 for c in range(SIZE)]  # to each rank; none at all to some
    into = npu(torch.empty(sum(splits)))
    dist.all_to_all_single(into, npu(given(RANK, sum(splits))), splits, splits)
    expected = []
    for r in range(SIZE):
        theirs = [(r + c) % 3 for c in range(SIZE)]
        begin = sum(theirs[:RANK])
        expected.append(given(r, sum(theirs))[begin : begin + theirs[RANK]])
    same(into, torch.cat(expected), "all_to_all_single with splits")
    lists = [npu(torch.empty(r + 1)) for r in range(SIZE)]
    dist.all_to_all(lists, [npu(given(RANK, RANK + 1, seed=r)) for r in range(SIZE)])
    for r in range(SIZE):
        same(lists[r], given(r, r + 1, seed=RANK), "all_to_all")


@check
def objects() -> None:
    found: list[object] = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK * 1000})
    assert found == [{"rank": r, "text": "x" * r * 1000} for r in range(SIZE)], found
    values: list[object] = ["from", 1] if RANK == 1 else [None, None]
    dist.broadcast_object_list(values, src=1)
    assert values == ["from", 1], values
    collected: list[Any] | None = [None] * SIZE if RANK == 0 else None
    dist.gather_object(RANK, collected, dst=0)
    assert collected in (None, list(range(SIZE))), collected


@check
def point_to_point() -> None:
    if RANK == 0:
        dist.send(npu(given(0, 5)), 1)
        work = dist.isend(npu(given(0, LARGE, seed=1)), 1)
        assert work is not None
        work.wait()
    elif RANK == 1:
        tensor, large = npu(torch.empty(5)), npu(torch.empty(LARGE))
        dist.recv(tensor, 0)
        work = dist.irecv(large, 0)
        assert work is not None
        work.wait()
        same(tensor, given(0, 5), "recv")
        same(large, given(0, LARGE, seed=1), "irecv")
    following, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = npu(torch.empty(LARGE))
    both = [dist.P2POp(dist.isend, npu(given(RANK, LARGE)), following), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    same(got, given(before, LARGE), "batch_isend_irecv round the ring")
    dist.barrier()


@check
def handles() -> None:
    tensors = [npu(given(RANK, 1000, seed=i)) for i in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        assert work is not None
        work.wait()
    for i, tensor in enumerate(tensors):
        expected = torch.stack([given(r, 1000, seed=i) for r in range(SIZE)]).sum(0)
        same(tensor + 0, expected, "all_reduce with a handle")
    torch.npu.synchronize()
    assert all(work is not None and work.is_completed() for work in works)


@check
def side_streams() -> None:
    side = torch.npu.Stream()
    with torch.npu.stream(side):
        tensor = npu(given(RANK, LARGE)) * 2
        dist.all_reduce(tensor)
        tensor = tensor + 1
    torch.npu.current_stream().wait_stream(side)
    same(tensor, everyone(LARGE).sum(0) * 2 + 1, "all_reduce on a side stream")


@check
def groups() -> None:
    wanted = [[0, 1], [0], [1, SIZE - 1] if SIZE > 2 else [1], list(range(SIZE))]
    made = [(members, dist.new_group(members)) for members in wanted]
    for members, group in made:
        if RANK not in members:
            continue
        assert isinstance(group, dist.ProcessGroup)
        tensor = npu(given(RANK, 4))
        dist.all_reduce(tensor, group=group)
        same(tensor, torch.stack([given(r, 4) for r in members]).sum(0), f"all_reduce of {members}")
        tensor = npu(given(RANK, 4))
        dist.broadcast(tensor, members[-1], group=group)
        same(tensor, given(members[-1], 4), f"broadcast within {members}")
    tensor = npu(given(RANK, 1))
    dist.all_reduce(tensor)
    same(tensor, everyone(1).sum(0), "the whole world after its groups")


@check
def coalesced() -> None:
    from torch.distributed.distributed_c10d import _coalescing_manager

    tensors = [npu(given(RANK, 3, seed=i)) for i in range(3)]
    with _coalescing_manager(device=torch.device("npu", torch.npu.current_device())):
        for tensor in tensors:
            dist.all_reduce(tensor)
    for i, tensor in enumerate(tensors):
        same(tensor, torch.stack([given(r, 3, seed=i) for r in range(SIZE)]).sum(0), "coalesced all_reduce")
    parts = [npu(torch.empty(2 * SIZE)) for _ in range(2)]
    with _coalescing_manager(device=torch.device("npu", torch.npu.current_device()), async_ops=True) as manager:
        for part in parts:
            dist.all_gather_into_tensor(part, npu(given(RANK, 2)))
    manager.wait()
    for part in parts:
        same(part, everyone(2).flatten(), "coalesced all_gather_into_tensor")


@check
def captured() -> None:
    x = npu(given(RANK, 4))
    dist.all_reduce(x.clone())  # the communicator is made outside the capture
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        doubled = x * 2
        dist.all_reduce(doubled)
        result = doubled + 1
    for turn in range(3):
        x.copy_(npu(given(RANK, 4, seed=turn)))
        graph.replay()
        expected = torch.stack([given(r, 4, seed=turn) for r in range(SIZE)]).sum(0) * 2 + 1
        same(result, expected, f"replay {turn} of a captured all_reduce")


@check
def complex_numbers_and_futures() -> None:
    tensor = npu(torch.complex(given(RANK, 3), given(RANK, 3, seed=1)))
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    doubled = work.get_future().then(lambda future: future.value()[0] * 2).wait()
    expected = torch.stack([torch.complex(given(r, 3), given(r, 3, seed=1)) for r in range(SIZE)]).sum(0)
    same(torch.view_as_real(tensor), torch.view_as_real(expected), "all_reduce of complex numbers")
    # torch_npu reduces the real view, and that is what its future holds.
    same(doubled, torch.view_as_real(expected * 2), "what a future computes")


@check
def functional() -> None:
    import torch.distributed._functional_collectives as functional_collectives

    world = dist.group.WORLD
    assert world is not None
    result = functional_collectives.all_reduce(npu(given(RANK, 4)), "sum", world)
    same(result + 0, everyone(4).sum(0), "functional all_reduce")


def main() -> None:
    warnings.simplefilter("ignore")
    local = int(os.environ["LOCAL_RANK"])
    torch.npu.set_device(local % torch.npu.device_count())
    dist.init_process_group("hccl")
    wanted = sys.argv[2:]
    done = []
    for function in CHECKS:
        if wanted and function.__name__ not in wanted:
            continue
        function()
        done.append(function.__name__)
    dist.barrier()
    dist.destroy_process_group()
    (Path(sys.argv[1]) / f"done{RANK}").write_text("\n".join(done))


if __name__ == "__main__":
    main()
