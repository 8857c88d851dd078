"""The set of torch_npu's replacements inside torch.distributed.fsdp is the same in every import order.

A module that binds a name early keeps torch's object; then one order trains with the NPU's part and another without
it. Everything of torch_npu that can be reached in FSDP's modules and classes is listed, for each order, and the lists
are compared; so a replacement that a later release adds is judged, too.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 300
# releases = ">=2.7.1"
# ///

import importlib
import inspect
import sys

from harness import probe

import torch

FSDP = "torch.distributed.fsdp"
ORDERS = {
    "fsdp before": [FSDP, "torch_npu"],
    "sub-modules before": [f"{FSDP}.sharded_grad_scaler", f"{FSDP}._fully_shard._fsdp_param_group", "torch_npu"],
    "fsdp after": ["torch_npu", FSDP],
    "sub-module after": ["torch_npu", f"{FSDP}._fully_shard._fsdp_collectives"],
    "torch_npu's own first": ["torch_npu.distributed.fsdp"],
}


def of_torch_npu(value):
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "torch_npu"


def replacements(order):
    for name in ORDERS[order]:
        importlib.import_module(name)
    for name in (FSDP, f"{FSDP}.sharded_grad_scaler", f"{FSDP}._fully_shard"):
        importlib.import_module(name)
    found = {}
    for module_name, module in sorted(sys.modules.items()):
        if module_name != FSDP and not module_name.startswith(f"{FSDP}."):
            continue
        for name, value in vars(module).items():
            if of_torch_npu(value):
                found[f"{module_name}.{name}"] = f"{value.__module__}.{value.__qualname__}"
            elif inspect.isclass(value) and value.__module__ == module_name:
                for inner, member in vars(value).items():
                    if of_torch_npu(member):
                        found[f"{module_name}.{name}.{inner}"] = f"{member.__module__}.{member.__qualname__}"
    return found


first = probe.forked(replacements, "fsdp before")
probe.check(f"{FSDP}.sharded_grad_scaler.ShardedGradScaler" in first, "the gradient scaler is among them", found=first)
others = [order for order in ORDERS if order != "fsdp before"]
probe.each(others, lambda order: probe.equal(replacements(order), first, "the replacements"), forked=True)
