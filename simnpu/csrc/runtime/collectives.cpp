// Collectives between processes are not simulated yet. Wheels of older releases link to these names, so they exist and each says
// so; newer ones look them up, and find them here as well.
#include "simnpu/core.h"

using namespace simnpu;

namespace {
constexpr int32_t kHcclNotSupported = 5; // HCCL_E_NOT_SUPPORT
}

// No parameters: whatever is passed is not looked at.
#define SIMNPU_NO_COLLECTIVE(name)                                                                                             \
    SIMNPU_EXPORT int32_t name() {                                                                                             \
        SIMNPU_CALL_OR(kHcclNotSupported, #name);                                                                              \
        not_simulated(#name);                                                                                                  \
        return kHcclNotSupported;                                                                                              \
    }                                                                                                                          \
    static_assert(true)

SIMNPU_NO_COLLECTIVE(HcclAllGather);
SIMNPU_NO_COLLECTIVE(HcclAllReduce);
SIMNPU_NO_COLLECTIVE(HcclBroadcast);
SIMNPU_NO_COLLECTIVE(HcclCommDestroy);
SIMNPU_NO_COLLECTIVE(HcclCommInitAll);
SIMNPU_NO_COLLECTIVE(HcclCommInitRootInfo);
SIMNPU_NO_COLLECTIVE(HcclGetRootInfo);
SIMNPU_NO_COLLECTIVE(HcclRecv);
SIMNPU_NO_COLLECTIVE(HcclReduceScatter);
SIMNPU_NO_COLLECTIVE(HcclSend);
