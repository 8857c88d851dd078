"""The unmodified torch_npu wheel on the simulated runtime: each test is a process of its own."""

# pyright: reportAttributeAccessIssue=false
# torch.npu exists only once torch_npu is imported, which a type checker cannot know.

from __future__ import annotations

import os
import threading

from isolated import on_simulator

MEBI = 1 << 20


def refused(action, *fragments: str, kind: type[BaseException] = RuntimeError) -> str:
    """The action must raise `kind` with a text that has all the fragments."""
    try:
        action()
    except kind as error:
        text = str(error)
        missing = [fragment for fragment in fragments if fragment not in text]
        assert not missing, f"{missing} not in: {text}"
        return text
    raise AssertionError(f"nothing was raised, expected {kind.__name__} with {fragments}")


@on_simulator(torch=True, fresh=True)
def test_importing_and_counting_do_not_touch_a_device():
    import torch
    import torch_npu

    from simnpu import calls

    assert torch.npu.is_available()
    assert torch.npu.device_count() == 2
    touching = {"aclrtSetDevice", "aclrtCreateContext", "aclrtCreateStream", "aclrtCreateStreamWithConfig"}
    made = calls.counts()
    assert not touching & made.keys(), made
    assert not [name for name in made if "Malloc" in name or "Memcpy" in name], made
    assert not torch_npu.npu.is_initialized()
    torch.empty(4, device="npu")
    made = calls.counts()
    assert made["aclrtSetDevice"] >= 1
    assert [name for name in made if "Malloc" in name]


@on_simulator(torch=True, fresh=True)
def test_importing_prints_no_warning_about_cann():
    import contextlib
    import io

    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        import torch_npu  # noqa: F401
    assert "CANN" not in written.getvalue(), written.getvalue()
    assert "ASCEND" not in written.getvalue(), written.getvalue()


@on_simulator(torch=True, memory="64M")
def test_exceeding_the_capacity_is_torch_s_own_out_of_memory_error():
    import os
    import tempfile

    import torch
    import torch_npu  # noqa: F401

    # torch_npu leaves a table of who used how much in the working directory.
    directory = tempfile.TemporaryDirectory()
    os.chdir(directory.name)
    free, total = torch.npu.mem_get_info()
    assert total == 64 * MEBI
    kept = torch.empty(40 * MEBI, dtype=torch.uint8, device="npu")
    free, _ = torch.npu.mem_get_info()
    assert free <= 24 * MEBI
    refused(
        lambda: torch.empty(32 * MEBI, dtype=torch.uint8, device="npu"), "out of memory", kind=torch.OutOfMemoryError
    )
    torch.empty(40 * MEBI, dtype=torch.uint8, device="npu:1")
    del kept
    torch.empty(60 * MEBI, dtype=torch.uint8, device="npu")


@on_simulator(torch=True)
def test_devices_hold_their_own_memory_and_agree_on_their_properties():
    import torch
    import torch_npu  # noqa: F401

    values = torch.arange(6.0).reshape(2, 3)
    first = values.to("npu:0")
    second = first.to("npu:1")
    assert (first.device.index, second.device.index) == (0, 1)
    assert second.data_ptr() != first.data_ptr()
    assert torch.equal(second.cpu(), values)
    second.copy_(first)
    properties = torch.npu.get_device_properties(0)
    assert properties.name == torch.npu.get_device_name(0) == "Ascend910B3"
    assert properties.cube_core_num * 2 == properties.vector_core_num
    assert properties.total_memory == 2 << 30
    refused(lambda: torch.npu.set_device(2), "2")


@on_simulator(torch=True)
def test_pinned_memory_and_non_blocking_copies():
    import torch
    import torch_npu  # noqa: F401

    source = torch.arange(1000, dtype=torch.int32).pin_memory()
    assert source.is_pinned()
    assert not torch.arange(3).is_pinned()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        there = source.to("npu", non_blocking=True)
        back = torch.empty(1000, dtype=torch.int32).pin_memory()
        back.copy_(there, non_blocking=True)
    stream.synchronize()
    assert torch.equal(back, source)
    assert stream.query()


@on_simulator(torch=True)
def test_events_order_streams_and_measure_time():
    import torch
    import torch_npu  # noqa: F401

    first, second = torch.npu.Stream(), torch.npu.Stream()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    source = torch.arange(4096.0).pin_memory()
    target = torch.empty(4096, device="npu")
    result = torch.empty(4096, device="npu")
    torch.npu.synchronize()
    with torch.npu.stream(first):
        start.record()
        target.copy_(source, non_blocking=True)
        end.record()
    with torch.npu.stream(second):
        second.wait_event(end)
        result.copy_(target)
    second.synchronize()
    assert end.query()
    assert torch.equal(result.cpu(), source)
    assert start.elapsed_time(end) > 0


