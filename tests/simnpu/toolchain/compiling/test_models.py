"""Models compiled by Inductor: output, gradients and running statistics are those of the CPU in eager mode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import simnpu
from harness.inside import collecting
from toolchain.compiling.stack import NEEDS_KERNELS, SECONDS

pytestmark = NEEDS_KERNELS

WORKER = Path(__file__).with_name("models_worker.py")
# Largest difference relative to the largest number of its tensor, or to 0.01 where all are smaller.
FLOAT32 = 1e-5
BFLOAT16 = 2e-2  # two or three roundings of 8 bits; a compiled kernel rounds less often than eager operators
FLOAT16 = 3e-3
MODELS = {
    "mlp": FLOAT32,
    "layer_norm_and_gelu": FLOAT32,
    "attention": FLOAT32,
    "convnet_with_batch_norm": FLOAT32,
    "embedding_and_cross_entropy": FLOAT32,
    "bfloat16": BFLOAT16,
    "float16": FLOAT16,
}
# Which graphs exist after the first, second and third size.
DYNAMIC = {"dynamic_when_marked": [1, 1, 1], "dynamic_by_itself": [1, 2, 2]}
# Wrong by torch_npu 2.13.0 itself, on any device.
WRONG = {
    "layer_norm_bfloat16": (
        "gradients",
        BFLOAT16,
        "its lowering of native_layer_norm returns mean and rstd in the input's type, where the backward graph reads "
        "float32",
    ),
}
# One configuration per kernel instead of twenty that are timed, and no helper processes.
QUICK = {"FAST_RUN_WITH_MAX_TILING_NUM": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCH_WARM_POOL": "0"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every model, in one process with empty caches."""
    place = tmp_path_factory.mktemp("models")
    report = place / "report.jsonl"
    caches = {"TRITON_CACHE_DIR": str(place / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor")}
    done = subprocess.run(
        [sys.executable, collecting.__file__, str(WORKER), str(report), *MODELS, *DYNAMIC, *WRONG],
        env=simnpu.environ() | caches | QUICK,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    records = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    return {record["name"]: record for record in records}


def _whole(report: dict[str, Any]) -> dict[str, Any]:
    assert "error" not in report, report["error"]
    return report


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_are_the_cpus(name: str, reports: dict[str, dict[str, Any]]) -> None:
    report = _whole(reports[name])
    assert max(report["output"], report["gradients"], report["buffers"]) <= MODELS[name], report


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_third_size_compiles_nothing(name: str, reports: dict[str, dict[str, Any]]) -> None:
    report = _whole(reports[name])
    assert report["output"] <= FLOAT32
    assert report["graphs"] == DYNAMIC[name]


@pytest.mark.parametrize("name", WRONG)
def test_what_torch_npu_does_wrong_is_still_wrong(name: str, reports: dict[str, dict[str, Any]]) -> None:
    what, tolerance, reason = WRONG[name]
    report = _whole(reports[name])
    assert report[what] > tolerance, f"right now: move it to MODELS. It was wrong because {reason}"
    assert report["output"] <= tolerance
