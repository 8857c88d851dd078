"""torch._inductor.config.patch takes NPU keys before anything is compiled, in every form, and restores them.

patch is the scoped form of an assignment; test suites decorate functions with it at import time, when nothing has
compiled yet.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = {}
# timeout = 120
# releases = ">=2.10"
# ///

import itertools

from harness import probe
from cases import _subject as subject

import torch
import torch_npu

import torch._inductor.config as config

FORMS = ("context_keyword", "context_dict", "decorator", "nested", "after_exception")
KEYS = {"npu_backend": ("default", "dvm"), "enable_shape_handling": (False, True)}
if not subject.has_shape_handling():
    del KEYS["enable_shape_handling"]


def inside(form, key):
    default, value = KEYS[key]

    def read():
        return getattr(config, key)

    match form:
        case "context_keyword":
            with config.patch(**{key: value}):
                return read()
        case "context_dict":
            with config.patch({key: value, "max_autotune": True}):
                return read()
        case "decorator":
            return config.patch(**{key: value})(read)()
        case "nested":
            with config.patch(**{key: value}):
                with config.patch(**{key: default}):
                    probe.equal(read(), default, "the key in the inner scope")
                return read()
        case _:
            seen = []
            with probe.raises(ZeroDivisionError), config.patch(**{key: value}):
                seen.append(read())
                raise ZeroDivisionError
            return seen[0]


def patch(form, key):
    default, value = KEYS[key]
    probe.equal(inside(form, key), value, "the key inside the patch")
    probe.equal(getattr(config, key), default, "the key after the patch")
    probe.modules.absent("torch_npu._inductor")


probe.each(itertools.product(FORMS, KEYS), patch, forked=True)  # the first patch may make the keys known
