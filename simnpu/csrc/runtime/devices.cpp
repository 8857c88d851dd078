#include "devices.h"

#include "config.h"
#include "errors.h"
#include "memory.h"
#include "simnpu/core.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace simnpu {
namespace {

thread_local std::weak_ptr<Context> t_context;
thread_local bool t_had_context = false;

} // namespace

Machine& machine() {
    static Machine& instance = *new Machine;
    return instance;
}

void freeze(Machine& all) {
    if (all.frozen) return;
    all.visible = visible_devices().physical;
    all.devices.resize(all.visible.size());
    all.frozen = true;
}

void make_current(const std::shared_ptr<Context>& context) {
    t_context = context;
    t_had_context = true;
}

HandleTable<Context>& contexts() {
    static HandleTable<Context>& table = *new HandleTable<Context>(0x51);
    return table;
}

std::shared_ptr<Context> current_context() {
    if (auto context = t_context.lock()) return context;
    fail(ACL_ERROR_RT_CONTEXT_NULL,
         t_had_context ? "the context of this thread is gone (destroyed, or its device was reset); call aclrtSetDevice again"
                       : "this thread has no device yet; call aclrtSetDevice first");
    return nullptr;
}

namespace {

VisibleDevices visible_now() {
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    return all.frozen ? VisibleDevices{all.visible} : visible_devices();
}

aclError check_order(const VisibleDevices& visible) {
    if (visible.ascending) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_NO_DEVICE, "ASCEND_RT_VISIBLE_DEVICES=%s must be configured in ascending order, each device once",
                std::getenv("ASCEND_RT_VISIBLE_DEVICES"));
}

} // namespace

bool valid_device(int64_t device) {
    const auto visible = visible_now();
    if (check_order(visible)) return false;
    const auto count = static_cast<int32_t>(visible.physical.size());
    if (device >= 0 && device < count) return true;
    fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %lld, only %d (SIMNPU_DEVICES, ASCEND_RT_VISIBLE_DEVICES)",
         static_cast<long long>(device), count);
    return false;
}

bool reaches(int32_t device, int32_t other) {
    return device == other || machine().peers[static_cast<size_t>(device)][static_cast<size_t>(other)];
}

std::optional<OutOfReach> out_of_reach(const void* p) {
    Allocation found;
    const auto context = t_context.lock();
    if (!context || !address_space().at(reinterpret_cast<uintptr_t>(p), found)) return std::nullopt;
    if (!found.on_device() || reaches(context->device, found.device)) return std::nullopt;
    return OutOfReach{context->device, found.device};
}

