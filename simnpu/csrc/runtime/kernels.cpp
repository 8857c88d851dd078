// Kernel launches and dumps, which are not simulated: the wheel links to these names, so they exist and
// each says by name that it does nothing.
#include "simnpu/core.h"

#include "simnpu/cann.h"

using namespace simnpu;

#define SIMNPU_NOT_SIMULATED(name, ...)                                                                                        \
    SIMNPU_EXPORT aclError name(__VA_ARGS__) {                                                                                 \
        SIMNPU_CALL(#name);                                                                                                    \
        return not_simulated(#name);                                                                                           \
    }                                                                                                                          \
    static_assert(true)

SIMNPU_NOT_SIMULATED(aclrtBinaryLoadFromData, const void*, size_t, const aclrtBinaryLoadOptions*, aclrtBinHandle*);
SIMNPU_NOT_SIMULATED(aclrtBinaryGetFunction, const aclrtBinHandle, const char*, aclrtFuncHandle*);
SIMNPU_NOT_SIMULATED(aclrtGetFunctionAddr, aclrtFuncHandle, void**, void**);
SIMNPU_NOT_SIMULATED(rtDevBinaryRegister, const void*, void**);
SIMNPU_NOT_SIMULATED(rtFunctionRegister, void*, const void*, const char*, const void*, uint32_t);
SIMNPU_NOT_SIMULATED(rtKernelLaunch, const void*, uint32_t, void*, uint32_t, void*, void*);
SIMNPU_NOT_SIMULATED(rtGetC2cCtrlAddr, uint64_t*, uint32_t*);
// Dumping of operator data.
SIMNPU_NOT_SIMULATED(aclmdlInitDump);
SIMNPU_NOT_SIMULATED(aclmdlSetDump, const char*);
SIMNPU_NOT_SIMULATED(aclmdlFinalizeDump);
