"""Every public name of the last release without lazy initialisation can still be had in each way that Python offers.

Deferring modules has lost names before, to be put back days later. The lists are the `__all__` of that release's
packages, without what torch has since dropped. Each name must be an attribute, be listed by dir(), come with
`from ... import` and with a star import, and each function and class must pickle by reference as it did: process pools
and checkpoints depend on it.
"""

# /// script
# [tool.conformance]
# level = "must"
# matrix = { packages = ["contrib", "others"] }
# timeout = 60
# releases = ">=2.12"
# ///

import importlib
import inspect
import pickle

import torch_npu
from harness import probe

CONTRIB = probe.param("packages") == "contrib"
FROZEN = {
    "torch_npu.npu": """
        are_compatible_impl_enabled BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor
        caching_allocator_alloc caching_allocator_delete can_device_access_peer change_current_allocator
        CharStorage CharTensor check_uce_in_memory clear_npu_overflow_flag config conv CubeMathType
        current_blas_handle current_device current_stream default_stream device device_count device_of
        disable_deterministic_with_backward DoubleStorage DoubleTensor empty_cache empty_virt_addr_cache
        enable_deterministic_with_backward Event ExternalEvent finalize_dump FloatStorage FloatTensor
        get_allocator_backend get_amp_supported_dtype get_autocast_dtype get_device_capability get_device_limit
        get_device_name get_device_properties get_mm_bmm_format_nd get_npu_overflow_flag
        get_per_process_memory_fraction get_rng_state get_rng_state_all get_stream_limit get_sync_debug_mode
        graph graph_pool_handle graph_task_group_begin graph_task_group_end graph_task_update_begin
        graph_task_update_end HalfStorage HalfTensor host_empty_cache host_memory_stats
        host_memory_stats_as_nested_dict init init_dump initial_seed IntStorage IntTensor ipc_collect
        is_autocast_enabled is_available is_bf16_supported is_current_stream_capturing is_initialized
        is_jit_compile_false LongStorage LongTensor make_graphed_callables manual_seed manual_seed_all matmul
        max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached
        memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary MemPool
        mstx NPUGraph NpuGraphOpHandler NPUPluggableAllocator obfuscation_calculate
        obfuscation_finalize obfuscation_initialize register_npu_graph_handler
        reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated
        reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats reset_stream_limit
        restart_device seed seed_all set_aoe set_autocast_dtype set_autocast_enabled set_compile_mode
        set_deterministic_level set_device set_device_limit set_dump set_mm_bmm_format_nd set_op_timeout_ms
        set_option set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream set_stream_limit
        set_sync_debug_mode ShortStorage ShortTensor stop_device stream Stream StreamContext stress_detect
        super_kernel_scope_begin super_kernel_scope_end synchronize SyncLaunchStream use_compatible_impl
        use_mem_pool utilization
    """,
    "torch_npu.npu.amp": """
        autocast custom_bwd custom_fwd GradScaler
    """,
    "torch_npu.distributed": """
        all_gather_into_tensor_uneven is_hccl_available reduce_scatter_tensor_uneven reinit_process_group
    """,
    "torch_npu.optim": """
        NpuFusedAdadelta NpuFusedAdam NpuFusedAdamP NpuFusedAdamW NpuFusedBertAdam NpuFusedLamb
        NpuFusedOptimizerBase NpuFusedRMSprop NpuFusedRMSpropTF NpuFusedSGD
    """,
    "torch_npu.profiler": """
        _ExperimentalConfig AiCMetrics ExportType HostSystem profile ProfilerAction ProfilerActivity
        ProfilerLevel schedule supported_activities supported_ai_core_metrics supported_export_type
        supported_profiler_level tensorboard_trace_handler
    """,
    "torch_npu.utils": """
        FlopsCounter get_cann_version get_part_combined_tensor is_combined_tensor_valid npu_combine_tensors
        reset_thread_affinity save_async set_thread_affinity
    """,
    "torch_npu.contrib": """
        ChannelShuffle Focus LabelSmoothingCrossEntropy LinearA8W8Quant LinearQuant
        LinearWeightQuant matmul_transpose ModulatedDeformConv MultiheadAttention npu_batched_multiclass_nms
        npu_bbox_coder_decode_xywh2xyxy npu_bbox_coder_encode_xyxy2xywh npu_bbox_coder_encode_yolo
        npu_fast_condition_index_put npu_fused_attention npu_fused_attention_with_layernorm npu_multiclass_nms
        npu_single_level_responsible_flags NpuCachedDropout NpuDropPath NpuFairseqDropout Prefetcher PSROIPool
        ROIAlign roll
    """,
}


def can_be_had(name, home):
    module = importlib.import_module(home)
    probe.check(name in dir(module), "dir() lists it")
    value = getattr(module, name)
    for statement in (f"from {home} import {name}", f"from {home} import *"):
        namespace = {}
        exec(statement, namespace)
        probe.same(namespace.get(name), value, f"what `{statement}` gives")
    if inspect.isfunction(value) or inspect.isclass(value):
        probe.same(pickle.loads(pickle.dumps(value)), value, "what comes out of pickle")


chosen = {home: names for home, names in FROZEN.items() if (home == "torch_npu.contrib") == CONTRIB}
probe.each([(name, home) for home, names in chosen.items() for name in names.split()], can_be_had)
probe.compilers_absent()
probe.device_untouched()
