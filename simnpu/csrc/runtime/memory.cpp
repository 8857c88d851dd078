#include "memory.h"

#include "config.h"
#include "devices.h"
#include "graphs.h"
#include "streams.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

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

struct DeadRange {
    uintptr_t base;
    size_t size; // without the guards
    size_t guard; // beside it, on each side
    int fd;       // -1: no file behind it
    uint64_t offset;
};

struct Graveyard {
    std::mutex mutex;
    std::vector<DeadRange> ranges;
};

Graveyard& graveyard() {
    static Graveyard& instance = *new Graveyard;
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

void bury(const DeadRange& range) {
    // Work in flight may still read or write the range: it must find memory there, as on the device, not a crash.
    auto& dead = graveyard();
    std::lock_guard lock(dead.mutex);
    dead.ranges.push_back(range);
    if (work_in_flight().load() != 0) return;
    for (const auto& gone : dead.ranges) {
        ::munmap(reinterpret_cast<void*>(gone.base - gone.guard), gone.size + 2 * gone.guard);
        if (gone.fd >= 0)
            ::fallocate(gone.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(gone.offset),
                        static_cast<off_t>(gone.size));
    }
    dead.ranges.clear();
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

void capacity(int32_t device, size_t& free_bytes, size_t& total_bytes) {
    total_bytes = config().memory;
    free_bytes = total_bytes - g_used[static_cast<size_t>(device)].load();
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

void retire(uintptr_t base, size_t bytes) {
    bury({base, page_rounded(bytes), kGuardBytes, -1, 0});
}

void retire(const Allocation& allocation) {
    const bool ours = allocation.kind == MemoryKind::device;
    const size_t beside = allocation.base % page_rounded(1); // imported memory may begin inside a page
    const size_t guard = allocation.on_device() ? kGuardBytes : 0;
    bury({allocation.base - beside, page_rounded(allocation.size + beside), guard, ours ? device_file(allocation.device) : -1,
          allocation.offset});
}

void drop_memory_of(int32_t device) {
    for (const auto& gone : address_space().take_if([device](const Allocation& a) { return a.on_device() && a.device == device; })) {
        if (gone.kind == MemoryKind::mapped) continue; // goes with its physical memory, below
        if (gone.kind == MemoryKind::device) {
            withdraw_memory(gone);
            return_capacity(device, gone.size);
        }
        retire(gone);
    }
    forget_imports_of(device);
    drop_physical_memory_of(device);
}

aclError check_device_range(const char* what, const void* p, size_t bytes) {
    if (!p) return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s pointer is null", what);
    const auto address = reinterpret_cast<uintptr_t>(p);
    Allocation found;
    if (!address_space().at(address, found))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p is not in live device memory (freed, or host memory)", what, p);
    if (!found.on_device()) return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p is host memory, not device memory", what, p);
    if (!address_space().covers(address, bytes))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p + %zu bytes runs past its allocation (%zu bytes at 0x%zx)", what,
                    p, bytes, found.size, found.base);
    return ACL_SUCCESS;
}

bool owns(const void* p, size_t bytes) {
    return address_space().covers(reinterpret_cast<uintptr_t>(p), bytes);
}

namespace {

aclError map_pages(size_t bytes, void*& out) {
    out = ::mmap(nullptr, page_rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out != MAP_FAILED) return ACL_SUCCESS;
    out = nullptr;
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes: %s", bytes, std::strerror(errno));
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
    if (kind == MemoryKind::device) {
        withdraw_memory(found);
        return_capacity(found.device, found.size);
    }
    retire(found);
    return ACL_SUCCESS;
}

// aclrtMemcpyKind by value: the later names came over the releases.
enum CopyKind : int {
    kHostToHost,
    kHostToDevice,
    kDeviceToHost,
    kDeviceToDevice,
    kDefault,
    kHostToBufferToDevice,
    kInnerDeviceToDevice,
    kInterDeviceToDevice,
};

bool reads_device(int kind) {
    return kind == kDeviceToHost || kind == kDeviceToDevice || kind == kInnerDeviceToDevice || kind == kInterDeviceToDevice;
}

bool writes_device(int kind) {
    return kind == kHostToDevice || kind == kDeviceToDevice || kind == kHostToBufferToDevice || kind == kInnerDeviceToDevice ||
           kind == kInterDeviceToDevice;
}

// Host memory may be anybody's, but where the runtime knows the allocation the range must fit.
aclError check_host_range(const char* what, const void* p, size_t bytes, bool any_kind) {
    if (!p) return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s pointer is null", what);
    Allocation found;
    if (!address_space().at(reinterpret_cast<uintptr_t>(p), found)) return ACL_SUCCESS;
    if (found.on_device() && !any_kind)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p is device memory, but the copy kind says host", what, p);
    if (!owns(p, bytes))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p + %zu bytes runs past its allocation (%zu bytes at 0x%zx)", what,
                    p, bytes, found.size, found.base);
    return ACL_SUCCESS;
}

aclError check_copy(const void* dst, size_t room, const void* src, size_t bytes, int kind) {
    if (kind < kHostToHost || kind > kInterDeviceToDevice)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown copy kind %d", kind);
    if (bytes > room) return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit the destination's %zu", bytes, room);
    if (bytes == 0) return ACL_SUCCESS;
    const bool any = kind == kDefault;
    if (auto result = writes_device(kind) ? check_device_range("destination", dst, bytes)
                                          : check_host_range("destination", dst, bytes, any))
        return result;
    return reads_device(kind) ? check_device_range("source", src, bytes) : check_host_range("source", src, bytes, any);
}

aclError copy_async(void* dst, size_t room, const void* src, size_t bytes, int kind, aclrtStream handle) {
    FIND_OR_RETURN(stream, find_stream(handle));
    InFlight here;
    if (auto result = check_copy(dst, room, src, bytes, kind)) return result;
    std::shared_ptr<char[]> staged;
    if (kind == kHostToBufferToDevice && bytes > 0) {
        // This kind promises that the source may be reused at once.
        staged.reset(new char[bytes]);
        std::memcpy(staged.get(), src, bytes);
    }
    return enqueue_or_record(stream, current_name(), TaskKind::work, [=]() -> aclError {
        // Checked again: between call and run, or between two replays, the memory may have been freed.
        if (auto result = check_copy(dst, room, staged ? staged.get() : src, bytes, kind)) return result;
        if (bytes > 0) std::memmove(dst, staged ? staged.get() : src, bytes);
        return ACL_SUCCESS;
    });
}

aclError check_fill(const void* p, size_t room, size_t bytes) {
    if (bytes > room) return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit the memory's %zu", bytes, room);
    return bytes == 0 ? ACL_SUCCESS : check_device_range("destination", p, bytes);
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
    if (!ptr || !devPtr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    if (!address_space().add({reinterpret_cast<uintptr_t>(ptr), size, MemoryKind::registered, -1, 0}))
        return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the range is registered or allocated already");
    *devPtr = ptr;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
    SIMNPU_CALL("aclrtHostRegisterV2", "ptr=%p size=%llu flag=%u", ptr, static_cast<unsigned long long>(size), flag);
    if (!ptr || size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or 0 bytes");
    if (!address_space().add({reinterpret_cast<uintptr_t>(ptr), size, MemoryKind::registered, -1, 0}))
        return fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the range is registered or allocated already");
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtHostUnregister(void* ptr) {
    SIMNPU_CALL("aclrtHostUnregister", "ptr=%p", ptr);
    Allocation found;
    if (!ptr || !address_space().at(reinterpret_cast<uintptr_t>(ptr), found) || found.kind != MemoryKind::registered ||
        found.base != reinterpret_cast<uintptr_t>(ptr))
        return fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not the start of registered memory", ptr);
    address_space().take(found.base, found);
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

SIMNPU_EXPORT aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
    SIMNPU_CALL("aclrtMemcpy", "dst=%p room=%zu src=%p bytes=%zu kind=%d", dst, destMax, src, count, static_cast<int>(kind));
    if (!current_context()) return thread_errors().last;
    if (auto result = refuse_unsafe_during_capture()) return result;
    InFlight here;
    if (auto result = check_copy(dst, destMax, src, count, kind)) return result;
    if (count > 0) std::memmove(dst, src, count);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                                        aclrtStream stream) {
    SIMNPU_CALL("aclrtMemcpyAsync", "dst=%p room=%zu src=%p bytes=%zu kind=%d stream=%p", dst, destMax, src, count,
                static_cast<int>(kind), stream);
    return copy_async(dst, destMax, src, count, kind, stream);
}

SIMNPU_EXPORT aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                                     aclrtMemcpyKind kind, aclrtStream stream) {
    SIMNPU_CALL("aclrtMemcpyAsyncWithCondition", "dst=%p room=%zu src=%p bytes=%zu kind=%d stream=%p", dst, destMax, src, count,
                static_cast<int>(kind), stream);
    return copy_async(dst, destMax, src, count, kind, stream);
}

SIMNPU_EXPORT aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
    SIMNPU_CALL("aclrtMemset", "ptr=%p room=%zu value=%d bytes=%zu", devPtr, maxCount, value, count);
    if (!current_context()) return thread_errors().last;
    if (auto result = refuse_unsafe_during_capture()) return result;
    InFlight here;
    if (auto result = check_fill(devPtr, maxCount, count)) return result;
    if (count > 0) std::memset(devPtr, value, count);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream handle) {
    SIMNPU_CALL("aclrtMemsetAsync", "ptr=%p room=%zu value=%d bytes=%zu stream=%p", devPtr, maxCount, value, count, handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    if (auto result = check_fill(devPtr, maxCount, count)) return result;
    return enqueue_or_record(stream, current_name(), TaskKind::work, [=]() -> aclError {
        if (auto result = check_fill(devPtr, maxCount, count)) return result;
        if (count > 0) std::memset(devPtr, value, count);
        return ACL_SUCCESS;
    });
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
    capacity(context->device, *free_bytes, *total);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetMemUsageInfo(simnpuMemUsageDevice device, aclrtMemUsageInfo* usage, size_t room, size_t* filled) {
    SIMNPU_CALL("aclrtGetMemUsageInfo", "device=%lld room=%zu", static_cast<long long>(device), room);
    if (!usage || !filled || room == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null pointer or no room");
    if (!valid_device(device)) return thread_errors().last;
    // One component: the program itself.
    usage[0] = {};
    std::strcpy(usage[0].name, "APP");
    usage[0].curMemSize = g_used[static_cast<size_t>(device)].load();
    usage[0].memPeakSize = g_peak[static_cast<size_t>(device)].load();
    *filled = 1;
    return ACL_SUCCESS;
}

namespace {

aclError copy_batch(void** dsts, size_t* rooms, void** srcs, size_t* sizes, size_t count, size_t* failed,
                    const std::function<aclError(void*, size_t, const void*, size_t)>& copy) {
    if (failed) *failed = SIZE_MAX;
    if (!dsts || !rooms || !srcs || !sizes || count == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a null array or no copies");
    for (size_t i = 0; i < count; ++i) {
        if (auto result = copy(dsts[i], rooms[i], srcs[i], sizes[i])) {
            if (failed) *failed = i;
            return result;
        }
    }
    return ACL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                                        aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failIndex) {
    SIMNPU_CALL("aclrtMemcpyBatch", "copies=%zu", numBatches);
    if (!current_context()) return thread_errors().last;
    if (auto result = refuse_unsafe_during_capture()) return result;
    InFlight here;
    return copy_batch(dsts, destMaxs, srcs, sizes, numBatches, failIndex,
                      [](void* dst, size_t room, const void* src, size_t bytes) -> aclError {
                          if (auto result = check_copy(dst, room, src, bytes, kDefault)) return result;
                          if (bytes > 0) std::memmove(dst, src, bytes);
                          return ACL_SUCCESS;
                      });
}

SIMNPU_EXPORT aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                                             aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failIndex, aclrtStream stream) {
    SIMNPU_CALL("aclrtMemcpyBatchAsync", "copies=%zu stream=%p", numBatches, stream);
    return copy_batch(dsts, destMaxs, srcs, sizes, numBatches, failIndex,
                      [stream](void* dst, size_t room, const void* src, size_t bytes) {
                          return copy_async(dst, room, src, bytes, kDefault, stream);
                      });
}
