"""Hides the installed torch_npu while a control runs, so that a control which imports it is found out, in whatever
process: what it then shows is not what PyTorch does alone."""

import os

with open(os.environ["HARNESS_CONTROL"], "a") as _evidence:  # noqa: PTH123 - nothing may be imported here that is not there
    _evidence.write(f"{os.getpid()}\n")
raise ModuleNotFoundError(
    "this is a control, and torch_npu is out of the way: import it only `if not probe.control`", name="torch_npu"
)
