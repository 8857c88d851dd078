"""The wheel's wider use of the runtime: other processes, memory statistics, profiler, pools, graphs, forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from deadlines import HANG
from isolated import ROOT, TORCH_SECONDS, on_simulator
from test_wheel import MEBI, refused

import simnpu

EXPANDABLE = {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}


def shared_memory_files() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir() if "simnpu" in path.name}


@pytest.mark.parametrize("segments", ["expandable", "plain"])
def test_tensors_and_events_go_through_queues_to_another_process(segments: str):
    environment = simnpu.environ() | (EXPANDABLE if segments == "expandable" else {})
    before = shared_memory_files()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("shared_tensors.py"))],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * TORCH_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "handed over" in done.stdout
    assert shared_memory_files() == before


@on_simulator(torch=True)
def test_clearing_much_memory_gives_it_back_and_clears_nothing_else():
    import torch
    import torch_npu  # noqa: F401

    def in_use() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssShmem:")[1].split()[0]) << 10

    memory = torch.ones(132 * MEBI, dtype=torch.uint8, device="npu")
    part = memory[1000 : 1000 + 100 * MEBI]
    assert memory.sum().item() == 132 * MEBI
    full = in_use()
    assert full >= 132 * MEBI
    part.zero_()
    torch.npu.synchronize()
    assert in_use() <= full - 99 * MEBI
    assert memory.sum().item() == 32 * MEBI
    assert memory[:1000].sum().item() == 1000
    memory.fill_(1)[::2].zero_()  # not dense: nothing between may be cleared
    assert memory.sum().item() == 66 * MEBI


def check_memory_numbers(expandable: bool) -> None:
    import torch
    import torch_npu  # noqa: F401

    torch.npu.memory._record_memory_history()
    kept = torch.ones(MEBI, device="npu")
    freed = torch.ones(8 * MEBI, device="npu")
    del freed
    stats = torch.npu.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.npu.memory_allocated() == 4 * MEBI + 512
    assert stats["allocated_bytes.all.peak"] == torch.npu.max_memory_allocated() >= 36 * MEBI
    assert stats["num_ooms"] == 0
    reserved = torch.npu.memory_reserved()
    free, total = torch.npu.mem_get_info()
    assert total - free >= reserved > 32 * MEBI
    segments = torch.npu.memory_snapshot()
    assert sum(segment["total_size"] for segment in segments) == reserved
    assert {segment["is_expandable"] for segment in segments} == {expandable}
    active = [block for segment in segments for block in segment["blocks"] if block["state"] == "active_allocated"]
    assert [block["requested_size"] for block in active] == [4 * MEBI]
    actions = [entry["action"] for entry in torch.npu.memory._snapshot()["device_traces"][0]]
    assert "alloc" in actions
    assert "free_completed" in actions
    assert ("segment_map" if expandable else "segment_alloc") in actions
    torch.npu.memory._record_memory_history(None)
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() < reserved
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == 4 * MEBI + 512
    assert "NPU memory summary" in torch.npu.memory_summary()
    assert kept.sum().item() == MEBI


@on_simulator(torch=True)
def test_memory_statistics_and_snapshots():
    check_memory_numbers(expandable=False)


@on_simulator(torch=True, environment=EXPANDABLE)
def test_memory_statistics_and_snapshots_of_expandable_segments():
    check_memory_numbers(expandable=True)


@on_simulator(torch=True)
def test_a_snapshot_can_be_written():
    import os
    import pickle
    import tempfile

    import torch
    import torch_npu  # noqa: F401

    torch.npu.memory._record_memory_history()
    kept = torch.ones(4, device="npu")
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # torch_npu leaves a table of who used how much in the working directory
        path = Path(directory) / "snapshot.pickle"
        torch.npu.memory._dump_snapshot(str(path))
        with path.open("rb") as file:
            assert pickle.load(file)["segments"]
    assert kept.tolist() == [1.0] * 4


@on_simulator(torch=True)
def test_the_profiler_runs_and_leaves_what_it_saw_on_the_host():
    import json
    import tempfile

    import torch
    import torch_npu

    profiler = torch_npu.profiler
    with tempfile.TemporaryDirectory() as directory:
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            on_trace_ready=profiler.tensorboard_trace_handler(directory),
        ) as session:
            total = torch.ones(4, device="npu") + 1
            torch.npu.synchronize()
            session.step()
        assert total.tolist() == [2.0] * 4
        (trace,) = Path(directory).rglob("trace_view.json")
        names = {event.get("name", "") for event in json.loads(trace.read_text(encoding="utf-8"))}
        assert any("add" in name for name in names), names


@on_simulator(torch=True)
def test_the_profiler_of_torch_counts_operators_and_writes_a_trace():
    import json
    import tempfile

    import torch
    import torch_npu  # noqa: F401

    # On the host alone: for the device torch_npu wants libmspti, which is not simulated.
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as session:
        assert (torch.ones(4, device="npu") + 1).tolist() == [2.0] * 4
    assert {average.key: average.count for average in session.key_averages()}["aten::add"] == 1
    assert "aten::add" in session.key_averages().table()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.json"
        session.export_chrome_trace(str(path))
        assert "aten::add" in {event.get("name") for event in json.loads(path.read_text())["traceEvents"]}


@on_simulator(torch=True)
def test_a_profile_of_nothing_is_empty_and_valid():
    import tempfile

    import torch
    import torch_npu

    torch.npu.init()
    with tempfile.TemporaryDirectory() as directory:
        session = torch_npu.profiler.profile(on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(directory))
        session.start()
        session.stop()
    assert torch.ones(2, device="npu").sum().item() == 2.0


@on_simulator(torch=True)
def test_copies_between_the_devices_keep_the_order_of_both():
    import torch
    import torch_npu  # noqa: F401

    assert torch.npu.can_device_access_peer(0, 1)
    first = torch.zeros(1000, device="npu:0")
    second = torch.zeros(1000, device="npu:1")
    for step in range(20):
        first += 1
        second.copy_(first, non_blocking=True)
        second += 1
        first.copy_(second, non_blocking=True)
        assert first[step].item() == 2 * (step + 1)
    assert torch.equal(first.cpu(), second.cpu())


@on_simulator(torch=True)
def test_streams_of_any_priority_work():
    import torch
    import torch_npu  # noqa: F401

    # The wheel takes a priority and gives every stream the same; asking for it is an error of its own.
    usual, urgent = torch.npu.Stream(), torch.npu.Stream(priority=-1)
    assert urgent != usual
    with torch.npu.stream(urgent):
        assert (torch.ones(4, device="npu") + 1).sum().item() == 8
    refused(lambda: urgent.priority, "get_priority")


@on_simulator(torch=True)
def test_a_graph_captures_across_streams():
    import torch
    import torch_npu  # noqa: F401

    source = torch.ones(4, device="npu")
    side = torch.npu.Stream()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        doubled = source * 2
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            tripled = source * 3
        torch.npu.current_stream().wait_stream(side)
        total = doubled + tripled
    for value in (1.0, 4.0):
        source.fill_(value)
        graph.replay()
        assert total.tolist() == [5 * value] * 4


@on_simulator(torch=True)
def test_graphs_share_a_pool_and_keep_their_memory():
    import torch
    import torch_npu  # noqa: F401

    source = torch.ones(MEBI, device="npu")
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    with torch.npu.graph(first):
        middle = source + 1
    with torch.npu.graph(second, pool=first.pool()):
        last = middle * 2
    assert first.pool() == second.pool()
    other = torch.npu.NPUGraph()
    with torch.npu.graph(other, pool=torch.npu.graph_pool_handle()):
        alone = source - 1
    assert other.pool() != first.pool()
    outside = torch.full((MEBI,), 9.0, device="npu")  # takes no memory of a graph's
    source.fill_(3.0)
    for graph in (first, second, other):
        graph.replay()
    assert (last[0].item(), alone[0].item(), outside.sum().item()) == (8.0, 2.0, 9.0 * MEBI)
    kept = torch.npu.memory_reserved()
    del middle, last, alone
    for graph in (first, second, other):
        graph.reset()
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() < kept


@on_simulator(torch=True)
def test_a_pool_within_a_pool():
    import torch
    import torch_npu  # noqa: F401

    outer, inner = torch.npu.MemPool(), torch.npu.MemPool()
    with torch.npu.use_mem_pool(outer):
        first = torch.ones(MEBI, device="npu")
        with torch.npu.use_mem_pool(inner):
            second = torch.ones(MEBI, device="npu")
        third = torch.ones(MEBI, device="npu")
    pools = {}
    for segment in torch.npu.memory_snapshot():
        for block in segment["blocks"]:
            pools[block["address"]] = segment["segment_pool_id"]
    assert pools[first.data_ptr()] == pools[third.data_ptr()] == outer.id
    assert pools[second.data_ptr()] == inner.id


@on_simulator(torch=True)
def test_a_synchronize_during_capture_is_refused_and_the_capture_goes_on():
    import torch
    import torch_npu  # noqa: F401

    source = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        source.add_(1)
        # ACL_ERROR_RT_STREAM_CAPTURED
        refused(torch.npu.current_stream().synchronize, "107027", "is being captured")
        source.mul_(3)
    assert source.tolist() == [1.0] * 4, "nothing of the capture has run"
    graph.replay()
    assert source.tolist() == [6.0] * 4


@on_simulator(torch=True)
def test_a_dumped_graph_is_a_trace_that_torch_npu_can_read():
    import json
    import tempfile

    import torch
    import torch_npu  # noqa: F401
    from torch_npu.npu._npugraph_utils import align_trace_json

    source = torch.ones(4, device="npu")
    side = torch.npu.Stream()
    graph = torch.npu.NPUGraph()
    graph.enable_debug_mode()
    with torch.npu.graph(graph):
        source.add_(1)
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            source.mul_(3)
        torch.npu.current_stream().wait_stream(side)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph.json"
        graph.debug_dump(str(path))
        aligned = json.loads(Path(align_trace_json(path, None)).read_text())
    work = [event for event in aligned if event["ph"] == "X"]
    assert [event["name"] for event in work] == ["aclnnInplaceAdds", "aclnnInplaceMuls"]
    assert len({event["tid"] for event in work}) == 2


@on_simulator(torch=True)
def test_swapped_memory_is_host_memory_that_the_device_works_on():
    import torch
    import torch_npu

    swapped = torch_npu.empty_with_swapped_memory([4], dtype=torch.float32, device="npu:0")
    swapped.fill_(2).mul_(torch.arange(4.0, device="npu"))
    assert swapped.tolist() == [0.0, 2.0, 4.0, 6.0]
    swapped.copy_(torch.ones(4))
    assert (swapped + 1).tolist() == [2.0] * 4


@on_simulator(torch=True)
def test_a_tensor_of_another_device_is_reached_by_copies_and_by_operators_only_once_a_copy_has_opened_the_way():
    import torch
    import torch_npu  # noqa: F401

    here, there = torch.ones(2, device="npu:0"), torch.ones(2, device="npu:1")
    refused(lambda: here + there, "161002", "is on device 1, which device 0 cannot reach")
    assert there.to("npu:0").tolist() == [1.0, 1.0]
    # torch_npu opened both directions for the copy, and never closes them.
    assert (here + there).tolist() == [2.0, 2.0]


@on_simulator(torch=True)
def test_a_host_callback_runs_in_the_order_of_its_stream():
    import ctypes

    import acl
    import torch
    import torch_npu  # noqa: F401

    seen: list[float] = []
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        value = torch.zeros(4, device="npu")
        value.add_(1)
        stream.synchronize()
        place = (ctypes.c_float * 4).from_address(value.data_ptr())
        acl.host_function(stream.npu_stream, lambda: seen.append(place[0]))
        value.add_(1)
    stream.synchronize()
    assert seen == [1.0]
    assert value.tolist() == [2.0] * 4


SPAWN = (
    "Cannot re-initialize NPU in forked subprocess. "
    "To use NPU with multiprocessing, you must use the 'spawn' start method"
)


@on_simulator(torch=True, fresh=True)
def test_a_forked_worker_of_multiprocessing_is_told_to_spawn():
    import multiprocessing

    import torch
    import torch_npu  # noqa: F401

    torch.ones(4, device="npu").cpu()
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def work() -> None:
        try:
            torch.ones(4, device="npu").cpu()
            results.put("worked")
        except RuntimeError as error:
            results.put(str(error))

    process = context.Process(target=work)
    process.start()
    text = results.get(timeout=HANG)
    process.join(60)
    assert process.exitcode == 0
    assert text == SPAWN


@on_simulator(torch=True, fresh=True)
def test_a_child_of_os_fork_is_told_to_spawn_by_every_use():
    import os

    import torch
    import torch_npu  # noqa: F401

    tensor = torch.ones(4, device="npu")
    tensor.cpu()
    # torch_npu notices the forks of multiprocessing only; here the runtime says it, with CANN's "no context".
    said = (
        "this process was forked from one that had used the NPU; its streams do not exist here. Start it with the spawn"
    )
    pid = os.fork()
    if pid == 0:
        try:
            for use in (tensor.cpu, torch.npu.synchronize, torch.npu.Stream, lambda: torch.npu.set_device(1)):
                refused(use, said, "107002")
            refused(lambda: tensor + 1, said, "107002")
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_killed_process_leaves_nothing_in_shared_memory():
    before = shared_memory_files()
    program = """
import os, signal, torch, torch_npu
kept = [torch.ones(1000, device=f"npu:{n}") for n in (0, 1)], torch.ones(1000).pin_memory()
event = torch.npu.Event(interprocess=True)
event.record()
shared = kept[0][0].untyped_storage()._share_npu_(), event.ipc_handle()
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=simnpu.environ(),
        capture_output=True,
        text=True,
        timeout=TORCH_SECONDS,
        check=False,
    )
    assert done.stdout == "ready\n", done.stderr
    assert done.returncode == -9
    assert shared_memory_files() == before
