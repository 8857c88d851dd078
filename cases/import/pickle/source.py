"""A Dynamo source is pickled from its own fields, without the hash that it caches, whenever its class was made.

Guards travel in caches from one process to another, where strings hash differently: a source that brings its old hash
along is not found again, and everything is compiled once more. Classes made before torch_npu was imported count, too.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import importlib
import pickle
import sys

from harness import probe

import torch


def judge(*order):
    for name in order:
        importlib.import_module(name)
    source_module = sys.modules["torch._dynamo.source"]
    source = source_module.AttrSource(source_module.LocalSource("x"), "shape")
    hash(source)  # now the hash is cached
    copy = pickle.loads(pickle.dumps(source))
    what = " then ".join(order)
    probe.equal(copy, source, f"the copy ({what})")
    probe.equal({source: "found"}.get(copy), "found", f"look-up by the copy ({what})")
    made_again = type(source)(*source.__reduce__()[1])
    probe.equal(made_again, source, f"a source made from the pickled fields ({what})")
    return pickle.dumps(source).hex()


pickled = [
    probe.forked(judge, "torch._dynamo.source", "torch_npu"),
    probe.forked(judge, "torch_npu", "torch._dynamo.source"),
]
read = """
import pickle, sys
import torch_npu
from torch._dynamo.source import AttrSource, LocalSource
made_here = AttrSource(LocalSource("x"), "shape")
for text in sys.argv[1:]:
    print({made_here: "found"}.get(pickle.loads(bytes.fromhex(text))))
"""
# With another seed strings have other hashes, as in any other process of a user.
done = probe.python(read, *pickled, env={"PYTHONHASHSEED": "4711"})
probe.equal(done.stdout.split(), ["found", "found"], "look-ups of the pickled sources in another process")
