"""Names of the environment variables between runner and child: the one place where both sides read them."""

from __future__ import annotations

RESULT_FD = "HARNESS_RESULT_FD"
"""Descriptor of the file that takes the records. Taken out of the environment before the case runs."""
DUMP_FD = "HARNESS_DUMP_FD"
"""Descriptor of the file that takes the dump of all stacks. Taken out likewise."""
PARENT = "HARNESS_PARENT"
"""Process id of the runner. Taken out likewise."""
POINT = "HARNESS_POINT"
"""The parameters as a JSON object; stays, and tells processes that the case starts that they belong to one."""
TIMEOUT = "HARNESS_TIMEOUT"
"""Seconds that the case has; stays, so that its waits can overrun before it does. "inf" by hand under a debugger."""
PREAMBLE = "HARNESS_PREAMBLE"
"""Module that every interpreter of this subject imports first; unset when there is none."""
PREAMBLES = ("torch_npu_lazy",)
"""All modules that are a preamble of some subject: their presence tells which subject an interpreter really ran."""
CALLS = "HARNESS_DEVICE_CALLS"
"""Module whose counts() gives {call into the device runtime: times}; unset where nobody counts (a real NPU)."""
MARKER = "HARNESS_RUN"
"""Value that only one run's processes carry: finds those that left both the group and the family."""
