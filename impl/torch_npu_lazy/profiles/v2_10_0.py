"""torch_npu 2.10.0 on torch 2.10.0: not lazy. One package file imports everything, eight modules of it load compilers,
and the patches of Dynamo are applied by it in one go.
"""

from __future__ import annotations

from torch_npu_lazy.profiles import LATER, Lazy, Profile
from torch_npu_lazy.profiles.steps import Call, Replace

PROFILE = Profile(
    patched=(
        "torch_npu",
        "torch_npu.distributed.distributed_c10d",
        "torch_npu.distributed.fsdp._add_fsdp_patch",
        "torch_npu.dynamo.trace_rule",
        "torch_npu.npu",
        "torch_npu.npu._graph_tree",
        "torch_npu.npu.graphs",
        "torch_npu.npu.streams",
        "torch_npu.npu.utils",
        "torch_npu.utils._dynamo",
        "torch_npu.utils._dynamo_device",
        "torch_npu.utils._graph_tree",
        "torch_npu.utils._npu_meta_registration",
        "torch_npu.utils.dlpack",
        "torch_npu.utils.patch_getenv",
    ),
    replaced=(
        "torch_npu._inductor",
        "torch_npu._inductor.config",
        "torch_npu.contrib.transfer_to_npu",
        "torch_npu.dynamo",
        "torch_npu.npu._graph_tree_state",
        "torch_npu.utils._backend_scope",
        "torch_npu.utils._forbid_in_graph",
        "torch_npu.utils._inductor",
        "torch_npu.utils._rng_prims_patch",
    ),
    lazy={
        "torch_npu.utils._dynamo": Lazy(
            when="torch._dynamo",
            early=True,
            public="""
                NPUAutocastModeVariable NPUTorchCtxManagerClassVariable NpuStreamContextVariable
                SkipFunctionVariable__new__ TensorVariable_call_method UserDefinedClassVariable__new__
                fake_record_stream patch_base_schedulernode patch_builtin_variable patch_event_variable_python_type
                patch_npu_stream_context patch_record_stream patch_user_defined_class_variable
            """,
        ),
        "torch_npu.utils._dynamo_device": Lazy(when="torch._dynamo", early=True, public="NpuInterface"),
        "torch_npu.utils._graph_tree": Lazy(
            idle="_apply_npugraph_tree_methods",
            public="NpugraphsBackend npugraphify npugraphs",
        ),
        "torch_npu.npu.npugraph_ex": Lazy(public="compile_fx inference register_replacement scope"),
    },
    redirects={
        "torch_npu.npu.deterministic": {"torch._dynamo.decorators": "torch_npu.utils._forbid_in_graph"},
        "torch_npu.utils._npu_meta_registration": {
            "torch._dynamo.exc": LATER,
            "torch._dynamo.symbolic_convert": LATER,
            "torch._dynamo.variables.lists": LATER,
            "torch._dynamo.variables.nn_module": LATER,
            "torch._inductor": ("decomposition",),
        },
    },
    dynamo={
        "device_interface": (Call("torch_npu.utils._dynamo:_dynamo_register_interface_for_device"),),
        "skip_function_variable": (
            Replace(
                "torch._dynamo.variables.functions:SkipFunctionVariable.__new__",
                by="torch_npu.utils._dynamo:SkipFunctionVariable__new__",
                original="__new__raw",
            ),
        ),
        "tensor_variable": (
            Replace(
                "torch._dynamo.variables.tensor:TensorVariable.call_method",
                by="torch_npu.utils._dynamo:TensorVariable_call_method",
                original="call_method_raw",
            ),
        ),
        "user_defined_class_variable": (
            Replace(
                "torch._dynamo.variables.user_defined:UserDefinedClassVariable.__new__",
                by="torch_npu.utils._dynamo:UserDefinedClassVariable__new__",
                original="__new__raw",
            ),
            Call(
                "torch_npu.utils._dynamo:patch_user_defined_class_variable",
                unless="torch._dynamo.variables.user_defined:UserDefinedClassVariable._in_graph_classes",
            ),
        ),
        "record_stream": (Call("torch_npu.utils._dynamo:patch_record_stream"),),
        "event_variable": (
            Call("torch_npu.utils._dynamo:patch_event_variable_python_type"),
            Call("torch_npu.utils._dynamo:patch_stream_operators"),
        ),
        "npu_stream_context": (Call("torch_npu.utils._dynamo:patch_npu_stream_context"),),
        "builtin_variable": (
            Call(
                "torch_npu.utils._dynamo:patch_builtin_variable",
                unless="torch._dynamo.variables.builtin:BuiltinVariable.call_id",
            ),
        ),
        "backends": (Call("torch_npu.dynamo:_register_backends"),),
        "trace_rules": (Call("torch_npu.dynamo.trace_rule:_patch_npu_trace_rules"),),
        "dynamo_optimize": (Call("torch_npu.utils._dynamo:patch_dynamo_optimize"),),
    },
    inductor={
        "has_triton": (Call("torch_npu.utils._dynamo:patch_has_triton"),),
        "scheduler_node": (
            Call(
                "torch_npu.utils._dynamo:patch_base_schedulernode",
                unless="torch._inductor.scheduler:BaseSchedulerNode.get_read_write_buffer_accesses",
            ),
        ),
    },
    cpu_counts_for_triton=True,
    backends={
        "npu": "torch_npu.dynamo:_npu_backend_entrypoint",
        "npugraph_ex": "torch_npu.dynamo:_npugraph_ex_backend_entrypoint",
        "npugraphs": "torch_npu.dynamo:_npugraphs_backend_entrypoint",
    },
)
