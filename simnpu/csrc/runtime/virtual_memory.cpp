// Reserved address ranges and physical memory mapped into them, as torch's expandable segments use.
#include "virtual_memory.h"

#include "devices.h"
#include "errors.h"
#include "memory.h"
#include "sharing.h"
#include "simnpu/core.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace simnpu {
namespace {

constexpr size_t kGranularity = 2UL << 20;
constexpr size_t kLargestReservation = 1UL << 47; // half of what a process can address

struct Physical {
    int fd = -1;
    size_t size = 0;
    int32_t device = 0;
    bool imported = false; // counts where it was made
    uint64_t offer = 0;    // to other processes; 0: none

    // The memory lives until its handle is freed and its last mapping is gone, in every process.
    ~Physical() {
        if (offer != 0) withdraw_offer(offer);
        if (fd >= 0) ::close(fd);
        if (!imported) return_capacity(device, size);
    }
};

struct Mapping {
    std::shared_ptr<Physical> memory;
    size_t size = 0;
};

struct Reservation {
    size_t size = 0;
    std::map<uintptr_t, Mapping> mapped; // by start
};

struct VirtualMemory {
    std::mutex mutex;
    std::map<uintptr_t, Reservation> reservations;

    // The reservation that contains the range.
    std::map<uintptr_t, Reservation>::iterator around(uintptr_t address, size_t bytes) {
        auto at = reservations.upper_bound(address);
        if (at == reservations.begin()) return reservations.end();
        --at;
        return address - at->first < at->second.size && bytes <= at->second.size - (address - at->first) ? at : reservations.end();
    }
};

VirtualMemory& virtual_memory() {
    static VirtualMemory& instance = *new VirtualMemory;
    return instance;
}

HandleTable<Physical>& physical() {
    static HandleTable<Physical>& table = *new HandleTable<Physical>(0x56);
    return table;
}

// Private pages in place of what was mapped, not a hole: work in flight may still touch the range.
void blank(uintptr_t address, size_t size) {
    ::mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
           -1, 0);
}

} // namespace

