"""An odd finder in sys.meta_path has the effect on `import torch._dynamo` that it has without torch_npu.

Some finders predate find_spec, some raise, some look other names up while they answer. Whatever Python makes of them,
the trigger must not turn it into another error, swallow it, or recurse. The control is a fresh interpreter in which
torch_npu is not imported.
"""

# /// script
# [tool.conformance]
# rule = "import/trigger/10"
# level = "must"
# matrix = { finder = ["without_find_spec", "raises_import_error", "raises_key_error", "looks_up_again"], place = [
#   "front", "behind",
# ] }
# timeout = 60
# releases = ">=2.7.1"
# ///

from harness import probe

SCRIPT = """
import os, sys, warnings
warnings.simplefilter("ignore")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
kind, place, with_npu = sys.argv[1:]
if with_npu == "yes":
    import torch_npu

class WithoutFindSpec:
    pass

class Raises:
    error = KeyError if kind == "raises_key_error" else ImportError
    def find_spec(self, name, path=None, target=None):
        if name == "torch._dynamo":
            raise self.error("the finder's own message")

class LooksUpAgain:
    busy = False
    def find_spec(self, name, path=None, target=None):
        if name == "torch._dynamo" and not self.busy:
            import importlib.util
            self.busy = True
            try:
                return importlib.util.find_spec(name)
            finally:
                self.busy = False

finder = {"without_find_spec": WithoutFindSpec, "looks_up_again": LooksUpAgain}.get(kind, Raises)()
sys.meta_path.insert(0 if place == "front" else len(sys.meta_path) - 1, finder)
try:
    import torch._dynamo
except Exception as error:
    print("outcome:", type(error).__name__, error)
else:
    print("outcome:", torch._dynamo.__name__, "imported")
if with_npu == "yes" and "torch._dynamo" in sys.modules:
    print("setup:", torch_npu.utils._dynamo._lazy_dynamo_setup.has_run)
"""

kind, place = probe.param("finder"), probe.param("place")
plain = probe.python(SCRIPT, kind, place, "no").stdout.splitlines()
with_npu = probe.python(SCRIPT, kind, place, "yes").stdout.splitlines()

outcome = [line for line in with_npu if line.startswith("outcome:")]
probe.equal(outcome, plain, "outcome of `import torch._dynamo` with the finder in place")
if plain == ["outcome: torch._dynamo imported"]:
    probe.check("setup: True" in with_npu, "NPU setup has run", output=with_npu)
