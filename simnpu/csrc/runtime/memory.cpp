#include "memory.h"

#include "config.h"
#include "simnpu/core.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace simnpu {

bool AddressSpace::add(const Allocation& allocation) {
    std::unique_lock lock(mutex_);
    auto next = by_base_.lower_bound(allocation.base);
    if (next != by_base_.end() && next->first < allocation.base + allocation.size) return false;
    if (next != by_base_.begin()) {
        const auto& before = std::prev(next)->second;
        if (before.base + before.size > allocation.base) return false;
    }
    by_base_.emplace_hint(next, allocation.base, allocation);
    return true;
}

bool AddressSpace::take(uintptr_t base, Allocation& out) {
    std::unique_lock lock(mutex_);
    auto at = by_base_.find(base);
    if (at == by_base_.end()) return false;
    out = at->second;
    by_base_.erase(at);
    return true;
}

bool AddressSpace::at(uintptr_t address, Allocation& out) const {
    std::shared_lock lock(mutex_);
    auto next = by_base_.upper_bound(address);
    if (next == by_base_.begin()) return false;
    const auto& found = std::prev(next)->second;
    if (address - found.base >= found.size) return false;
    out = found;
    return true;
}

bool AddressSpace::covers(uintptr_t address, size_t bytes) const {
    std::shared_lock lock(mutex_);
    auto next = by_base_.upper_bound(address);
    if (next == by_base_.begin()) return false;
    auto at = std::prev(next);
    const Allocation& first = at->second;
    if (address - first.base > first.size || (bytes > 0 && address - first.base == first.size)) return false;
    size_t reach = first.base + first.size - address;
    while (reach < bytes) {
        const uintptr_t end = at->second.base + at->second.size;
        if (++at == by_base_.end()) return false;
        const Allocation& following = at->second;
        if (first.kind != MemoryKind::mapped || following.reservation != first.reservation || following.base != end) return false;
        reach += following.size;
    }
    return true;
}

bool AddressSpace::near(uintptr_t address, size_t distance, Allocation& out) const {
    std::shared_lock lock(mutex_);
    const auto next = by_base_.upper_bound(address);
    bool found = false;
    if (next != by_base_.begin()) {
        const auto& before = std::prev(next)->second;
        const uintptr_t end = before.base + before.size;
        if (before.on_device() && address >= end && address - end < distance) {
            out = before;
            distance = address - end;
            found = true;
        }
    }
    if (next != by_base_.end() && next->second.on_device() && next->first - address < distance) {
        out = next->second;
        found = true;
    }
    return found;
}

bool HostRegistrations::add(uintptr_t base, size_t size, bool mapped) {
    std::lock_guard lock(mutex_);
    const auto next = by_base_.lower_bound(base);
    if (next != by_base_.end() && next->first - base < size) return false;
    if (next != by_base_.begin())
        if (const auto before = std::prev(next); base - before->first < before->second.size) return false;
    return by_base_.emplace(base, Range{size, mapped}).second;
}

bool HostRegistrations::take(uintptr_t base) {
    std::lock_guard lock(mutex_);
    return by_base_.erase(base) == 1;
}

void HostRegistrations::drop(uintptr_t base, size_t size) {
    std::lock_guard lock(mutex_);
    by_base_.erase(by_base_.lower_bound(base), by_base_.lower_bound(base + size));
}

bool HostRegistrations::maps(uintptr_t address, size_t bytes) const {
    std::lock_guard lock(mutex_);
    const auto next = by_base_.upper_bound(address);
    if (next == by_base_.begin()) return false;
    const auto& [base, range] = *std::prev(next);
    return range.mapped && address - base < range.size && bytes <= range.size - (address - base);
}

HostRegistrations& host_registrations() {
    static HostRegistrations& instance = *new HostRegistrations;
    return instance;
}

std::atomic<int64_t>& work_in_flight() {
    static std::atomic<int64_t> count{0};
    return count;
}

InFlight::InFlight() {
    work_in_flight().fetch_add(1);
}

InFlight::~InFlight() {
    work_in_flight().fetch_sub(1);
}

AddressSpace& address_space() {
    static AddressSpace& instance = *new AddressSpace;
    return instance;
}

namespace {

std::array<std::atomic<size_t>, 64> g_used{};
std::array<std::atomic<size_t>, 64> g_peak{};

// Differs from place to place: a kernel that runs past the ends of its input and its output copies one slack over the other. Never
// a byte of a small number, which is what gets written by mistake.
unsigned char slack_byte(uintptr_t address) {
    uint64_t mixed = (address >> 3) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
    return static_cast<unsigned char>(mixed >> (8 * (address & 7))) | 0x80;
}

struct DeferredFree {
    uintptr_t base;
    size_t size; // without the guards
    size_t guard; // beside it, on each side
    int fd;       // -1: no file behind it
    uint64_t offset;
};

struct DeferredFrees {
    std::mutex mutex;
    std::vector<DeferredFree> ranges;
};

DeferredFrees& deferred_frees() {
    static DeferredFrees& instance = *new DeferredFrees;
    return instance;
}

struct DeviceFile {
    std::mutex mutex;
    std::atomic<int> fd{-1};
    uint64_t end = 0; // places are never used twice: a file may have holes for nothing
};

DeviceFile& file_of(int32_t device) {
    static auto& files = *new std::array<DeviceFile, 64>;
    return files[static_cast<size_t>(device)];
}

void free_when_idle(const DeferredFree& range) {
    // Work in flight may still read or write the range: it must find memory there, as on the device, not a crash.
    auto& deferred = deferred_frees();
    std::lock_guard lock(deferred.mutex);
    deferred.ranges.push_back(range);
    if (work_in_flight().load() != 0) return;
    for (const auto& gone : deferred.ranges) {
        ::munmap(reinterpret_cast<void*>(gone.base - gone.guard), gone.size + 2 * gone.guard);
        if (gone.fd >= 0)
            ::fallocate(gone.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(gone.offset),
                        static_cast<off_t>(gone.size));
    }
    deferred.ranges.clear();
}

} // namespace

