"""Every way to import npugraph_ex and its child modules gives the same objects, and runs each module body once.

The top-level name is a stand-in until someone imports it for real. Whichever spelling comes first,
`npugraph_ex.compile_fx` and `npugraph_ex.npu_fx_compiler.compile_fx` must be one function: with two copies of a
child, what a user patches or checks with isinstance is not what the backend runs.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { first = ["import", "from_package", "child", "real_name"] }
# timeout = 60
# releases = ">=2.10"
# ///

import torch_npu
from harness import probe

probe.modules.absent("torch_npu.dynamo.npugraph_ex")

match probe.param("first"):
    case "import":
        import npugraph_ex
    case "from_package":
        from npugraph_ex import CompilerConfig
    case "child":
        import npugraph_ex.npu_fx_compiler
    case "real_name":
        import torch_npu.dynamo.npugraph_ex

import npugraph_ex
import npugraph_ex.npu_fx_compiler as child
import torch_npu.dynamo.npugraph_ex as package
from npugraph_ex import CompilerConfig
from npugraph_ex.npu_fx_compiler import compile_fx

probe.same(CompilerConfig, package.CompilerConfig, "CompilerConfig by both names")
probe.same(npugraph_ex.CompilerConfig, CompilerConfig, "CompilerConfig as an attribute")
probe.same(npugraph_ex.npu_fx_compiler, child, "child as an attribute of npugraph_ex")
probe.same(package.npu_fx_compiler, child, "child as an attribute of the package inside torch_npu")
probe.same(compile_fx, child.compile_fx, "compile_fx by both spellings")
probe.same(npugraph_ex.compile_fx, compile_fx, "compile_fx of the package and of its child")
probe.modules.absent("torch_npu._inductor")
probe.modules.left_to_torch("triton")
