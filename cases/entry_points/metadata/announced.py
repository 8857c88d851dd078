"""The installed package announces three Dynamo backends: npu, npugraph_ex and npugraphs, each by its lazy entry point.

torch finds the backends of a package it has not imported through this metadata only. A wrong value shows as "invalid
backend" on a user's machine, never in a source tree.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

from importlib.metadata import distribution, entry_points

from harness import probe

found = {point.name: point.value for point in entry_points(group="torch_dynamo_backends") if "npu" in point.name}
probe.equal(
    found,
    {
        "npu": "torch_npu.dynamo:_npu_backend_entrypoint",
        "npugraph_ex": "torch_npu.dynamo:_npugraph_ex_backend_entrypoint",
        "npugraphs": "torch_npu.dynamo:_npugraphs_backend_entrypoint",
    },
    "NPU entry points of group torch_dynamo_backends",
)
autoload = [point.value for point in entry_points(group="torch.backends") if point.name == "torch_npu"]
probe.equal(autoload, ["torch_npu:_autoload"], "entry point of torch's autoload")
probe.check(distribution("torch_npu").version, "the distribution has a version")
probe.modules.absent("torch", "torch_npu")
