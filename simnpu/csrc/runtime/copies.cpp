// Copies and fills: at once, or in the order of a stream.
#include "devices.h"
#include "errors.h"
#include "graphs.h"
#include "memory.h"
#include "streams.h"

#include <cstring>
#include <functional>

namespace simnpu {
namespace {

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
    if (!address_space().covers(reinterpret_cast<uintptr_t>(p), bytes))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the %s %p + %zu bytes runs past its allocation (%zu bytes at 0x%zx)", what,
                    p, bytes, found.size, found.base);
    return ACL_SUCCESS;
}

aclError check_copy(const void* dst, size_t room, const void* src, size_t bytes, int kind) {
    if (kind < kHostToHost || kind > kInterDeviceToDevice) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown copy kind %d", kind);
    if (bytes > room) return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit the destination's %zu", bytes, room);
    if (bytes == 0) return ACL_SUCCESS;
    if (kind == kDeviceToDevice || kind == kInterDeviceToDevice)
        for (const void* p : {static_cast<const void*>(dst), src})
            if (const auto far = out_of_reach(p))
                return fail(ACL_ERROR_RT_PARAM_INVALID,
                            "%p is memory of device %d, which device %d cannot reach: call aclrtDeviceEnablePeerAccess first", p,
                            far->owner, far->here);
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

// Whether this thread may copy or fill now, beside every stream.
aclError check_at_once() {
    return current_context() ? refuse_unsafe_during_capture() : thread_errors().last;
}

aclError check_fill(const void* p, size_t room, size_t bytes) {
    if (bytes > room) return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit the memory's %zu", bytes, room);
    return bytes == 0 ? ACL_SUCCESS : check_device_range("destination", p, bytes);
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
    SIMNPU_CALL("aclrtMemcpy", "dst=%p room=%zu src=%p bytes=%zu kind=%d", dst, destMax, src, count, static_cast<int>(kind));
    if (auto result = check_at_once()) return result;
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
    if (auto result = check_at_once()) return result;
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
    if (auto result = check_at_once()) return result;
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
