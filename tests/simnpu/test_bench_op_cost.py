"""The benchmark of the simulator's cost: that it runs and reports what it says, never what the clock showed.

Also the properties behind its figures that hold on any machine: how many calls a tiny operator makes, and that large
results are computed where they belong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deadlines import HANG
from isolated import on_simulator

from bench import op_cost


def test_the_quick_run_reports_every_figure(tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    command = [sys.executable, op_cost.__file__, "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert {"add out=", "exp out=", "relu", "sum", "matmul out=", "softmax", "layer_norm", "copy_", "cat out="} <= {
        row["name"] for row in report["large"]
    }
    for row in report["large"] + report["tiny"]:
        assert row["median"] > 0, row
        assert 0 < row["low"] <= row["high"], row
        assert row["met"] == (row["median"] <= row["target"]), row
        assert row["name"] in done.stdout
    assert [row["name"] for row in report["seconds"]] == ["simulator, import", "torch_npu, import", "first operator"]
    # Four objects, the two phases; the objects are destroyed by another thread, which may lag behind.
    made = report["tiny"][0]["calls"]
    assert {name: made[name] for name in made if not name.startswith("aclDestroy")} == {
        "aclCreateTensor": 3,
        "aclCreateScalar": 1,
        "aclnnAddGetWorkspaceSize": 1,
        "aclnnAdd": 1,
    }


def test_a_profile_is_split_by_thread_and_caller() -> None:
    profile = "\n".join(
        [
            "events: Ir",
            "ob=(1) /x/libtorch_npu.so",
            "fn=(1) add",
            "10 7",
            "cob=(2) /y/libopapi.so",
            "cfn=(2) aclnnAdd",
            "calls=1 0",
            "10 30",
            "+1 3",
            "cob=(3) /lib/libc.so.6",
            "cfn=(3) malloc",
            "calls=2 0",
            "* 50",
            "ob=(2)",
            "fn=(2)",
            "0 20",
            "cob=(4) /y/libsimnpu.so",
            "cfn=(4) enqueue",
            "calls=1 0",
            "0 10",
        ]
    )
    assert op_cost.read_profile(profile) == (7 + 3 + 20, 30)


@on_simulator(torch=True)
def test_large_results_are_computed_in_the_device_memory_itself():
    import resource

    import torch
    import torch_npu  # noqa: F401

    size = 1 << 25  # 128 MiB of floats: a second copy anywhere would be seen
    a = torch.ones(size, device="npu")
    out = torch.ones(size, device="npu")
    torch.add(a[:4], a[:4])
    torch.npu.synchronize()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.add(a, a, out=out)
    torch.exp(a, out=out)
    torch.add(a, 1.0, out=out)
    torch.cat((a[: size // 2], a[size // 2 :]), out=out)
    torch.npu.synchronize()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < size * 4 // 2, f"{grown} KiB more at the peak"


@on_simulator(torch=True)
def test_results_are_right_where_computing_in_place_would_not_be():
    import torch
    import torch_npu  # noqa: F401

    # The output is an input, or overlaps one, or has another type or layout than the operator computes.
    a = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    b = a.npu()
    torch.add(b, b, out=b)
    assert torch.equal(b.cpu(), a + a)
    square = torch.arange(9, dtype=torch.float32).reshape(3, 3)
    c = square.npu()
    torch.mm(c, c, out=c)
    assert torch.equal(c.cpu(), square @ square)
    wide = torch.zeros(4, 3, device="npu").t()
    torch.exp(a.npu(), out=wide)
    torch.testing.assert_close(wide.cpu(), a.exp())
    whole = torch.arange(5, device="npu")
    assert torch.equal(torch.true_divide(whole, 2).cpu(), torch.arange(5) / 2)
    assert torch.sum(torch.ones(5, dtype=torch.int32, device="npu")).cpu() == 5
    # Two results of the same size: each in its own place.
    numbers = torch.tensor([[3, 1, 2], [9, 7, 8]])
    for found, expected in zip(numbers.npu().sort(dim=1), numbers.sort(dim=1), strict=True):
        assert torch.equal(found.cpu(), expected)
    # What the operator computes on the way is as large as its result.
    torch.testing.assert_close(torch.logsumexp(a.npu(), 1).cpu(), torch.logsumexp(a, 1))
    normal = torch.nn.functional.layer_norm(a.t().npu(), (3,))
    torch.testing.assert_close(normal.cpu(), torch.nn.functional.layer_norm(a.t(), (3,)))
