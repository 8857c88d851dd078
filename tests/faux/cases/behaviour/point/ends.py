"""However a case ends, it ends as what it is.

Ways to end that depend on the case and not on the package.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix.how = [
#   "well", "fails", "raises", "no_check", "forks", "misuses", "unsupported", "unsupported_swallowed", "notes",
#   "takes_signals",
# ]
# timeout = 30
# ///

import os
import signal

from harness import probe

how = probe.param("how")
if how == "fails":
    probe.equal([1, 2], [1, 3], "the list")
elif how == "raises":
    raise RuntimeError("out of the blue")
elif how == "forks":
    if os.fork() == 0:
        # The child runs on to the end of the case and checks nonsense; none of it may count.
        try:
            probe.check(False, "the moon is green")
        except AssertionError:
            probe.note("who", "child")
    else:
        os.wait()
        probe.note("who", "parent")
elif how == "misuses":
    probe.param("nonesuch")
elif how == "unsupported":
    probe.unsupported("no such thing here")
elif how == "unsupported_swallowed":
    try:
        probe.unsupported("no such thing here")
    except BaseException:
        probe.note("swallowed", True)
elif how == "notes":
    probe.note("modules", 12)
elif how == "takes_signals":
    probe.same(signal.getsignal(signal.SIGINT), signal.default_int_handler, "handler of Ctrl-C")
    probe.equal(signal.getsignal(signal.SIGHUP), signal.SIG_DFL, "handler of a hang-up")
if how != "no_check":
    probe.check(True, "all is well")