namespace {

// aclrtDevAttr by value: the names came one by one over the releases.
enum DeviceAttribute {
    kAiCpuAttribute = 1,
    kAiCoreAttribute = 101,
    kCubeAttribute = 102,
    kVectorAttribute = 201,
    kMemoryAttribute = 301,
    kL2Attribute = 302,
    kChipAttribute = 402,
    kVirtualAttribute = 501,
};

bool device_info(aclrtDevAttr attr, int32_t device, int64_t& value) {
    switch (static_cast<int>(attr)) {
    case kAiCpuAttribute: value = kAiCpuCores; return true;
    case kAiCoreAttribute:
    case kCubeAttribute: value = kCubeCores; return true;
    case kVectorAttribute: value = kVectorCores; return true;
    case kMemoryAttribute: value = static_cast<int64_t>(config().memory); return true;
    case kL2Attribute: value = kL2Bytes; return true;
    case kChipAttribute:
 value = visible_now().physical[static_cast<size_t>(device)]; return true;
    case kVirtualAttribute: value = 0; return true; // no part of a divided device
    default: return false;
    }
}

aclError set_peer_access(int32_t peer, bool enabled) {
    if (!valid_device(peer)) return thread_errors().last;
    FIND_OR_RETURN(context, current_context());
    if (context->device == peer) return fail(ACL_ERROR_RT_PARAM_INVALID, "device %d is the current device itself", peer);
    machine().peers[static_cast<size_t>(context->device)][static_cast<size_t>(peer)] = enabled;
    return ACL_SUCCESS;
}

bool known_option(aclSysParamOpt option) {
    return static_cast<int>(option) >= 0 && static_cast<size_t>(option) < machine().options.size();
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtGetDeviceCount(uint32_t* count) {
    SIMNPU_CALL("aclrtGetDeviceCount");
    if (!count) return is_null("the result pointer");
    const auto visible = visible_now();
    if (auto result = check_order(visible)) return result;
    *count = static_cast<uint32_t>(visible.physical.size());
    return ACL_SUCCESS;
}

// The driver's own count, before ASCEND_RT_VISIBLE_DEVICES: torch_npu asks it first. No header of the wheel declares it.
SIMNPU_EXPORT int drvGetDevNum(uint32_t* count) {
    SIMNPU_CALL_ALWAYS("drvGetDevNum");
    if (!count) return is_null("the result pointer");
    *count = config().devices;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetDevice(int32_t* deviceId) {
    SIMNPU_CALL("aclrtGetDevice");
    if (!deviceId) return is_null("the result pointer");
    FIND_OR_RETURN(context, current_context());
    *deviceId = context->device;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetCurrentContext(aclrtContext handle) {
    SIMNPU_CALL("aclrtSetCurrentContext", "context=%p", handle);
    auto context = contexts().find(handle);
    if (!context) return fail(ACL_ERROR_RT_CONTEXT_NULL, "%p is no live context (destroyed, or its device reset)", handle);
    make_current(context);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetCurrentContext(aclrtContext* out) {
    SIMNPU_CALL("aclrtGetCurrentContext");
    if (!out) return is_null("the result pointer");
    *out = nullptr;
    FIND_OR_RETURN(context, current_context());
    *out = context->handle;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
    SIMNPU_CALL("aclrtGetPrimaryCtxState", "device=%d", deviceId);
    if (!active) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    if (flags) *flags = 0;
    *active = all.frozen && all.devices[static_cast<size_t>(deviceId)].primary ? 1 : 0;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT const char* aclrtGetSocName() {
    SIMNPU_CALL_OR(nullptr, "aclrtGetSocName");
    return kSocName;
}

SIMNPU_EXPORT aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
    SIMNPU_CALL("aclrtGetDeviceInfo", "device=%u attr=%d", deviceId, static_cast<int>(attr));
    if (!value) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    if (!device_info(attr, static_cast<int32_t>(deviceId), *value))
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "attribute %d is not simulated", static_cast<int>(attr));
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo info, int64_t* value) {
    SIMNPU_CALL("aclGetDeviceCapability", "device=%u info=%d", deviceId, static_cast<int>(info));
    if (!value) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM: *value = kCubeCores; return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = kVectorCores; return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE: *value = kL2Bytes; return ACL_SUCCESS;
    default: return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown capability %d", static_cast<int>(info));
    }
}

SIMNPU_EXPORT aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
    SIMNPU_CALL("aclrtDeviceGetUuid", "device=%d", deviceId);
    if (!uuid) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    int64_t chip = 0;
    device_info(static_cast<aclrtDevAttr>(kChipAttribute), deviceId, chip);
    *uuid = {};
    std::memcpy(uuid->bytes, "simnpu-device-", 14);
    uuid->bytes[14] = static_cast<char>('0' + chip / 10);
    uuid->bytes[15] = static_cast<char>('0' + chip % 10);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    SIMNPU_CALL("aclrtDeviceCanAccessPeer", "device=%d peer=%d", deviceId, peerDeviceId);
    if (!canAccessPeer) return is_null("the result pointer");
    if (!valid_device(deviceId) || !valid_device(peerDeviceId)) return thread_errors().last;
    *canAccessPeer = deviceId != peerDeviceId ? 1 : 0;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    SIMNPU_CALL("aclrtDeviceEnablePeerAccess", "peer=%d flags=%u", peerDeviceId, flags);
    return set_peer_access(peerDeviceId, true);
}

SIMNPU_EXPORT aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    SIMNPU_CALL("aclrtDeviceDisablePeerAccess", "peer=%d", peerDeviceId);
    return set_peer_access(peerDeviceId, false);
}

SIMNPU_EXPORT aclError aclrtDeviceGetBareTgid(int32_t* pid) {
    SIMNPU_CALL("aclrtDeviceGetBareTgid");
    if (!pid) return is_null("the result pointer");
    *pid = ::getpid();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
    SIMNPU_CALL("aclrtGetLogicDevIdByUserDevId", "device=%d", userDevid);
    if (!logicDevId) return is_null("the result pointer");
    if (!valid_device(userDevid)) return thread_errors().last;
    int64_t chip = 0;
    device_info(static_cast<aclrtDevAttr>(kChipAttribute), userDevid, chip);
    *logicDevId = static_cast<int32_t>(chip);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    SIMNPU_CALL("aclrtSetDeviceSatMode", "mode=%d", static_cast<int>(mode));
    if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown mode %d", static_cast<int>(mode));
    machine().saturation = mode;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
    SIMNPU_CALL("aclrtGetDeviceSatMode");
    if (!mode) return is_null("the result pointer");
    *mode = static_cast<aclrtFloatOverflowMode>(machine().saturation.load());
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    SIMNPU_CALL("aclrtSetSysParamOpt", "option=%d value=%lld", static_cast<int>(opt), static_cast<long long>(value));
    if (!known_option(opt)) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown option %d", static_cast<int>(opt));
    machine().options[static_cast<size_t>(opt)] = value;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
    SIMNPU_CALL("aclrtGetSysParamOpt", "option=%d", static_cast<int>(opt));
    if (!value || !known_option(opt))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown option %d or null pointer", static_cast<int>(opt));
    *value = machine().options[static_cast<size_t>(opt)];
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    SIMNPU_CALL("aclrtCtxSetSysParamOpt", "option=%d value=%lld", static_cast<int>(opt), static_cast<long long>(value));
    if (!known_option(opt)) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown option %d", static_cast<int>(opt));
    FIND_OR_RETURN(context, current_context());
    context->options[static_cast<size_t>(opt)] = value;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
    SIMNPU_CALL("aclrtCtxGetSysParamOpt", "option=%d", static_cast<int>(opt));
    if (!value || !known_option(opt))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown option %d or null pointer", static_cast<int>(opt));
    FIND_OR_RETURN(context, current_context());
    *value = context->options[static_cast<size_t>(opt)];
    return ACL_SUCCESS;
}

// Time limits are kept and reported; simulated operators are never stopped.
SIMNPU_EXPORT aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    SIMNPU_CALL("aclrtSetOpWaitTimeout", "seconds=%u", timeout);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    SIMNPU_CALL("aclrtSetOpExecuteTimeOut", "seconds=%u", timeout);
    machine().execute_timeout_us = timeout * 1000000ULL;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
    SIMNPU_CALL("aclrtSetOpExecuteTimeOutV2", "microseconds=%llu", static_cast<unsigned long long>(timeout));
    if (!actualTimeout) return is_null("the result pointer");
    machine().execute_timeout_us = timeout;
    *actualTimeout = timeout;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
    SIMNPU_CALL("aclsysGetVersionStr", "package=%s", pkgName ? pkgName : "(null)");
    if (!pkgName || !versionStr) return is_null("a pointer", ACL_ERROR_INVALID_PARAM);
    std::strcpy(versionStr, kCannVersion);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetCannAttributeList(const aclCannAttr** list, size_t* num) {
    SIMNPU_CALL("aclGetCannAttributeList");
    static const aclCannAttr attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};
    if (!list || !num) return is_null("a result pointer", ACL_ERROR_INVALID_PARAM);
    *list = attributes;
    *num = std::size(attributes);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetCannAttribute(aclCannAttr attr, int32_t* value) {
    SIMNPU_CALL("aclGetCannAttribute", "attribute=%d", static_cast<int>(attr));
    if (!value) return is_null("the result pointer", ACL_ERROR_INVALID_PARAM);
    if (attr < ACL_CANN_ATTR_INF_NAN || attr > ACL_CANN_ATTR_JIT_COMPILE)
        return fail(ACL_ERROR_INVALID_PARAM, "unknown attribute %d", static_cast<int>(attr));
    *value = 1;
    return ACL_SUCCESS;
}

namespace {

aclError limit(int32_t deviceId, aclrtDevResLimitType type, const std::function<void(uint32_t&)>& use) {
    if (!valid_device(deviceId)) return thread_errors().last;
    if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown resource %d", static_cast<int>(type));
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    freeze(all);
    auto& device = all.devices[static_cast<size_t>(deviceId)];
    use(type == ACL_RT_DEV_RES_CUBE_CORE ? device.cube_limit : device.vector_limit);
    return ACL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
    SIMNPU_CALL("aclrtGetDeviceResLimit", "device=%d type=%d", deviceId, static_cast<int>(type));
    if (!value) return is_null("the result pointer");
    return limit(deviceId, type, [value](uint32_t& stored) { *value = stored; });
}

SIMNPU_EXPORT aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
    SIMNPU_CALL("aclrtSetDeviceResLimit", "device=%d type=%d value=%u", deviceId, static_cast<int>(type), value);
    const auto most = type == ACL_RT_DEV_RES_CUBE_CORE ? kCubeCores : kVectorCores;
    if (value == 0 || value > most)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%u cores: the device has %lld", value, static_cast<long long>(most));
    return limit(deviceId, type, [value](uint32_t& stored) { stored = value; });
}

SIMNPU_EXPORT aclError aclrtResetDeviceResLimit(int32_t deviceId) {
    SIMNPU_CALL("aclrtResetDeviceResLimit", "device=%d", deviceId);
    if (auto result = limit(deviceId, ACL_RT_DEV_RES_CUBE_CORE, [](uint32_t& cores) { cores = kCubeCores; })) return result;
    return limit(deviceId, ACL_RT_DEV_RES_VECTOR_CORE, [](uint32_t& cores) { cores = kVectorCores; });
}
