"""With NPU logging of variables on, each variable is logged at its first read, once, by name and value.

Support asks for this log to see which variables a failing job really read. Without the setting the functions of
Python stay in place and cost nothing.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { logs = ["off", "on"] }
# timeout = 60
# releases = ">=2.10"
# ///

import logging
import os

from harness import probe

before = os.getenv
lines = []


class Keep(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


if probe.param("logs") == "on":
    os.environ["TORCH_NPU_LOGS"] = "env"
import torch_npu

logging.getLogger("torch_npu.env").addHandler(Keep())
os.environ["PROBE_VALUE"] = "seen"
os.getenv("PROBE_VALUE")
os.environ.get("PROBE_VALUE")

if probe.param("logs") == "on":
    about = [line for line in lines if "PROBE_VALUE" in line]
    probe.equal(len(about), 1, "log lines about the variable")
    probe.check("seen" in about[0], "the line tells the value", line=about[0])
else:
    probe.same(os.getenv, before, "os.getenv without the setting")
    probe.equal(lines, [], "log lines without the setting")
