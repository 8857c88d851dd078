"""Reading an attribute of every module in sys.modules, with a default, never raises and never starts a compiler.

Reloaders, test runners, profilers and pickle walk sys.modules like this. A stand-in that imports the real package
when it is looked at turns the walk into a long import; one that raises something else than AttributeError breaks
tools that have never heard of torch_npu. Plain torch passes this walk for every name.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { attributes = ["__spec__", "__path__", "others"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import sys

from harness import probe

import torch
import torch_npu

OTHERS = (
    *("__file__", "__name__", "__loader__", "__package__", "__doc__", "__dict__", "__all__"),
    *("__warningregistry__", "__wrapped__", "x"),
)
raised = {}


def read(attribute, name, module):
    try:
        getattr(module, attribute, None)
    except Exception as error:
        raised[f"{attribute} of {name}"] = f"{type(error).__name__}: {str(error)[:200]}"


# On a stand-in that loads its package these two change what is found afterwards: each has a process of its own.
for attribute in OTHERS if probe.param("attributes") == "others" else (probe.param("attributes"),):
    for item in list(sys.modules.items()):
        read(attribute, *item)

probe.equal(raised, {}, "attributes that cannot be read with a default")
probe.compilers_absent()
probe.device_untouched()
