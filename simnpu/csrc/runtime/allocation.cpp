// Allocating and freeing: device memory, pinned host memory, and the caller's own that it registers.
#include "config.h"
#include "devices.h"
#include "errors.h"
#include "memory.h"
#include "shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstring>

namespace simnpu {
namespace {

aclError map_pages(size_t bytes, void*& out) {
    out = ::mmap(nullptr, page_rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out != MAP_FAILED) return ACL_SUCCESS;
    out = nullptr;
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes: %s", bytes, std::strerror(errno));
}

aclError allocate(void** out, size_t size) {
    if (!out) return is_null("the result pointer");
    *out = nullptr;
    if (size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes asked for");
    FIND_OR_RETURN(context, current_context());
    if (auto result = take_capacity(context->device, size)) return result;
    void* pages = nullptr;
    uint64_t offset = 0;
    if (auto result = map_device_pages(context->device, size, pages, offset)) {
        return_capacity(context->device, size);
        return result;
    }
    const Allocation made{reinterpret_cast<uintptr_t>(pages), size, MemoryKind::device, context->device, 0, offset};
    fill_slack(made);
    address_space().add(made);
    *out = pages;
    return ACL_SUCCESS;
}

aclError allocate_pinned(void** out, size_t size) {
    if (!out) return is_null("the result pointer");
    *out = nullptr;
    if (size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes asked for");
    FIND_OR_RETURN(context, current_context());
    void* pages = nullptr;
    if (auto result = map_pages(size, pages)) return result;
    address_space().add({reinterpret_cast<uintptr_t>(pages), size, MemoryKind::pinned, context->device, 0});
    *out = pages;
    return ACL_SUCCESS;
}

aclError release(void* p, MemoryKind kind) {
    if (!p) return is_null("the pointer");
    Allocation found;
    const auto address = reinterpret_cast<uintptr_t>(p);
    if (!address_space().at(address, found))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live allocation (freed before, its device reset, or foreign)", p);
    if (found.base != address)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is inside an allocation; only its start 0x%zx can be freed", p, found.base);
    if (found.kind != kind) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p was not allocated by the matching call", p);
    if (!address_space().take(address, found)) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p was freed meanwhile", p);
    if (kind == MemoryKind::pinned) host_registrations().drop(address, found.size);
    if (kind == MemoryKind::device) {
        withdraw_memory(found);
        return_capacity(found.device, found.size);
    }
    defer_free(found);
    return ACL_SUCCESS;
}

// Whether every page of the range is mapped in this process.
bool is_mapped(uintptr_t address, size_t size) {
    const uintptr_t first = address / page_rounded(1) * page_rounded(1);
    return ::msync(reinterpret_cast<void*>(first), address - first + size, MS_ASYNC) == 0;
}

aclError register_host(void* ptr, uint64_t size, bool mapped) {
    if (!ptr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    const auto address = reinterpret_cast<uintptr_t>(ptr);
    if (size > UINTPTR_MAX - address) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p + %" PRIu64 " bytes runs past the last address", ptr, size);
    Allocation found;
    const bool pinned = address_space().at(address, found) && found.kind == MemoryKind::pinned && address_space().covers(address, size);
    if (!pinned && !is_mapped(address, size))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p + %" PRIu64 " bytes is not all memory of this process", ptr, size);
    if (!pinned && !address_space().add({address, size, MemoryKind::registered, -1, 0}))
        return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the range is registered or allocated already");
    if (!host_registrations().add(address, size, mapped))
        return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the range is registered already");
    return ACL_SUCCESS;
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
    SIMNPU_CALL("aclrtMalloc", "size=%zu policy=%d", size, static_cast<int>(policy));
    return allocate(devPtr, size);
}

SIMNPU_EXPORT aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
    SIMNPU_CALL("aclrtMallocAlign32", "size=%zu policy=%d", size, static_cast<int>(policy));
    return allocate(devPtr, size);
}

SIMNPU_EXPORT aclError aclrtFree(void* devPtr) {
    SIMNPU_CALL("aclrtFree", "ptr=%p", devPtr);
    return release(devPtr, MemoryKind::device);
}

SIMNPU_EXPORT aclError aclrtMallocHost(void** hostPtr, size_t size) {
    SIMNPU_CALL("aclrtMallocHost", "size=%zu", size);
    return allocate_pinned(hostPtr, size);
}

SIMNPU_EXPORT aclError aclrtFreeHost(void* hostPtr) {
    SIMNPU_CALL("aclrtFreeHost", "ptr=%p", hostPtr);
    return release(hostPtr, MemoryKind::pinned);
}

SIMNPU_EXPORT aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
    SIMNPU_CALL("aclrtHostRegister", "ptr=%p size=%llu type=%d", ptr, static_cast<unsigned long long>(size), static_cast<int>(type));
    if (!devPtr) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    const aclError result = register_host(ptr, size, type == ACL_HOST_REGISTER_MAPPED);
    if (result == ACL_SUCCESS) *devPtr = ptr;
    return result;
}

SIMNPU_EXPORT aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
    SIMNPU_CALL("aclrtHostRegisterV2", "ptr=%p size=%llu flag=%u", ptr, static_cast<unsigned long long>(size), flag);
    return register_host(ptr, size, flag & ACL_HOST_REG_MAPPED);
}

SIMNPU_EXPORT aclError aclrtHostUnregister(void* ptr) {
    SIMNPU_CALL("aclrtHostUnregister", "ptr=%p", ptr);
    const auto address = reinterpret_cast<uintptr_t>(ptr);
    if (!host_registrations().take(address))
        return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not the start of registered memory", ptr);
    address_space().take_if([address](const Allocation& a) { return a.kind == MemoryKind::registered && a.base == address; });
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
    SIMNPU_CALL("aclrtPointerGetAttributes", "ptr=%p", ptr);
    if (!attributes) return is_null("the result pointer");
    *attributes = {};
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    Allocation found;
    if (ptr && address_space().at(reinterpret_cast<uintptr_t>(ptr), found)) {
        attributes->location.type = found.on_device() ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
        attributes->location.id = found.on_device() ? static_cast<uint32_t>(found.device) : 0;
        attributes->pageSize = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
    }
    return ACL_SUCCESS;
}

namespace {
constexpr int kLastMemoryKind = 17; // ACL_MEM_P2P_HUGE1G
}

SIMNPU_EXPORT aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free_bytes, size_t* total) {
    SIMNPU_CALL("aclrtGetMemInfo", "attr=%d", static_cast<int>(attr));
    if (!free_bytes || !total) return is_null("a result pointer");
    if (static_cast<int>(attr) < 0 || static_cast<int>(attr) > kLastMemoryKind)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown kind of memory %d", static_cast<int>(attr));
    FIND_OR_RETURN(context, current_context());
    *total = config().memory;
    *free_bytes = *total - used_memory(context->device);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetMemUsageInfo(simnpuMemUsageDevice device, aclrtMemUsageInfo* usage, size_t room, size_t* filled) {
    SIMNPU_CALL("aclrtGetMemUsageInfo", "device=%lld room=%zu", static_cast<long long>(device), room);
    if (!usage || !filled || room == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or no room");
    if (!valid_device(device)) return thread_errors().last;
    // One component: the program itself.
    usage[0] = {};
    std::strcpy(usage[0].name, "APP");
    usage[0].curMemSize = used_memory(static_cast<int32_t>(device));
    usage[0].memPeakSize = peak_memory(static_cast<int32_t>(device));
    *filled = 1;
    return ACL_SUCCESS;
}
