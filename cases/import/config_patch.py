"""torch._inductor.config.patch takes NPU keys before anything is compiled, in every form, and restores them.

patch is the scoped form of an assignment; test suites decorate functions with it at import time, when nothing has
compiled yet.
"""

# /// script
# [tool.conformance]
# rule = "import/config/3"
# level = "must"
# matrix = { form = ["context_keyword", "context_dict", "decorator", "nested", "after_exception"], key = [
#   "npu_backend", "enable_shape_handling",
# ] }
# timeout = 60
# releases = ">=2.13"
# ///

from harness import probe

import torch
import torch_npu

import torch._inductor.config as config

key = probe.param("key")
default, value = {"npu_backend": ("default", "dvm"), "enable_shape_handling": (False, True)}[key]


def read():
    return getattr(config, key)


def inside():
    match probe.param("form"):
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


try:
    found = inside()
except (AttributeError, KeyError) as error:
    found = f"{type(error).__name__}: {error}"
probe.equal(found, value, f"{key} inside the patch")
probe.equal(read(), default, f"{key} after the patch")
probe.modules.absent("torch_npu._inductor")