aclError take_capacity(int32_t device, size_t bytes) {
    auto& used = g_used[static_cast<size_t>(device)];
    size_t before = used.load();
    do {
        if (bytes > config().memory - before)
            return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                        "device %d is out of memory: %zu bytes asked for, %llu of %llu free (SIMNPU_MEMORY sets the size)", device,
                        bytes, static_cast<unsigned long long>(config().memory - before),
                        static_cast<unsigned long long>(config().memory));
    } while (!used.compare_exchange_weak(before, before + bytes));
    auto& peak = g_peak[static_cast<size_t>(device)];
    size_t highest = peak.load();
    while (highest < before + bytes && !peak.compare_exchange_weak(highest, before + bytes)) {
    }
    return ACL_SUCCESS;
}

void return_capacity(int32_t device, size_t bytes) {
    g_used[static_cast<size_t>(device)].fetch_sub(bytes);
}

size_t used_memory(int32_t device) {
    return g_used[static_cast<size_t>(device)].load();
}

size_t peak_memory(int32_t device) {
    return g_peak[static_cast<size_t>(device)].load();
}

size_t page_rounded(size_t bytes) {
    static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

int device_file(int32_t device) {
    return file_of(device).fd.load();
}

void* map_between_guards(size_t bytes, int fd, uint64_t offset) {
    const size_t whole = page_rounded(bytes) + 2 * kGuardBytes;
    void* range = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    void* pages = ::mmap(static_cast<char*>(range) + kGuardBytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
                         static_cast<off_t>(offset));
    if (pages != MAP_FAILED) return pages;
    const int problem = errno;
    ::munmap(range, whole);
    errno = problem;
    return nullptr;
}

size_t Allocation::slack() const {
    return kind == MemoryKind::device ? page_rounded(size) - size : 0;
}

void fill_slack(const Allocation& allocation) {
    const uintptr_t end = allocation.base + allocation.size;
    for (uintptr_t at = end; at < end + allocation.slack(); ++at) *reinterpret_cast<unsigned char*>(at) = slack_byte(at);
}

bool slack_is_whole(const Allocation& allocation, size_t& at) {
    const uintptr_t end = allocation.base + allocation.size;
    for (at = 0; at < allocation.slack(); ++at)
        if (*reinterpret_cast<const unsigned char*>(end + at) != slack_byte(end + at)) return false;
    return true;
}

void defer_free(uintptr_t base, size_t bytes) {
    free_when_idle({base, page_rounded(bytes), kGuardBytes, -1, 0});
}

void defer_free(const Allocation& allocation) {
    const bool ours = allocation.kind == MemoryKind::device;
    const size_t beside = allocation.base % page_rounded(1); // imported memory may begin inside a page
    const size_t guard = allocation.on_device() ? kGuardBytes : 0;
    free_when_idle({allocation.base - beside, page_rounded(allocation.size + beside), guard, ours ? device_file(allocation.device) : -1,
          allocation.offset});
}

aclError check_device_range(const char* what, const void* p, size_t bytes) {
    if (!p) return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s pointer is null", what);
    const auto address = reinterpret_cast<uintptr_t>(p);
    Allocation found;
    if (!address_space().at(address, found))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p is not in live device memory (freed, or host memory)", what, p);
    if (!found.on_device()) {
        if (host_registrations().maps(address, bytes)) return ACL_SUCCESS;
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p is host memory, not device memory", what, p);
    }
    if (!address_space().covers(address, bytes))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p + %zu bytes runs past its allocation (%zu bytes at 0x%zx)", what,
                    p, bytes, found.size, found.base);
    return ACL_SUCCESS;
}

bool owns(const void* p, size_t bytes) {
    const auto address = reinterpret_cast<uintptr_t>(p);
    Allocation found;
    if (!address_space().at(address, found)) return false;
    return found.on_device() ? address_space().covers(address, bytes) : host_registrations().maps(address, bytes);
}

aclError map_device_pages(int32_t device, size_t bytes, void*& out, uint64_t& offset) {
    auto& file = file_of(device);
    std::lock_guard lock(file.mutex);
    out = nullptr;
    if (file.fd.load() < 0) {
        const int fd = ::memfd_create("simnpu-device", MFD_CLOEXEC);
        if (fd < 0) return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host gives no memory: %s", std::strerror(errno));
        file.fd.store(fd);
    }
    const size_t whole = page_rounded(bytes);
    // Pages come when touched, so a large device costs nothing until it is used.
    void* pages = nullptr;
    if (::ftruncate(file.fd.load(), static_cast<off_t>(file.end + whole)) == 0)
        pages = map_between_guards(whole, file.fd.load(), file.end);
    if (!pages) return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes: %s", bytes, std::strerror(errno));
    out = pages;
    offset = std::exchange(file.end, file.end + whole);
    return ACL_SUCCESS;
}

} // namespace simnpu
