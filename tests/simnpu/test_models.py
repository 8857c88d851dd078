"""Small models trained on the simulated NPU: every step's loss and the final state must be those of the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deadlines import HANG
from isolated import ROOT

import simnpu
from harness.inside import collecting

WORKER = Path(__file__).with_name("models_worker.py")
STEPS = 20
SECONDS = HANG
# Largest difference of a loss, and of a number in the final state relative to the largest in its tensor (at least 1).
# The simulator computes with the CPU's own kernels, so only the order of summation differs.
FLOAT32 = 1e-5
BFLOAT16 = 1e-2  # one rounding that falls the other way
MODELS = {
    "mlp": FLOAT32,
    "convnet_with_batch_norm": FLOAT32,
    "transformer": FLOAT32,
    "scaled_dot_product_attention": FLOAT32,
    "adamw_with_weight_decay": FLOAT32,
    "autocast_bfloat16": BFLOAT16,
    "gradient_scaling": FLOAT32,
    "lstm": FLOAT32,
    "gru": FLOAT32,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every model trained on both devices, in one process."""
    report = tmp_path_factory.mktemp("models") / "report.jsonl"
    done = subprocess.run(
        [sys.executable, collecting.__file__, str(WORKER), str(report), *MODELS],
        cwd=ROOT,
        env=simnpu.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"training ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    records = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    return {record["name"]: record for record in records}


@pytest.mark.parametrize("name", MODELS)
def test_training_equals_the_cpu(name: str, trained: dict[str, dict[str, Any]]):
    record = trained[name]
    assert record["error"] is None, record["error"]
    assert len(record["npu_losses"]) == STEPS
    assert record["loss_difference"] <= MODELS[name], record
    assert record["state_difference"] <= MODELS[name], record
    first, last = record["npu_losses"][0], record["npu_losses"][-2]  # the same batch
    assert last < 0.9 * first, f"nothing was learned: {record['npu_losses']}"
