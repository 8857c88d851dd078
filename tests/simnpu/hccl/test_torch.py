"""torch.distributed of the unmodified wheel on the simulated collectives: what it computes, trains, and raises."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import simnpu
from harness.inside import collecting
from hccl.ranks import ROOT, TORCH_SECONDS, Rank, end_group, on_ranks

WORKER = Path(__file__).with_name("worker.py")


def torchrun(ranks: int, environment: dict[str, str], *arguments: str) -> str:
    """Runs the worker on this many ranks, with a time limit; its output if all ended well."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [*launcher, collecting.__file__, str(WORKER)]
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=TORCH_SECONDS)
    finally:
        end_group(process)
    assert process.returncode == 0, output
    return output


@pytest.mark.parametrize("ranks", [2, 4])
def test_torchrun(ranks: int, tmp_path: Path):
    environment = simnpu.environ(devices=None if ranks == 2 else ranks)
    torchrun(ranks, environment | {"OMP_NUM_THREADS": "1", "SIMNPU_HCCL_TIMEOUT": "60"}, str(tmp_path))
    checks = [line.removeprefix("def ").partition("(")[0] for line in _after_check(WORKER.read_text().splitlines())]
    assert len(checks) > 10
    for rank in range(ranks):
        assert (tmp_path / f"done{rank}").read_text().splitlines() == checks


def _after_check(lines: list[str]) -> list[str]:
    return [after for line, after in itertools.pairwise(lines) if line == "@check"]


def _begin(rank: Rank) -> Any:
    """Sets the rank's device, joins the process group, and returns torch.distributed."""
    import torch
    import torch.distributed as dist
    import torch_npu  # noqa: F401

    torch.npu.set_device(rank.number % torch.npu.device_count())
    store = f"file://{rank.directory}/store"
    dist.init_process_group("hccl", init_method=store, rank=rank.number, world_size=rank.count)
    return dist


@on_ranks(2, torch=True, environment={"SIMNPU_HCCL_TIMEOUT": "60"})
def test_data_parallel_training_equals_one_process(rank: Rank):
    dist = _begin(rank)

    import torch
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def model() -> nn.Sequential:
        torch.manual_seed(0)
        layers = [nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)]
        return nn.Sequential(*layers).to("npu")

    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(8, 8, generator=generator), torch.randn(8, 4, generator=generator)

    def train(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[float]:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = ((net(x.to("npu")) - y.to("npu")) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    alone = model()
    losses = train(alone, x, y)
    assert losses[-1] < losses[0]
    expected = [parameter.detach().cpu() for parameter in alone.parameters()]
    half_x, half_y = x.chunk(rank.count)[rank.number], y.chunk(rank.count)[rank.number]

    replicated = DistributedDataParallel(model())
    train(replicated, half_x, half_y)
    for found, wanted in zip(replicated.parameters(), expected, strict=True):
        torch.testing.assert_close(found.detach().cpu(), wanted)

    sharded = model()
    for layer in sharded:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(sharded)
    train(sharded, half_x, half_y)
    for found, wanted in zip(sharded.parameters(), expected, strict=True):
        assert found.to_local().numel() < wanted.numel()
        torch.testing.assert_close(found.full_tensor().detach().cpu(), wanted)
    dist.destroy_process_group()


@on_ranks(3, torch=True, devices=2, dies={1: -signal.SIGKILL})
def test_what_cannot_finish_raises_in_python(rank: Rank):
    """Three ranks share two devices. The limits are minutes, so what is raised here was noticed."""
    dist = _begin(rank)

    import os

    import torch

    def world_sum() -> float:
        tensor = torch.full((4,), float(rank.number)).to("npu")
        dist.all_reduce(tensor)
        return tensor.sum().item()

    pair = dist.new_group([0, 2])
    assert world_sum() == 12.0
    if rank.number != 1:
        tensor = torch.ones(4 + rank.number).to("npu")
        dist.all_reduce(tensor, group=pair)
        with pytest.raises(RuntimeError, match=r"507000"):
            # The copy waits for the current stream alone, which waited for the one that failed.
            tensor.cpu()
        with pytest.raises(RuntimeError, match=r"(?s)the ranks disagree.*HcclAllReduce\(sum, . x float32\)"):
            torch.npu.synchronize()
        dist.all_reduce(tensor, group=pair)
        with pytest.raises(RuntimeError, match=r"is broken since: HcclAllReduce\(sum, . x float32\), call 1 of rank"):
            torch.npu.synchronize()
    # The world has not suffered.
    assert world_sum() == 12.0
    if rank.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)

    died = r"rank 1 \(pid \d+, device 1\) has died"
    with pytest.raises(RuntimeError, match=died):
        world_sum()
    dist.all_reduce(torch.ones(1).to("npu"))
    with pytest.raises(RuntimeError, match=died):
        torch.npu.synchronize()
    dist.destroy_process_group()
