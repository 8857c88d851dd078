"""Ctrl-C still raises KeyboardInterrupt and SIGTERM still ends the process after NPU packages were imported.

A job scheduler stops a job with SIGTERM, a person with Ctrl-C. A library that takes the handlers over for its own
clean-up and does not hand on turns both into "only SIGKILL works", and loses the checkpoint that a KeyboardInterrupt
handler would write.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { package = ["torch_npu", "npugraph_ex"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import signal

from harness import probe

# In processes of their own: if the signal does its work, this one would be gone. One child per signal, forked after the
# import, so that no signal meets what another has changed.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
signal.signal(signal.SIGTERM, signal.SIG_DFL)
import torch_npu
__import__(sys.argv[1])
for name in ("SIGINT", "SIGTERM"):
    child = os.fork()
    if child == 0:
        end = 3
        try:
            os.kill(os.getpid(), signal.Signals[name])
            for _ in range(10_000): pass  # give the interpreter a chance to run a handler
        except KeyboardInterrupt:
            end = 4
        finally:
            os._exit(end)
    print("ENDED", name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
SURVIVED, INTERRUPTED = 3, 4

done = probe.python(PROGRAM, probe.param("package"))
ends = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ENDED "))
names = {str(SURVIVED): "survived", str(INTERRUPTED): "interrupted", str(-signal.SIGTERM): "ended by SIGTERM"}
ends = {name: names.get(end, f"exit status {end}") for name, end in ends.items()}
probe.equal(ends, {"SIGINT": "interrupted", "SIGTERM": "ended by SIGTERM"}, "what the signals do")
