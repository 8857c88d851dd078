// Device memory that one process allocates and others use (aclrtIpcMem…), as torch.multiprocessing hands tensors over.
#include "shared_memory.h"

#include "devices.h"
#include "errors.h"
#include "sharing.h"
#include "simnpu/core.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace simnpu {
namespace {

struct Exported {
    uintptr_t base;
    size_t size;
    bool anyone;
};

struct Exchange {
    std::mutex mutex;
    std::map<uint64_t, Exported> exported;             // by id
    std::multimap<uint64_t, uintptr_t> imported;       // id -> where it is mapped
    std::map<uintptr_t, int32_t> device_of_imported;
};

Exchange& exchange() {
    static Exchange& instance = *new Exchange;
    return instance;
}

aclError read_key(const char* key, uint64_t& id) {
    if (!key) return is_null("the key");
    if (!text_to_id(key, id)) return fail(ACL_ERROR_RT_PARAM_INVALID, "the key is none of aclrtIpcMemGetExportKey");
    return ACL_SUCCESS;
}

} // namespace

void withdraw_memory(const Allocation& allocation) {
    auto& all = exchange();
    std::lock_guard lock(all.mutex);
    for (auto at = all.exported.begin(); at != all.exported.end();) {
        if (at->second.base - allocation.base >= allocation.size) {
            ++at;
            continue;
        }
        withdraw_offer(at->first);
        at = all.exported.erase(at);
    }
}

void forget_imports_of(int32_t device) {
    auto& all = exchange();
    std::lock_guard lock(all.mutex);
    std::erase_if(all.imported, [&](const auto& import) { return all.device_of_imported.at(import.second) == device; });
    std::erase_if(all.device_of_imported, [&](const auto& import) { return import.second == device; });
}

} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
    SIMNPU_CALL("aclrtIpcMemGetExportKey", "ptr=%p size=%zu room=%zu flags=%llu", devPtr, size, len,
                static_cast<unsigned long long>(flags));
    if (!key || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "the key is null, or 0 bytes");
    if (len < kIdTextBytes)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the key has room for %zu bytes, %zu are needed", len, kIdTextBytes);
    if (flags > 1) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown flags 0x%llx", static_cast<unsigned long long>(flags));
    if (auto result = check_device_range("memory", devPtr, size)) return result;
    const auto address = reinterpret_cast<uintptr_t>(devPtr);
    Allocation whole;
    if (!address_space().at(address, whole) || whole.kind != MemoryKind::device)
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                    "only memory of aclrtMalloc has a key; physical memory is shared by "
                    "aclrtMemExportToShareableHandle");
    const bool anyone = flags == 1;
    auto& all = exchange();
    std::lock_guard lock(all.mutex);
    // The same memory has the same key.
    for (const auto& [id, known] : all.exported)
        if (known.base == address && known.size == size && known.anyone == anyone) {
            id_to_text(id, key);
            return ACL_SUCCESS;
        }
    uint64_t id = 0;
    FoundOffer made;
    if (auto result = make_offer(OfferKind::memory, device_file(whole.device),
                                 whole.offset + (address - whole.base), size, anyone, id, made))
        return result;
    all.exported.emplace(id, Exported{address, size, anyone});
    id_to_text(id, key);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
    SIMNPU_CALL("aclrtIpcMemSetImportPid", "pids=%zu", num);
    uint64_t id = 0;
    if (auto result = read_key(key, id)) return result;
    return allow_processes(id, OfferKind::memory, pid, num);
}

SIMNPU_EXPORT aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
    SIMNPU_CALL("aclrtIpcMemImportByKey", "flags=%llu", static_cast<unsigned long long>(flags));
    if (!devPtr) return is_null("the result pointer");
    *devPtr = nullptr;
    uint64_t id = 0;
    if (auto result = read_key(key, id)) return result;
    if (flags > 1) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown flags 0x%llx", static_cast<unsigned long long>(flags));
    FIND_OR_RETURN(context, current_context());
    FoundOffer found;
    if (auto result = find_offer(id, OfferKind::memory, found)) return result;
    const int fd = open_offered_file(found);
    if (fd < 0) return thread_errors().last;
    // Files are mapped by whole pages; what lies beside the offered bytes is no live memory to any call here.
    const uint64_t beside = found.offer->offset % page_rounded(1);
    const size_t size = found.offer->size;
    void* pages = map_between_guards(size + beside, fd, found.offer->offset - beside);
    const int problem = errno;
    ::close(fd);
    if (!pages) return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host cannot map %zu bytes: %s", size, std::strerror(problem));
    const auto address = reinterpret_cast<uintptr_t>(pages) + beside;
    address_space().add({address, size, MemoryKind::imported, context->device, 0});
    auto& all = exchange();
    std::lock_guard lock(all.mutex);
    all.imported.emplace(id, address);
    all.device_of_imported.emplace(address, context->device);
    *devPtr = reinterpret_cast<void*>(address);
    return ACL_SUCCESS;
}

// In a process that imported the memory: it is gone from there. In the one that exported it: nobody else can import it.
SIMNPU_EXPORT aclError aclrtIpcMemClose(const char* key) {
    SIMNPU_CALL("aclrtIpcMemClose");
    uint64_t id = 0;
    if (auto result = read_key(key, id)) return result;
    auto& all = exchange();
    std::lock_guard lock(all.mutex);
    if (const auto [first, last] = all.imported.equal_range(id); first != last) {
        for (auto at = first; at != last; ++at) {
            Allocation gone;
            all.device_of_imported.erase(at->second);
            if (address_space().take(at->second, gone)) defer_free(gone);
        }
        all.imported.erase(first, last);
        return ACL_SUCCESS;
    }
    if (all.exported.erase(id) > 0) {
        withdraw_offer(id);
        return ACL_SUCCESS;
    }
    return fail(ACL_ERROR_RT_PARAM_INVALID, "this process has neither exported nor imported the key, or closed it before");
}
