"""An Inductor wrapper carries the same attributes as without torch_npu, whether it was built, refused or compared.

Wrappers are compared to decide whether a function must be compiled again, and copied into caches. Notes that the
NPU's patches leave on the object would show up there. The control builds the same wrapper without torch_npu.
"""

# /// script
# [tool.conformance]
# rule = "import/wrapper/3"
# level = "must"
# matrix = { built = ["plain", "mode", "options", "name_positional", "name_keyword", "after_refusal", "equality"] }
# timeout = 60
# releases = ">=2.12"
# ///

import json

from harness import probe

SCRIPT = """
import json, os, sys
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
built, with_npu = sys.argv[1:]
if with_npu == "yes":
    import torch_npu
Wrapper = torch._TorchCompileInductorWrapper
if built == "plain":
    answer = vars(Wrapper("default", None, None))
elif built == "mode":
    answer = vars(Wrapper("max-autotune", None, True))
elif built == "options":
    answer = vars(Wrapper(None, {"max-autotune": True, "epilogue_fusion": False}, False))
elif built == "name_positional":
    answer = vars(Wrapper("default", None, None, "region"))
elif built == "name_keyword":
    answer = vars(Wrapper(mode="default", options=None, dynamic=None, name="region"))
elif built == "after_refusal":
    wrapper = Wrapper.__new__(Wrapper)
    try:
        wrapper.__init__("default", {"max_autotune": True, "no_such": 1}, None)
    except RuntimeError as error:
        answer = [str(error)[:45], vars(wrapper)]
else:
    make = lambda **options: Wrapper("default", options or None, None)
    answer = [make() == make(), make(max_autotune=True) == make(), make(max_autotune=True) == make(max_autotune=True)]
print(json.dumps(answer, default=repr, sort_keys=True))
"""


def answer(with_npu):
    last_line = probe.python(SCRIPT, probe.param("built"), with_npu).stdout.splitlines()[-1]
    return json.loads(last_line)


probe.equal(answer("yes"), answer("no"), f"state of the wrapper ({probe.param('built')})")
