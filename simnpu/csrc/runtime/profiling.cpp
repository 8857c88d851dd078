// The profiler's reporting calls. The wheel makes them whether a profiler runs or not; the simulator profiles nothing.
#include "simnpu/core.h"

#if __has_include(<profiling/aprof_pub.h>)
#include <profiling/aprof_pub.h>
#else // older wheels ship no profiler headers
#include <cstddef>
#include <cstdint>
using ProfCommandHandle = int32_t (*)(uint32_t type, void* data, uint32_t length);
using VOID_PTR = void*;
struct MsprofApi;
#endif

#include <time.h>

#include <functional>
#include <string_view>

using namespace simnpu;

SIMNPU_EXPORT int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle) {
    SIMNPU_CALL_ALWAYS("MsprofRegisterCallback", "module=%u", moduleId);
    return 0;
}

SIMNPU_EXPORT int32_t MsprofReportApi(uint32_t, const struct MsprofApi*) {
    SIMNPU_CALL_ALWAYS("MsprofReportApi");
    return 0;
}

SIMNPU_EXPORT int32_t MsprofReportCompactInfo(uint32_t, const VOID_PTR, uint32_t) {
    SIMNPU_CALL_ALWAYS("MsprofReportCompactInfo");
    return 0;
}

SIMNPU_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t, const VOID_PTR, uint32_t) {
    SIMNPU_CALL_ALWAYS("MsprofReportAdditionalInfo");
    return 0;
}

SIMNPU_EXPORT uint64_t MsprofGetHashId(const char* info, size_t length) {
    SIMNPU_CALL_SITE_(0, true, "MsprofGetHashId");
    return info ? std::hash<std::string_view>()(std::string_view(info, length)) : 0;
}

SIMNPU_EXPORT uint64_t MsprofSysCycleTime() {
    SIMNPU_CALL_SITE_(0, true, "MsprofSysCycleTime");
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}
