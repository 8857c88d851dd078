"""`import torch_npu` needs at most 24 MB of memory more than loading its C extension does.

A node starts dozens of processes that import the package, and what Python modules allocate is shared with none of
them. The C extension is taken as given: its size depends on the build, and its pages are shared. Both are measured as
growth of resident memory after `import torch`, the least of three fresh interpreters each.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 120
# releases = ">=2.12"
# ///

from harness import probe

PROGRAM = """
import importlib.util, os, sys, types
import torch

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

before = resident()
if sys.argv[1] == "extension":
    package = types.ModuleType("torch_npu")
    package.__path__ = list(importlib.util.find_spec("torch_npu").submodule_search_locations)
    sys.modules["torch_npu"] = package
    import torch_npu._C
else:
    import torch_npu
print(resident() - before, flush=True)
os._exit(0)  # the end of a bare package is not what is judged
"""


def grown(what):
    done = probe.python(PROGRAM, what)
    return float(done.stdout.split()[-1])


whole, extension = (min(grown(what) for _ in range(3)) for what in ("package", "extension"))
probe.note("megabytes", round(whole, 1))
probe.note("megabytes_extension", round(extension, 1))
more = round(whole - extension, 1)
probe.check(extension > 0, "the C extension takes memory")
probe.check(more <= 24, "the package takes at most 24 MB more than its C extension", more=more, limit=24)
