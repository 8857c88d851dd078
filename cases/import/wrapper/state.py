"""An Inductor wrapper carries the same attributes as without torch_npu, whether it was built, refused or compared.

Wrappers are compared to decide whether a function must be compiled again, and copied into caches. Notes that the
NPU's patches leave on the object would show up there. The control builds the same wrappers in a fork made
before `import torch_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import inspect
import json

from harness import probe

import torch

Wrapper = torch._TorchCompileInductorWrapper


def after_refusal():
    wrapper = Wrapper.__new__(Wrapper)
    try:
        wrapper.__init__("default", {"max_autotune": True, "no_such": 1}, None)
    except RuntimeError as error:
        return [str(error)[:45], vars(wrapper)]
    return ["not refused", vars(wrapper)]


def equality():
    def make(**options):
        return Wrapper("default", options or None, None)

    return [make() == make(), make(max_autotune=True) == make(), make(max_autotune=True) == make(max_autotune=True)]


BUILT = {
    "plain": lambda: vars(Wrapper("default", None, None)),
    "mode": lambda: vars(Wrapper("max-autotune", None, True)),
    "options": lambda: vars(Wrapper(None, {"max-autotune": True, "epilogue_fusion": False}, False)),
    "name_positional": lambda: vars(Wrapper("default", None, None, "region")),
    "name_keyword": lambda: vars(Wrapper(mode="default", options=None, dynamic=None, name="region")),
    "after_refusal": after_refusal,
    "equality": equality,
}
if "name" not in inspect.signature(Wrapper).parameters:  # torch before 2.12
    del BUILT["name_positional"], BUILT["name_keyword"]


def state(name):
    return json.loads(json.dumps(BUILT[name](), default=repr))


plain = probe.forked(lambda: {name: state(name) for name in BUILT})
import torch_npu

probe.each(list(BUILT), lambda name: probe.equal(state(name), plain[name], "the wrapper's state"))
