// The runtime interface below acl that Triton's host module uses. As in CANN it is another name for the same things: each
// call is counted itself and as the acl call that it comes to.
#include "devices.h"
#include "errors.h"
#include "simnpu/core.h"

#include <runtime/runtime/rt.h>

#include <cstring>

using namespace simnpu;

SIMNPU_EXPORT rtError_t rtGetSocVersion(char* version, const uint32_t room) {
    SIMNPU_CALL("rtGetSocVersion", "room=%u", room);
    if (!version || room <= std::strlen(kSocName))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the buffer is null or shorter than the name");
    std::strcpy(version, kSocName);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT rtError_t rtGetAiCoreCount(uint32_t* count) {
    SIMNPU_CALL("rtGetAiCoreCount");
    if (!count) return is_null("the result pointer");
    *count = kCubeCores;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT rtError_t rtSetDevice(int32_t device) {
    SIMNPU_CALL("rtSetDevice", "device=%d", device);
    return aclrtSetDevice(device);
}

SIMNPU_EXPORT rtError_t rtDeviceSetLimit(int32_t device, rtLimitType_t type, uint32_t value) {
    SIMNPU_CALL("rtDeviceSetLimit", "device=%d type=%d value=%u", device, static_cast<int>(type), value);
    if (!valid_device(device)) return thread_errors().last;
    if (type < RT_LIMIT_TYPE_LOW_POWER_TIMEOUT || type > RT_LIMIT_TYPE_STACK_SIZE)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown kind of limit %d", static_cast<int>(type));
    return ACL_SUCCESS; // stacks are the host's, and nothing here sleeps to save power
}

SIMNPU_EXPORT rtError_t rtStreamCreate(rtStream_t* stream, int32_t priority) {
    SIMNPU_CALL("rtStreamCreate", "priority=%d", priority);
    return aclrtCreateStreamWithConfig(stream, static_cast<uint32_t>(priority), 0);
}

SIMNPU_EXPORT rtError_t rtStreamDestroy(rtStream_t stream) {
    SIMNPU_CALL("rtStreamDestroy", "stream=%p", stream);
    return aclrtDestroyStream(stream);
}

SIMNPU_EXPORT rtError_t rtStreamSynchronize(rtStream_t stream) {
    SIMNPU_CALL("rtStreamSynchronize", "stream=%p", stream);
    return aclrtSynchronizeStream(stream);
}

SIMNPU_EXPORT rtError_t rtMalloc(void** memory, uint64_t bytes, rtMemType_t type, const uint16_t) {
    SIMNPU_CALL("rtMalloc", "size=%llu type=%u", static_cast<unsigned long long>(bytes), type);
    return aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
}

SIMNPU_EXPORT rtError_t rtFree(void* memory) {
    SIMNPU_CALL("rtFree", "ptr=%p", memory);
    return aclrtFree(memory);
}

SIMNPU_EXPORT rtError_t rtMallocHost(void** memory, uint64_t bytes, const uint16_t) {
    SIMNPU_CALL("rtMallocHost", "size=%llu", static_cast<unsigned long long>(bytes));
    return aclrtMallocHost(memory, bytes);
}

SIMNPU_EXPORT rtError_t rtFreeHost(void* memory) {
    SIMNPU_CALL("rtFreeHost", "ptr=%p", memory);
    return aclrtFreeHost(memory);
}

SIMNPU_EXPORT rtError_t rtMemcpy(void* destination, uint64_t room, const void* source, uint64_t bytes, rtMemcpyKind_t kind) {
    SIMNPU_CALL("rtMemcpy", "dst=%p room=%llu src=%p bytes=%llu kind=%d", destination, static_cast<unsigned long long>(room), source,
                static_cast<unsigned long long>(bytes), static_cast<int>(kind));
    return aclrtMemcpy(destination, room, source, bytes, static_cast<aclrtMemcpyKind>(kind));
}
