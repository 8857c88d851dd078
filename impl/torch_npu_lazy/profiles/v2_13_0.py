"""torch_npu 2.13.0 on torch 2.13.0: lazy already, with a package `_init` that imports, registers and patches."""

from __future__ import annotations

from torch_npu_lazy.profiles import LATER, Lazy, Profile
from torch_npu_lazy.profiles.steps import Call

PROFILE = Profile(
    patched=(
        "torch_npu._init.core._exports",
        "torch_npu._init.core.module_loader",
        "torch_npu._init.patches.distributed_patches",
        "torch_npu._init.patches.monkey_patches",
        "torch_npu._init.patches.warning_patches",
        "torch_npu._init.registry.registry_manager",
        "torch_npu._logging._internal",
        "torch_npu.contrib",
        "torch_npu.distributed",
        "torch_npu.distributed.distributed_c10d",
        "torch_npu.distributed.fsdp._add_fsdp_patch",
        "torch_npu.dynamo",
        "torch_npu.dynamo.trace_rule",
        "torch_npu._inductor",
        "torch_npu._inductor.lowering",
        "torch_npu._inductor.lowering_patch",
        "torch_npu.npu",
        "torch_npu.npu._graph_tree",
        "torch_npu.npu._graph_tree_state",
        "torch_npu.npu.streams",
        "torch_npu.npu.utils",
        "torch_npu.utils._dynamo",
        "torch_npu.utils.collect_env",
        "torch_npu.utils.dlpack",
        "torch_npu.utils.patch_flexattention",
    ),
    replaced=(
        "torch_npu._inductor.experimental.python_wrapper_fast_launch.patch",
        "torch_npu.contrib.transfer_to_npu",
        "torch_npu.utils._backend_scope",
        "torch_npu.utils._inductor",
        "torch_npu.utils._rng_prims_patch",
    ),
    # Python code that most processes never use. Nothing here must stay out; it must not be paid for by everybody.
    lazy={
        "torch_npu.contrib": Lazy(
            open=True,
            public="""
                ChannelShuffle Focus LabelSmoothingCrossEntropy LinearA8W8Quant LinearQuant LinearWeightQuant
                ModulatedDeformConv MultiheadAttention NpuCachedDropout NpuDropPath NpuFairseqDropout PSROIPool
                Prefetcher ROIAlign fuse_add_softmax_dropout function matmul_transpose module
                npu_batched_multiclass_nms npu_bbox_coder_decode_xywh2xyxy npu_bbox_coder_encode_xyxy2xywh
                npu_bbox_coder_encode_yolo npu_fast_condition_index_put npu_fused_attention
                npu_fused_attention_with_layernorm npu_multiclass_nms npu_single_level_responsible_flags roll
            """,
            apart=("transfer_to_npu",),
        ),
        # DTensor brings sympy, 500 modules and half a second.
        "torch_npu.distributed.tensor": Lazy(
            when="torch.distributed.tensor", open=True, public="experimental", quiet=True
        ),
        "torch_npu.distributed.rendezvous": Lazy(open=True),
        # Inductor's pattern matcher, which brings all of Inductor.
        "torch_npu.npu.npugraph_ex": Lazy(open=True, public="compile_fx register_replacement", quiet=True),
        "torch_npu.optim": Lazy(
            open=True,
            public="""
                NpuFusedAdadelta NpuFusedAdam NpuFusedAdamP NpuFusedAdamW NpuFusedBertAdam NpuFusedLamb
                NpuFusedOptimizerBase NpuFusedRMSprop NpuFusedRMSpropTF NpuFusedSGD
            """,
        ),
        "torch_npu.profiler": Lazy(
            open=True,
            public="""
                AiCMetrics ExportType HostSystem ProfilerAction ProfilerActivity ProfilerLevel _ExperimentalConfig
                profile schedule supported_activities supported_ai_core_metrics supported_export_type
                supported_profiler_level tensorboard_trace_handler
            """,
            apart=("_add_metadata_sanitizer_patch", "_add_mstx_patch"),
        ),
    },
    dynamo={
        "device_interface": (
            Call("torch_npu.utils._dynamo:_dynamo_register_interface_for_device"),
            Call("torch_npu.utils._dynamo:register_npu_current_stream_handler"),
        ),
        "user_defined_class_variable": (
            Call(
                "torch_npu.utils._dynamo:patch_user_defined_class_variable",
                unless="torch._dynamo.variables.user_defined:UserDefinedClassVariable.__new__",
            ),
        ),
        "stream_event_variable": (Call("torch_npu.utils._dynamo:patch_stream_event_variable_python_type"),),
        "npu_stream_context": (Call("torch_npu.utils._dynamo:patch_npu_stream_context"),),
        "builtin_variable": (
            Call(
                "torch_npu.utils._dynamo:patch_builtin_variable",
                unless="torch._dynamo.variables.builtin:BuiltinVariable.call_id",
            ),
        ),
        "backends": (Call("torch_npu.dynamo:_register_backends"),),
        "trace_rules": (Call("torch_npu.dynamo.trace_rule:_patch_npu_trace_rules"),),
        "graphsafe_rng": (Call("torch_npu.utils._dynamo:register_npu_graphsafe_rng"),),
        "dynamo_optimize": (Call("torch_npu.utils._dynamo:patch_dynamo_optimize"),),
    },
    dotted={
        "torch": "numa",
        "torch.cuda": "_pin_memory_utils",
        "torch.distributed": """
            _composable _composable_state _functional_collectives _functional_collectives_impl _local_tensor
            _shard _state_dict_utils _symmetric_memory _tensor argparse_util checkpoint elastic fsdp launcher nn
            run tensor
        """,
        "torch.distributed._tensor": "placement_types",
        "torch.distributed.algorithms": "_checkpoint _comm_hooks",
        "torch.distributed.algorithms._checkpoint": "checkpoint_wrapper",
        "torch.distributed.elastic": "agent events metrics multiprocessing rendezvous timer utils",
        "torch.distributed.elastic.agent": "server",
        "torch.distributed.elastic.agent.server": "api health_check_server local_elastic_agent",
        "torch.distributed.elastic.events": "api handlers",
        "torch.distributed.elastic.metrics": "api",
        "torch.distributed.elastic.multiprocessing": "api errors redirects subprocess_handler tail_log",
        "torch.distributed.elastic.multiprocessing.errors": "error_handler handlers",
        "torch.distributed.elastic.multiprocessing.subprocess_handler": "handlers subprocess_handler",
        "torch.distributed.elastic.rendezvous": "api dynamic_rendezvous registry utils",
        "torch.distributed.elastic.timer": "api debug_info_logging file_based_local_timer local_timer",
        "torch.distributed.elastic.utils": "api distributed log_level logging process_state store",
        "torch.distributed.fsdp": "sharded_grad_scaler",
        "torch.distributed.tensor": "_shards_wrapper",
        "torch.distributed.tensor.parallel": "_data_parallel_utils fsdp",
        "torch.fx.experimental": "_size_hinting recording symbolic_shapes",
        "torch.nn.attention": "_utils flex_attention",
        "torch.numa": "binding",
        "torch.testing._internal": "distributed",
        "torch.testing._internal.distributed": "fake_pg",
        "torch.utils": "_sympy",
        "torch.utils._sympy": "functions interp numbers printers singleton_int solve symbol value_ranges",
    },
    allowing=("torch.distributed.tensor",),
    shape_handling=True,
    generators={
        "ascendc": (
            Call("torch_npu._inductor.deterministic_cache:patch_npu_deterministic_level_cache_keys"),
            Call("torch_npu.dynamo._deterministic_guard:install_npu_deterministic_level_guard"),
        ),
    },
    redirects={
        # So that an interface of the user's own stays.
        "torch_npu._inductor.ascend_npu_ir.ascend_npu_ir.npu.npu_inductor_plugin": {
            "torch._dynamo.device_interface": "torch_npu.utils._dynamo",
        },
        "torch_npu._inductor.triton_experimental.device": {
            "torch._dynamo.device_interface": "torch_npu.utils._dynamo",
        },
        "torch_npu._compat.distributed": {
            "torch.distributed._shard.sharded_tensor": LATER,
            "torch.distributed.tensor._ops._matrix_ops": LATER,
            "torch.distributed.tensor._ops.utils": LATER,
            "torch_npu.distributed.tensor._sharded_tensor_patch": LATER,
        },
        "torch_npu._init.patches.distributed_patches": {"torch.distributed.launcher.api": "torch"},
        "torch_npu._init.patches.monkey_patches": {
            "torch_npu.contrib.function": LATER,
            "torch_npu.contrib.module": LATER,
        },
        "torch_npu.asd.asd": {"torch.distributed.tensor": LATER},
        "torch_npu.distributed.distributed_c10d": {"torch.distributed.elastic.rendezvous": LATER},
        # The old names bring checkpoints and FSDP along, which may be what is just importing DTensor.
        "torch_npu.distributed.tensor._attention": {
            "torch.distributed._tensor.experimental": "torch.distributed.tensor.experimental",
            "torch.distributed._tensor.placement_types": "torch.distributed.tensor._dtensor_spec",
        },
        "torch_npu.distributed.tensor._matrix_ops": {
            "torch.distributed._tensor.experimental": "torch.distributed.tensor.experimental",
        },
        "torch_npu.distributed.tensor._moe_ops": {
            "torch.distributed._tensor": "torch.distributed.tensor",
            "torch.distributed._tensor.experimental": "torch.distributed.tensor.experimental",
        },
    },
)
