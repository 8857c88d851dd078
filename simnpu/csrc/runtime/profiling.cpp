// The profiler. Its calls are checked and take their course (a session begins, starts, stops, ends), but nothing is measured: a
// session leaves no device data behind. The wheel makes the reporting calls whether a session runs or not.
#include "devices.h"
#include "errors.h"
#include "simnpu/core.h"

#if __has_include(<acl/acl_prof.h>)
#include <acl/acl_prof.h>
#else // older wheels ship no profiler headers
#include <cstddef>
#include <cstdint>
enum aclprofAicoreMetrics : int {};
enum aclprofConfigType : int {};
enum aclprofStepTag : int {};
struct aclprofAicoreEvents;
#endif

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
#include <mutex>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

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

struct aclprofConfig {
    std::vector<uint32_t> devices;
    uint64_t what;
};

struct aclprofStepInfo {
    bool started;
};

namespace {

struct Session {
    std::mutex mutex;
    bool begun = false;
    const aclprofConfig* running = nullptr;
    std::vector<const aclprofConfig*> configs;

    bool knows(const aclprofConfig* config) const {
        for (const auto* known : configs)
            if (known == config) return true;
        return false;
    }
};

Session& session() {
    static Session& instance = *new Session;
    return instance;
}

} // namespace

SIMNPU_EXPORT aclError aclprofInit(const char* path, size_t length) {
    SIMNPU_CALL("aclprofInit", "path=%.*s", static_cast<int>(path ? length : 0), path ? path : "");
    if (!path || length == 0) return fail(ACL_ERROR_INVALID_PARAM, "no path is given for the result");
    const std::string place(path, length);
    if (::access(place.c_str(), W_OK) != 0)
        return fail(ACL_ERROR_INVALID_FILE, "the result cannot be written to %s", place.c_str());
    auto& all = session();
    std::lock_guard lock(all.mutex);
    if (all.begun) return fail(ACL_ERROR_REPEAT_INITIALIZE, "a session is under way, end it with aclprofFinalize");
    all.begun = true;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclprofFinalize() {
    SIMNPU_CALL("aclprofFinalize");
    auto& all = session();
    std::lock_guard lock(all.mutex);
    if (!all.begun) return fail(ACL_ERROR_REPEAT_FINALIZE, "no session is under way (aclprofInit)");
    all.begun = false;
    all.running = nullptr;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclprofConfig* aclprofCreateConfig(uint32_t* devices, uint32_t count, aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                                 uint64_t what) {
    SIMNPU_CALL_OR(nullptr, "aclprofCreateConfig", "devices=%u what=%llx", count, static_cast<unsigned long long>(what));
    if (!devices && count > 0) {
        is_null("the list of devices", ACL_ERROR_INVALID_PARAM);
        return nullptr;
    }
    for (uint32_t i = 0; i < count; ++i)
        if (!valid_device(devices[i])) return nullptr;
    auto* config = new aclprofConfig{std::vector<uint32_t>(devices, devices + count), what};
    auto& all = session();
    std::lock_guard lock(all.mutex);
    all.configs.push_back(config);
    return config;
}

SIMNPU_EXPORT aclError aclprofDestroyConfig(const aclprofConfig* config) {
    SIMNPU_CALL("aclprofDestroyConfig", "config=%p", static_cast<const void*>(config));
    auto& all = session();
    std::lock_guard lock(all.mutex);
    if (!all.knows(config)) return fail(ACL_ERROR_INVALID_PARAM, "%p is no live configuration", static_cast<const void*>(config));
    if (all.running == config) all.running = nullptr;
    std::erase(all.configs, config);
    delete config;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclprofSetConfig(aclprofConfigType type, const char* value, size_t length) {
    SIMNPU_CALL("aclprofSetConfig", "type=%d value=%.*s", static_cast<int>(type), static_cast<int>(value ? length : 0), value ? value : "");
    if (!value) return is_null("the value", ACL_ERROR_INVALID_PARAM);
    return ACL_SUCCESS;
}

namespace {

aclError ready(const aclprofConfig* config) {
    auto& all = session();
    if (!all.begun) return fail(ACL_ERROR_PROF_NOT_RUN, "no session is under way (aclprofInit)");
    if (!all.knows(config)) return fail(ACL_ERROR_INVALID_PARAM, "%p is no live configuration", static_cast<const void*>(config));
    return ACL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT aclError aclprofWarmup(const aclprofConfig* config) {
    SIMNPU_CALL("aclprofWarmup", "config=%p", static_cast<const void*>(config));
    std::lock_guard lock(session().mutex);
    return ready(config);
}

SIMNPU_EXPORT aclError aclprofStart(const aclprofConfig* config) {
    SIMNPU_CALL("aclprofStart", "config=%p", static_cast<const void*>(config));
    auto& all = session();
    std::lock_guard lock(all.mutex);
    if (auto result = ready(config)) return result;
    if (all.running) return fail(ACL_ERROR_PROF_ALREADY_RUN, "the profiler runs already");
    all.running = config;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclprofStop(const aclprofConfig* config) {
    SIMNPU_CALL("aclprofStop", "config=%p", static_cast<const void*>(config));
    auto& all = session();
    std::lock_guard lock(all.mutex);
    if (auto result = ready(config)) return result;
    if (all.running != config) return fail(ACL_ERROR_PROF_NOT_RUN, "the profiler was not started with this configuration");
    all.running = nullptr;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclprofStepInfo* aclprofCreateStepInfo() {
    SIMNPU_CALL_OR(nullptr, "aclprofCreateStepInfo");
    return new aclprofStepInfo{};
}

SIMNPU_EXPORT void aclprofDestroyStepInfo(aclprofStepInfo* info) {
    SIMNPU_CALL_OR(, "aclprofDestroyStepInfo");
    delete info;
}

SIMNPU_EXPORT aclError aclprofGetStepTimestamp(aclprofStepInfo* info, aclprofStepTag, aclrtStream) {
    SIMNPU_CALL("aclprofGetStepTimestamp");
    if (!info) return is_null("the step", ACL_ERROR_INVALID_PARAM);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclprofMarkEx(const char* text, size_t length, aclrtStream) {
    SIMNPU_CALL("aclprofMarkEx");
    if (!text || length == 0) return fail(ACL_ERROR_INVALID_PARAM, "the text is empty");
    return ACL_SUCCESS;
}
