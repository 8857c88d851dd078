"""Nothing that `import torch_npu` gives without torch_npu_lazy is lost with it: no name, no replacement in torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deadlines import HANG

import simnpu
from harness.inside import collecting

REWRAPPED = {"torch.utils._config_module.ConfigModule.get_config_copy"}
"""Replaced as before, and marked as a wrapper of torch's own, so that its home is torch."""

INSTALLED = {
    "torch.utils._config_module.ConfigModule.__init_subclass__",
    "torch.version.__dir__",
    "torch.version.__getattr__",
}
"""How keys of a configuration, and the version of CANN, are there before anybody has computed them."""

RENAMED = {f"torch._prims.rng_prims.{name}" for name in ("get_device", "philox_rand_offset", "register_philox_rand")}
"""Of the same module, by other names: one file for all releases."""

IMPORTED = {
    f"utils._inductor.{name}"
    for name in ("Optional", "TensorLike", "aten", "operator", "reduce", "register_rng_prim", "torch")
}
"""What that module has imported for itself in the wheel."""

WORKER = Path(__file__).with_name("import_names_worker.py")


def _run(subject: str, given: str = "") -> dict[str, Any]:
    environment = simnpu.environ() | {"TORCH_NPU_LAZY": "0" if subject == "stock" else "1"}
    command = [sys.executable, "-s", collecting.__file__, str(WORKER), subject]
    ended = subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, check=False, timeout=HANG
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    stock = _run("stock")
    return stock, _run("lazy", json.dumps(stock))


def test_every_name_can_be_had_by_attribute_access(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stock, lazy = both
    assert len(stock["names"]) > 250
    assert sum(map(len, stock["names"].values())) > 3000
    assert set(lazy["missing"]) <= IMPORTED


def test_every_module_of_torch_can_be_had_by_attribute_access(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stock, lazy = both
    assert {"torch.distributed.tensor", "torch.fx.experimental.symbolic_shapes"} <= set(stock["below_torch"])
    assert lazy["unreachable"] == []


def test_looking_at_modules_loads_no_compiler() -> None:
    assert _run("look") == {}


def test_no_name_looks_public_that_was_none(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert both[1]["opened"] == []


def test_annotations_of_replacements_can_be_evaluated(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stock, lazy = both
    assert {each for each in lazy["unreadable"] if each.partition(":")[0] not in INSTALLED} <= {*stock["unreadable"]}


def test_no_lookup_imports_anything(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert both[1]["in_lookups"] == []


def test_torch_has_the_same_replacements(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stock, lazy = both
    assert len(stock["replacements"]) > 40
    changed = {name for name, home in stock["replacements"].items() if lazy["replacements"].get(name) != home}
    added = set(lazy["replacements"]) - set(stock["replacements"])
    assert changed <= REWRAPPED | RENAMED
    assert all(lazy["replacements"][name].startswith("torch_npu.utils._inductor.") for name in RENAMED)
    # How torch's packages answer for modules below them that are not loaded yet.
    assert {name for name in added if not name.endswith(".__getattr__")} <= INSTALLED
