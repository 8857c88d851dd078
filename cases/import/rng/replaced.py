"""`import torch_npu` itself puts the NPU forms of torch's RNG primitives and of the unpool decomposition in place.

They belong to eager work and to torch.export's tables as much as to the compiler, so they may not wait for one. Looks
at torch's attributes before anything below torch_npu is imported by hand: an import of the patching module would hide
that nothing else loads it.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 60
# releases = ">=2.7.1"
# ///

import torch
import torch_npu
from harness import probe
from torch._prims import rng_prims
from torch._subclasses.fake_tensor import FakeTensorMode

replaced = {
    "philox_rand_offset": rng_prims.philox_rand_offset,
    "register_philox_rand": rng_prims.register_philox_rand,
    "get_device": rng_prims.get_device,
    "_max_unpoolnd": torch._decomp.decompositions._max_unpoolnd,
}
homes = {name: function.__module__.partition(".")[0] for name, function in replaced.items()}
probe.equal(homes, dict.fromkeys(replaced, "torch_npu"), "packages that the functions come from")
key = torch._C.DispatchKey.PrivateUse1
for name in ("run_and_save_rng_state", "run_with_rng_state"):
    operator = getattr(rng_prims, name)
    probe.check(key in operator.py_kernels, f"{name} has a kernel for the NPU's dispatch key")
    probe.check(FakeTensorMode in operator.python_key_table, f"{name} has a rule for fake tensors")
probe.compilers_absent()
probe.device_untouched()
