"""The ONNX exporter that does not use Dynamo works for models on CPU and NPU, and leaves Dynamo unloaded.

Many deployments still use it because their runtimes expect its graphs. It traces by running the model, so it needs
neither the compilers nor their setup.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# needs = ["ops", "onnx", "onnxruntime"]
# timeout = 120
# releases = ">=2.13"
# ///

import copy
import warnings

import torch
import torch_npu
from harness import probe
from cases import _subject as subject

import onnxruntime
import torch.onnx

torch.manual_seed(0)
on_cpu = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4)).eval()
x = torch.arange(12.0).reshape(3, 4)
with torch.no_grad():
    wanted = on_cpu(x)
    for device in ("cpu", "npu"):
        file = f"{device}.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(copy.deepcopy(on_cpu).to(device), (x.to(device),), file, dynamo=False)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        probe.close(torch.from_numpy(result), wanted, f"{device}: onnxruntime's result", rtol=1e-4, atol=1e-5)
probe.equal(subject.dynamo_setup.has_run, False, "Dynamo setup has run")
probe.compilers_absent()