@on_simulator(torch=True, fault="aclrtMallocAlign32:*:error=507899,aclrtMalloc:*:error=507899")
def test_an_injected_fault_surfaces_as_an_error_that_names_the_call():
    import torch
    import torch_npu  # noqa: F401

    refused(lambda: torch.empty(4, device="npu"), "aclrtMalloc", "failed on request (SIMNPU_FAULT)", "507899")


@on_simulator(torch=True, fault="aclrtMemcpy:1:error=507052")
def test_after_an_injected_fault_the_next_call_works():
    import torch
    import torch_npu  # noqa: F401

    tensor = torch.empty(4, device="npu")
    refused(tensor.cpu, "aclrtMemcpy: call 1 failed on request (SIMNPU_FAULT)", "507052")
    tensor.cpu()


@on_simulator(torch=True)
def test_a_copy_out_of_range_is_an_error_that_names_the_range():
    import acl
    import torch
    import torch_npu  # noqa: F401

    # What a broken extension would do: torch's own pointers with a wrong size.
    tensor = torch.empty(16, device="npu")
    whole = 2 * MEBI  # the block that torch's allocator asked for
    acl.refuses(
        acl.PARAM_INVALID, "runs past its allocation", "aclrtMemset", tensor.data_ptr(), whole + 1, 0, whole + 1
    )
    acl.call("aclrtMemset", tensor.data_ptr(), 64, 0, 64)
    assert torch.equal(tensor.cpu(), torch.zeros(16))


@on_simulator(torch=True)
def test_a_graph_records_copies_and_replays_them():
    import torch
    import torch_npu  # noqa: F401

    source = torch.arange(8.0, device="npu")
    target = torch.zeros(8, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        target.copy_(source)
    torch.npu.synchronize()
    assert torch.equal(target.cpu(), torch.zeros(8)), "capturing must run nothing"
    graph.replay()
    torch.npu.synchronize()
    assert torch.equal(target.cpu(), torch.arange(8.0))
    source.copy_(torch.full((8,), 5.0))
    graph.replay()
    torch.npu.synchronize()
    assert torch.equal(target.cpu(), torch.full((8,), 5.0))
    graph.reset()


@on_simulator(torch=True)
def test_a_graph_records_operators_and_memory_of_its_own():
    import torch
    import torch_npu  # noqa: F401

    static = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = (static + 1) * 3
    for value in (1.0, 2.0):
        static.fill_(value)
        graph.replay()
        assert torch.equal(result.cpu(), torch.full((4,), (value + 1) * 3))


@on_simulator(torch=True)
def test_waiting_during_a_capture_is_an_error():
    import torch
    import torch_npu  # noqa: F401

    def capture() -> None:
        with torch.npu.graph(torch.npu.NPUGraph()):
            torch.npu.current_stream().synchronize()

    refused(capture, "captur")
    torch.npu.synchronize()


@on_simulator(torch=True, fresh=True)
def test_a_forked_child_gets_an_error_and_not_a_hang():
    import torch
    import torch_npu  # noqa: F401

    tensor = torch.ones(4).to("npu")
    pid = os.fork()
    if pid == 0:
        try:
            refused(tensor.cpu, "fork")
            refused(lambda: torch.empty(8 * MEBI, device="npu"), "fork")  # more than torch holds in its cache
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert torch.equal(tensor.cpu(), torch.ones(4))


@on_simulator(torch=True)
def test_threads_share_the_devices():
    import torch
    import torch_npu  # noqa: F401

    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            device = f"npu:{number % 2}"
            stream = torch.npu.Stream(device=device)
            with torch.npu.device(device), torch.npu.stream(stream):
                for step in range(20):
                    there = torch.full((100,), float(number * step)).to(device)
                    assert torch.equal(there.cpu(), torch.full((100,), float(number * step)))
        except BaseException as error:
            problems.append(error)

    torch.npu.init()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


@on_simulator(torch=True, environment={"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}, memory="256M")
def test_expandable_segments_map_physical_memory():
    import torch
    import torch_npu  # noqa: F401

    from simnpu import calls

    tensors = [torch.full((MEBI,), float(n)).to("npu") for n in range(8)]
    assert all(torch.equal(tensor.cpu(), torch.full((MEBI,), float(n))) for n, tensor in enumerate(tensors))
    assert calls.counts()["aclrtMapMem"] > 0
    tensors.clear()
    torch.npu.empty_cache()
    free, total = torch.npu.mem_get_info()
    assert free == total


@on_simulator(torch=True, visible="1")
def test_visible_devices_are_honoured():
    import torch
    import torch_npu  # noqa: F401

    assert torch.npu.device_count() == 1
    torch.empty(1, device="npu:0")


@on_simulator(torch=True, fresh=True)
def test_a_process_ends_in_order_with_work_queued():
    import torch
    import torch_npu  # noqa: F401

    source = torch.ones(MEBI).pin_memory()
    target = torch.empty(MEBI, device="npu")
    with torch.npu.stream(torch.npu.Stream()):
        for _ in range(50):
            target.copy_(source, non_blocking=True)
