"""Ctrl-C still raises KeyboardInterrupt and SIGTERM still ends the process after NPU packages were imported.

A job scheduler stops a job with SIGTERM, a person with Ctrl-C. A library that takes the handlers over for its own
clean-up and does not hand on turns both into "only SIGKILL works", and loses the checkpoint that a KeyboardInterrupt
handler would write.
"""

# /// script
# [tool.conformance]
# rule = "import/signals/1"
# level = "must"
# matrix = { package = ["torch_npu", "npugraph_ex"], signal = ["SIGINT", "SIGTERM"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import signal

from harness import probe

# In a process of its own: if the signal does its work, this one would be gone.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
signal.signal(signal.SIGTERM, signal.SIG_DFL)
import torch_npu
__import__(sys.argv[1])
try:
    os.kill(os.getpid(), signal.Signals[sys.argv[2]])
    for _ in range(10_000): pass  # give the interpreter a chance to run a handler
    print("survived")
except KeyboardInterrupt:
    print("interrupted")
"""

name = probe.param("signal")
done = probe.python(PROGRAM, probe.param("package"), name, check=False)
if name == "SIGINT":
    probe.check(
        "interrupted" in done.stdout, "Ctrl-C raises KeyboardInterrupt", output=done.stdout, code=done.returncode
    )
else:
    probe.check("survived" not in done.stdout, "SIGTERM ends the process", output=done.stdout, code=done.returncode)
    probe.equal(done.returncode, -signal.SIGTERM, "exit status after SIGTERM")
