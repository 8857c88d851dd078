"""When NPU Inductor fails to load once, the call that needed it says why, and the next call loads it and works.

A file system that is away for a moment must not cost the process its compiler. Until the second try nothing may count
as set up, and the choice of a code generator is the user's again. Needed by a compiled function, by backend npugraphs,
and by the scope that a compile opens. Where a generator is chosen it is a recorder, as is torch's part of Inductor.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 240
# releases = ">=2.10"
# ///

import importlib.util
import itertools
import sys
from importlib.abc import Loader
from importlib.machinery import PathFinder

from harness import probe
from cases import _subject as subject

CAUSE = "the disk with the code generators is away"

import torch
import torch_npu

subject.fake_compile_fx(lambda *_, **__: None)
tries = []


class Recorder(Loader):
    """In place of NPU Inductor."""

    def exec_module(self, module):
        module._load_backend = lambda: tries.append(subject.generator())


class FailsOnce:
    """Finds NPU Inductor, the wheel's or a recorder; its body fails the first time."""

    real = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch_npu._inductor":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if not self.real:
            spec = importlib.util.spec_from_loader(name, Recorder())
        execute = spec.loader.exec_module

        def exec_module(module):
            tries.append(subject.generator())
            if len(tries) == 1:
                raise OSError(CAUSE)
            execute(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, FailsOnce())


def function(x):
    return x * 2 + 1


def by_call():
    compiled = torch.compile(function, options={"npu_backend": "some_generator"}, fullgraph=True)
    x = torch.arange(4.0)
    return lambda: probe.close(compiled(x.npu()), function(x), "result of the compiled function")


def by_npugraphs():
    FailsOnce.real = True  # whose parts the graphs use
    compiled = torch.compile(function, backend="npugraphs", fullgraph=True)
    x = torch.arange(4.0)
    return lambda: probe.close(compiled(x.npu()), function(x), "result of the function compiled for graphs")


def by_scope():
    def enter():
        with subject.generator_scope("some_generator"):
            probe.equal(subject.generator(), "some_generator", "the generator in the scope")

    return enter


def messages(error):
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


def state():
    return {
        "Inductor setup has run": subject.inductor_setup.has_run,
        "NPU Inductor is initialised": subject.inductor_is_loaded(),
        "generator": subject.generator(),
    }


def judge(way, before):
    subject.set_generator(before)
    use = way()
    probe.equal(tries, [], "tries to load before the first use")
    with probe.raises(Exception) as caught:
        use()
    told = [*messages(caught.value)]
    probe.check(any(CAUSE in each for each in told), "the error tells the cause", told=told)
    expected = {"Inductor setup has run": False, "NPU Inductor is initialised": False, "generator": before}
    probe.equal(state(), expected, "state after the failure")
    probe.close(function(torch.ones(2).npu()), torch.full((2,), 3.0), "eager code after the failure")
    use()
    wanted = before if way is by_npugraphs else "some_generator"
    probe.equal(tries, [wanted] * 2, "generators that were tried")
    expected = {"Inductor setup has run": True, "NPU Inductor is initialised": True, "generator": before}
    probe.equal(state(), expected, "state after the second use")


probe.each(itertools.product((by_call, by_npugraphs, by_scope), (None, "default")), judge, forked=True)
