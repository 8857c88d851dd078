"""With a CANN that is installed by half, torch can be imported and works; the first use of the NPU names the cause.

Build machines and containers have a CANN without its operators, or a shell that has read half of its settings. Programs
that compute on the CPU there must not end in torch's remark that a backend could not be loaded.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { opp = ["unset", "elsewhere"] }
# timeout = 120
# releases = ">=2.13.0"
# ///

import os

from harness import probe

PROGRAM = """
import torch

assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
print("available", torch.npu.is_available(), torch.npu.device_count())
try:
    torch.ones(2, device="npu")
except Exception as error:
    print("told", "ASCEND_OPP_PATH" in str(error))
"""
environment = {
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    "ASCEND_HOME_PATH": os.environ.get("ASCEND_HOME_PATH", "/"),
    "ASCEND_OPP_PATH": None if probe.param("opp") == "unset" else "/nowhere/opp",
}
done = probe.python(PROGRAM, env=environment, check=False)
probe.equal(done.returncode, 0, "exit code of a program that imports torch")
probe.equal(done.stdout.splitlines(), ["available False 0", "told True"], "what it finds")