void drop_physical_memory_of(int32_t device) {
    physical().take_if([device](const Physical& memory) { return memory.device == device; });
    auto& all = virtual_memory();
    std::lock_guard lock(all.mutex);
    for (auto& [start, reservation] : all.reservations)
        for (auto at = reservation.mapped.begin(); at != reservation.mapped.end();) {
            if (at->second.memory->device != device) {
                ++at;
                continue;
            }
            blank(at->first, at->second.size);
            at = reservation.mapped.erase(at);
        }
}

} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr, uint64_t flags) {
    SIMNPU_CALL("aclrtReserveMemAddress", "size=%zu alignment=%zu expect=%p flags=%llu", size, alignment, expectPtr,
                static_cast<unsigned long long>(flags));
    if (!virPtr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    if (size > kLargestReservation)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes are more than the %zu that addresses have room for", size, kLargestReservation);
    // Over-reserve, then give back what lies outside the aligned range and its guards: device addresses are multiples of the granularity.
    const size_t whole = size + kGranularity + 2 * kGuardBytes;
    void* pages = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "no address range of %zu bytes: %s", size, std::strerror(errno));
    const auto start = reinterpret_cast<uintptr_t>(pages);
    const uintptr_t aligned = (start + kGuardBytes + kGranularity - 1) / kGranularity * kGranularity;
    const uintptr_t end = aligned + page_rounded(size) + kGuardBytes;
    if (aligned - kGuardBytes > start) ::munmap(pages, aligned - kGuardBytes - start);
    if (start + whole > end) ::munmap(reinterpret_cast<void*>(end), start + whole - end);
    auto& all = virtual_memory();
    std::lock_guard lock(all.mutex);
    all.reservations[aligned].size = size;
    *virPtr = reinterpret_cast<void*>(aligned);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtReleaseMemAddress(void* virPtr) {
    SIMNPU_CALL("aclrtReleaseMemAddress", "ptr=%p", virPtr);
    auto& all = virtual_memory();
    std::lock_guard lock(all.mutex);
    auto at = all.reservations.find(reinterpret_cast<uintptr_t>(virPtr));
    if (at == all.reservations.end()) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a reserved range", virPtr);
    if (!at->second.mapped.empty())
        return fail(ACL_ERROR_RT_PARAM_INVALID, "memory is still mapped into the range; unmap it first");
    defer_free(at->first, at->second.size);
    all.reservations.erase(at);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size, const aclrtPhysicalMemProp* prop, uint64_t flags) {
    SIMNPU_CALL("aclrtMallocPhysical", "size=%zu flags=%llu", size, static_cast<unsigned long long>(flags));
    if (!handle || !prop || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "only device memory is simulated");
    if (!valid_device(prop->location.id)) return thread_errors().last;
    const auto device = static_cast<int32_t>(prop->location.id);
    if (auto result = take_capacity(device, size)) return result;
    auto memory = std::make_shared<Physical>();
    memory->size = size;
    memory->device = device;
    memory->fd = ::memfd_create("simnpu-physical", MFD_CLOEXEC);
    if (memory->fd < 0 || ::ftruncate(memory->fd, static_cast<off_t>(size)) != 0)
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes: %s", size, std::strerror(errno));
    *handle = physical().add(std::move(memory));
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    SIMNPU_CALL("aclrtFreePhysical", "handle=%p", handle);
    if (!physical().take(handle))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live physical memory (freed before, or never any)", handle);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    SIMNPU_CALL("aclrtMapMem", "ptr=%p size=%zu offset=%zu handle=%p flags=%llu", virPtr, size, offset, handle,
                static_cast<unsigned long long>(flags));
    auto memory = physical().find(handle);
    if (!memory) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live physical memory", handle);
    if (size == 0 || offset > memory->size || size > memory->size - offset)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes at offset %zu do not lie in the %zu physical ones", size, offset,
                    memory->size);
    const auto address = reinterpret_cast<uintptr_t>(virPtr);
    auto& all = virtual_memory();
    std::lock_guard lock(all.mutex);
    auto at = all.around(address, size);
    if (at == all.reservations.end())
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p + %zu bytes is not inside a reserved range", virPtr, size);
    if (!address_space().add({address, size, MemoryKind::mapped, memory->device, at->first}))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "memory is mapped at %p already", virPtr);
    if (::mmap(virPtr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->fd, static_cast<off_t>(offset)) == MAP_FAILED) {
        Allocation undone;
        address_space().take(address, undone);
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the host cannot map %zu bytes at %p: %s", size, virPtr, std::strerror(errno));
    }
    at->second.mapped.emplace(address, Mapping{std::move(memory), size});
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtUnmapMem(void* virPtr) {
    SIMNPU_CALL("aclrtUnmapMem", "ptr=%p", virPtr);
    const auto address = reinterpret_cast<uintptr_t>(virPtr);
    auto& all = virtual_memory();
    std::lock_guard lock(all.mutex);
    auto at = all.around(address, 1);
    if (at == all.reservations.end() || at->second.mapped.count(address) == 0)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped at %p", virPtr);
    Allocation gone;
    if (address_space().take(address, gone)) blank(address, gone.size);
    at->second.mapped.erase(address);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions option,
                                                        size_t* granularity) {
    SIMNPU_CALL("aclrtMemGetAllocationGranularity", "option=%d", static_cast<int>(option));
    if (!prop || !granularity) return is_null("a pointer");
    *granularity = kGranularity;
    return ACL_SUCCESS;
}

namespace {
std::mutex& offers_mutex() {
    static std::mutex& instance = *new std::mutex;
    return instance;
}
} // namespace

SIMNPU_EXPORT aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                                                       uint64_t* shareableHandle) {
    SIMNPU_CALL("aclrtMemExportToShareableHandle", "handle=%p type=%d flags=%llu", handle, static_cast<int>(handleType),
                static_cast<unsigned long long>(flags));
    if (!shareableHandle) return is_null("the result pointer");
    if (flags > 1) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown flags 0x%llx", static_cast<unsigned long long>(flags));
    auto memory = physical().find(handle);
    if (!memory) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live physical memory", handle);
    std::lock_guard lock(offers_mutex());
    if (memory->offer == 0) {
        FoundOffer made;
        if (auto result = make_offer(OfferKind::physical, memory->fd, 0, memory->size, flags == 1, memory->offer, made))
            return result;
    }
    *shareableHandle = memory->offer;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
    SIMNPU_CALL("aclrtMemSetPidToShareableHandle", "handle=%llx pids=%zu", static_cast<unsigned long long>(shareableHandle), pidNum);
    return allow_processes(shareableHandle, OfferKind::physical, pid, pidNum);
}

SIMNPU_EXPORT aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle* handle) {
    SIMNPU_CALL("aclrtMemImportFromShareableHandle", "handle=%llx device=%d", static_cast<unsigned long long>(shareableHandle), deviceId);
    if (!handle) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    FoundOffer found;
    if (auto result = find_offer(shareableHandle, OfferKind::physical, found)) return result;
    auto memory = std::make_shared<Physical>();
    memory->imported = true;
    memory->size = found.offer->size;
    memory->device = deviceId;
    memory->fd = open_offered_file(found);
    if (memory->fd < 0) return thread_errors().last;
    *handle = physical().add(std::move(memory));
    return ACL_SUCCESS;
}
