"""`import torch_npu` takes at most eight times the processor time of loading its C extension.

The extension is the yardstick because it is what no implementation can do without, and scales with the machine: no
clock is judged. Start-up time is what users of command line tools, tests and launchers notice of a backend first. Each
is the least of three fresh interpreters, which take turns.
"""

# /// script
# [tool.conformance]
# level = "should"
# timeout = 120
# releases = ">=2.12"
# ///

from harness import probe

PROGRAM = """
import importlib.util, os, sys, time, types
import torch

before = time.process_time()
if sys.argv[1] == "extension":
    package = types.ModuleType("torch_npu")
    package.__path__ = list(importlib.util.find_spec("torch_npu").submodule_search_locations)
    sys.modules["torch_npu"] = package
    import torch_npu._C
else:
    import torch_npu
print(time.process_time() - before, flush=True)
os._exit(0)  # the end of a bare package is not what is judged
"""

spent = {"package": [], "extension": []}
for _ in range(3):
    for what, seconds in spent.items():
        done = probe.python(PROGRAM, what)
        seconds.append(float(done.stdout.split()[-1]))
whole, extension = min(spent["package"]), min(spent["extension"])
times = round(whole / extension, 1)
probe.note("cpu_seconds_package", round(whole, 3))
probe.note("cpu_seconds_extension", round(extension, 3))
probe.note("times", times)
probe.check(times <= 8, "the package takes at most eight times as long as its C extension", times=times, limit=8)
