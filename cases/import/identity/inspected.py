"""What inspect, pickle and copy say about torch.compile is what they say without torch_npu.

torch.compile is the function that users look up most. Its source, its documentation and its home must stay torch's
own, and it must pickle by reference as any module-level function does. The control is the same
interpreter before `import torch_npu`.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 60
# releases = ">=2.7.1"
# ///

import copy
import inspect
import pickle

from harness import probe

import torch

QUESTIONS = {
    "getsource": lambda f: inspect.getsource(f)[:400],
    "getdoc": lambda f: inspect.getdoc(f)[:400],
    "getfile": inspect.getsourcefile,
    "annotations": lambda f: sorted(f.__annotations__),
    "home": lambda f: (f.__module__, f.__qualname__, type(f).__name__, inspect.getmodule(f).__name__),
    "pickle": lambda f: (pickle.dumps(f).hex(), pickle.loads(pickle.dumps(f)) is f),
    "copy": lambda f: (copy.copy(f) is f, copy.deepcopy(f) is f),
    "wrapped": lambda f: (inspect.unwrap(f) is f, sorted(vars(f))),
}


plain = {question: ask(torch.compile) for question, ask in QUESTIONS.items()}

import torch_npu
import torch._dynamo


def judge(question):
    probe.equal(QUESTIONS[question](torch.compile), plain[question], "the answer about torch.compile")


probe.each(list(QUESTIONS), judge)
