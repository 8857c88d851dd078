// Dumping of operator data, which is not simulated: the wheel links to these names, so they exist and each says by name that it
// does nothing.
#include "simnpu/core.h"

using namespace simnpu;

#define SIMNPU_NOT_SIMULATED(name, ...)                                                                                        \
    SIMNPU_EXPORT aclError name(__VA_ARGS__) {                                                                                 \
        SIMNPU_CALL(#name);                                                                                                    \
        return not_simulated();                                                                                                \
    }                                                                                                                          \
    static_assert(true)

SIMNPU_NOT_SIMULATED(aclmdlInitDump);
SIMNPU_NOT_SIMULATED(aclmdlSetDump, const char*);
SIMNPU_NOT_SIMULATED(aclmdlFinalizeDump);
