// Device memory (host memory with an owner, a size and a capacity), pinned and registered host memory.
#pragma once

#include "simnpu/cann.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace simnpu {

enum class MemoryKind {
    device,     // aclrtMalloc
    mapped,     // physical memory mapped into a reserved range; neighbours in one reservation form one range
    imported,   // another process's device memory (aclrtIpcMemImportByKey)
    pinned,     // aclrtMallocHost
    registered, // the caller's own host memory (aclrtHostRegister)
};

struct Allocation {
    uintptr_t base = 0;
    size_t size = 0;
    MemoryKind kind = MemoryKind::device;
    int32_t device = -1;
    uintptr_t reservation = 0; // of mapped memory
    uint64_t offset = 0;       // in the device's file, of device memory

    // Bytes between the end and the end of its last page, of device memory.
    size_t slack() const;
    bool on_device() const { return kind == MemoryKind::device || kind == MemoryKind::mapped || kind == MemoryKind::imported; }
};

// Every live allocation by address.
class AddressSpace {
public:
    // False if the range touches a live allocation.
    bool add(const Allocation& allocation);
    bool take(uintptr_t base, Allocation& out);
    bool at(uintptr_t address, Allocation& out) const; // the allocation that contains the address
    bool covers(uintptr_t address, size_t bytes) const;
    bool near(uintptr_t address, size_t distance, Allocation& out) const; // the closest on a device that does not contain it

    template <typename Condition>
    std::vector<Allocation> take_if(Condition&& condition) {
        std::unique_lock lock(mutex_);
        std::vector<Allocation> taken;
        for (auto at = by_base_.begin(); at != by_base_.end();) {
            if (condition(at->second)) {
                taken.push_back(at->second);
                at = by_base_.erase(at);
            } else {
                ++at;
            }
        }
        return taken;
    }

private:
    mutable std::shared_mutex mutex_;
    std::map<uintptr_t, Allocation> by_base_;
};

AddressSpace& address_space();

// What aclrtHostRegister was told of host memory, pinned or the caller's own. A device may touch what was registered as mapped.
class HostRegistrations {
public:
    bool add(uintptr_t base, size_t size, bool mapped); // false if the range touches a registered one
    bool take(uintptr_t base);
    void drop(uintptr_t base, size_t size); // every one that begins there
    bool maps(uintptr_t address, size_t bytes) const;

private:
    struct Range {
        size_t size;
        bool mapped;
    };
    mutable std::mutex mutex_;
    std::map<uintptr_t, Range> by_base_;
};

HostRegistrations& host_registrations();

// Takes `bytes` of the device's capacity; records an out-of-memory error if there is not enough.
aclError take_capacity(int32_t device, size_t bytes);
void return_capacity(int32_t device, size_t bytes);
size_t used_memory(int32_t device);
size_t peak_memory(int32_t device); // the most that was used at once

// A device's memory is one file without a name, so that other processes can map parts of it. Every allocation has a place of
// its own there; what was freed is given back to the host. -1 before the first allocation.
int device_file(int32_t device);
// New pages of that file, between guards; `offset` is their place in it.
aclError map_device_pages(int32_t device, size_t bytes, void*& out, uint64_t& offset);

// What may touch memory now: tasks queued or running, on live streams and on those being destroyed, and each InFlight (core.h).
std::atomic<int64_t>& work_in_flight();

// A deferred free: unmaps the memory, and the guards beside it, once no stream has work that might still touch it.
void defer_free(uintptr_t base, size_t bytes);
// The same for an allocation that was taken out of the address space.
void defer_free(const Allocation& allocation);

size_t page_rounded(size_t bytes);

// Before and behind all memory of a device lie so many bytes that nobody may touch: a kernel that goes there faults.
constexpr size_t kGuardBytes = 64U << 10;
// Maps a file's pages between two guards. The host's refusal is left in errno, as nullptr.
void* map_between_guards(size_t bytes, int fd, uint64_t offset);

// A write into the slack does not fault, but it is seen: the slack is full of a pattern. `at` receives the first changed byte.
void fill_slack(const Allocation& allocation);
bool slack_is_whole(const Allocation& allocation, size_t& at);

// Records an error unless the range lies in live memory of a device; `what` names it in the message.
aclError check_device_range(const char* what, const void* p, size_t bytes);

} // namespace simnpu
