// Device memory (host memory with an owner, a size and a capacity), pinned and registered host memory.
#pragma once

#include "simnpu/cann.h"

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
    pinned,     // aclrtMallocHost
    registered, // the caller's own host memory (aclrtHostRegister)
};

struct Allocation {
    uintptr_t base = 0;
    size_t size = 0;
    MemoryKind kind = MemoryKind::device;
    int32_t device = -1;
    uintptr_t reservation = 0; // of mapped memory

    bool on_device() const { return kind == MemoryKind::device || kind == MemoryKind::mapped; }
};

// Every live allocation by address.
class AddressSpace {
public:
    // False if the range touches a live allocation.
    bool add(const Allocation& allocation);
    bool take(uintptr_t base, Allocation& out);
    bool at(uintptr_t address, Allocation& out) const; // the allocation that contains the address
    bool covers(uintptr_t address, size_t bytes) const;

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

// Takes `bytes` of the device's capacity; records an out-of-memory error for `call` if there is not enough.
aclError take_capacity(const char* call, int32_t device, size_t bytes);
void return_capacity(int32_t device, size_t bytes);
void capacity(int32_t device, size_t& free_bytes, size_t& total_bytes);

// Unmaps memory that was freed, once no stream has work that might still touch it.
void retire(uintptr_t base, size_t bytes);

// After a device reset: all its memory goes.
void drop_memory_of(int32_t device);
void drop_physical_memory_of(int32_t device); // virtual_memory.cpp

// Records an error for `call` unless the range lies in live memory of a device; `what` names it in the message.
aclError check_device_range(const char* call, const char* what, const void* p, size_t bytes);

} // namespace simnpu
