"""A wrong backend, mode or set of options is refused as without torch_npu, with nothing initialised.

Near misses of the NPU's own names and contradictory arguments are refused by torch itself, at once; what torch_npu adds
to torch.compile must neither let them through nor answer with an error of its own.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 120
# releases = ">=2.13"
# ///

import json
import os

from harness import probe
from cases import _subject as subject

CODE = """
import json, sys
import torch
CALLS = {
    "unknown backend": {"backend": "npu_graphs"},
    "unknown backend with mode": {"backend": "npu_graphs", "mode": "default"},
    "empty backend": {"backend": ""},
    "backend in capitals": {"backend": "NPU"},
    "number as backend": {"backend": 3},
    "mode and options": {"mode": "default", "options": {"max_autotune": True}},
    "mode and options for eager": {"backend": "eager", "mode": "reduce-overhead", "options": {"a": 1}},
    "list as options": {"options": ["max_autotune"]},
    "options for inductor, second wrong": {"options": {"max_autotune": True, "max_autotun": True}},
    "wrong type of an option of torch": {"options": {"max_autotune": "yes"}},
    "number as mode": {"mode": 1},
    "mode in capitals": {"mode": "DEFAULT"},
    "unknown keyword": {"npu": True},
    "function that is none": None,
}
def refusals():
    told = {}
    for name, arguments in CALLS.items():
        try:
            if arguments is None:
                torch.compile(3, backend="eager")(1)
            else:
                torch.compile(lambda x: x, **arguments)
            told[name] = "no error"
        except BaseException as error:
            told[name] = [type(error).__name__, str(error).split(", known options")[0]]
    return told
"""
control = probe.python(CODE + "print(json.dumps(refusals()))")
expected = json.loads(control.stdout.splitlines()[-1])
refused = sum(told != "no error" for told in expected.values())
probe.check(refused >= 12, "plain torch refuses nearly all of these", told=expected)

import torch_npu

before = dict(os.environ)
namespace = {}
exec(CODE, namespace)
for turn in ("first", "second"):
    told = json.loads(json.dumps(namespace["refusals"]()))
    # Which attribute a wrong type is first seen to lack is no promise.
    for refusal in (*told.values(), *expected.values()):
        if refusal[0] == "AttributeError":
            refusal[1] = "any"
    differing = {name: (told[name], wanted) for name, wanted in expected.items() if told[name] != wanted}
    probe.equal(differing, {}, f"refusals that differ from plain torch's (found, expected), {turn} time")
    probe.equal(subject.inductor_setup.has_run, False, "Inductor setup has run")
    probe.equal(subject.inductor_is_loaded(), False, "NPU Inductor is initialised")
changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
probe.equal(changed - {"TORCHINDUCTOR_CACHE_DIR"}, set(), "variables that have changed")
probe.modules.absent("torch_npu._inductor", "torch_npu.npu._graph_tree")
probe.modules.left_to_torch("triton")
probe.device_untouched()
