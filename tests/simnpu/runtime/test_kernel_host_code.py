"""Triton's own host code against the simulator: its module is compiled and run as the wheel does it."""

from __future__ import annotations

import os
import tempfile

import acl
import kernels
import pytest
from isolated import on_simulator

from simnpu.toolchain.surroundings import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def test_the_home_has_what_the_compile_command_names():
    from simnpu.build import build

    home = build().parent / "cann"
    # The paths of triton-ascend's compile command; acl and profiling are the wheel's own headers.
    for path in (
        "include/experiment/runtime/runtime/rt.h",
        "include/acl/acl.h",
        "include/profiling/aprof_pub.h",
        "lib64/libruntime.so",
        "lib64/libascendcl.so",
    ):
        assert (home / path).is_file(), path


@on_simulator(torch=True)
def test_kernels_are_loaded_by_tritons_module_and_run_beside_torch():
    import torch

    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        from triton.backends.ascend import driver

        module = driver.NPUUtils()
        assert module.get_arch() == "Ascend910B3"
        assert (module.get_aicore_num(), module.get_aivector_core_num()) == (24, 48)
        binary = kernels.compile_binary()
        stubs = {name: module.load_binary(f"{name} aiv", binary, 0, 0)[1] for name in ("twice_plus_one", "write_at")}

    x = torch.arange(8, dtype=torch.int32, device="npu")

    def launch(name: str, index: int = 0) -> None:
        kernels.launch(stubs[name], torch.npu.current_stream().npu_stream, x.data_ptr(), index, blocks=8)

    torch.npu.synchronize()
    launch("twice_plus_one")
    assert x.tolist() == [1, 3, 5, 7, 9, 11, 13, 15]
    launch("write_at", -(1 << 40))
    with pytest.raises(RuntimeError, match=r"kernel write_at wrote out of bounds: .*, the closest of its arguments"):
        torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        launch("twice_plus_one")
    graph.replay()
    graph.replay()
    assert x.tolist() == [7, 15, 23, 31, 39, 47, 55, 63]
    # Triton prints the failure and goes on with a null stub.
    assert module.load_binary("broken aiv", b"no binary", 0, 0)[1] == 0
    arguments = kernels.packed(x.data_ptr())
    acl.refuses(507027, "it is no ELF file (9 bytes", "rtKernelLaunch", None, 1, arguments, len(arguments), None, None)
