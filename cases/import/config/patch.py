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

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness import probe

import torch
import torch_npu

import torch._inductor.config as config

KEYS = {"npu_backend": ("default", "dvm"), "enable_shape_handling": (False, True)}
if not hasattr(torch_npu._C, "_NPUShapeHandling"):  # a release without it has no key for it
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
                    probe.equal(read(), default, f"{key} in the inner scope")
                return read()
        case _:
            seen = []
            with probe.raises(ZeroDivisionError), config.patch(**{key: value}):
                seen.append(read())
                raise ZeroDivisionError
            return seen[0]


def patch(form, key):
    default, value = KEYS[key]
    probe.equal(inside(form, key), value, f"{key} inside the patch")
    probe.equal(getattr(config, key), default, f"{key} after the patch")
    probe.modules.absent("torch_npu._inductor")


wrong = {}
for form in ("context_keyword", "context_dict", "decorator", "nested", "after_exception"):
    for key in KEYS:
        # The first patch may make the keys known, so each gets a copy of the process.
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            error = pool.submit(patch, form, key).exception()
        if error is not None:
            wrong[f"{form} {key}"] = f"{type(error).__name__}: {error}"
probe.check(not wrong, "each form of patch sets the key inside and restores it", **wrong)
