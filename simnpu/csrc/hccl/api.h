// HCCL's C interface as the installed wheel declares it, and how its entry points report errors.
#pragma once

#include "simnpu/core.h"

// Wheels disagree about a const in these two, so their declarations step aside for the simulator's own.
#define HcclAllGatherV HcclAllGatherV_as_declared
#define HcclReduceScatterV HcclReduceScatterV_as_declared
#include "third_party/hccl/inc/hccl/hccl.h"
#undef HcclAllGatherV
#undef HcclReduceScatterV

#include <cstdint>

namespace simnpu::hccl {

// Keeps the text for aclGetRecentErrMsg of this thread, as fail() does, and returns `code`.
HcclResult refuse(HcclResult code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// SIMNPU_FAULT gives codes of either interface; this one knows only its own.
inline HcclResult refusal_of(const Call& call) {
    const aclError code = call.refusal();
    return code > 0 && code < HCCL_E_RESERVED ? static_cast<HcclResult>(code) : HCCL_E_INTERNAL;
}

size_t size_of(uint32_t type); // bytes per element; 0 if unknown
const char* type_name(uint32_t type);
const char* reduction_name(uint32_t op);

} // namespace simnpu::hccl

// At the top of every entry point that returns an HcclResult.
#define HCCL_CALL(...) SIMNPU_CALL_OR(::simnpu::hccl::refusal_of(simnpu_call_), __VA_ARGS__)
