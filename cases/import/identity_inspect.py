"""What inspect, pickle and copy say about torch.compile is what they say without torch_npu.

torch.compile is the function that users look up most. Its source, its documentation and its home must stay torch's
own, and it must pickle by reference as any module-level function does. The control is a fresh interpreter without
torch_npu.
"""

# /// script
# [tool.conformance]
# rule = "import/identity/4"
# level = "must"
# matrix = { question = ["getsource", "getdoc", "getfile", "annotations", "home", "pickle", "copy", "wrapped"] }
# timeout = 60
# releases = ">=2.7.1"
# ///

import json

from harness import probe

SCRIPT = """
import copy, inspect, json, os, pickle, sys
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
question, with_npu = sys.argv[1:]
if with_npu == "yes":
    import torch_npu, torch._dynamo
f = torch.compile
answers = {
    "getsource": lambda: inspect.getsource(f)[:400],
    "getdoc": lambda: inspect.getdoc(f)[:400],
    "getfile": lambda: inspect.getsourcefile(f),
    "annotations": lambda: sorted(f.__annotations__),
    "home": lambda: (f.__module__, f.__qualname__, type(f).__name__, inspect.getmodule(f).__name__),
    "pickle": lambda: (pickle.dumps(f).hex(), pickle.loads(pickle.dumps(f)) is f),
    "copy": lambda: (copy.copy(f) is f, copy.deepcopy(f) is f),
    "wrapped": lambda: (inspect.unwrap(f) is f, sorted(vars(f))),
}
print(json.dumps(answers[question]()))
"""


def answer(with_npu):
    last_line = probe.python(SCRIPT, probe.param("question"), with_npu).stdout.splitlines()[-1]
    return json.loads(last_line)


probe.equal(answer("yes"), answer("no"), f"{probe.param('question')} of torch.compile")
