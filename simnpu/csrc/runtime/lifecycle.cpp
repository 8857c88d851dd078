// Start and end of the runtime, of a device and of a context. A reset ends what the other files keep for a device: this file
// includes them all, and none includes it.
#include "calls.h"
#include "devices.h"
#include "errors.h"
#include "events.h"
#include "graphs.h"
#include "memory.h"
#include "shared_memory.h"
#include "streams.h"
#include "virtual_memory.h"

#include <unistd.h>

namespace simnpu {
namespace {

std::shared_ptr<Context> make_context(int32_t device, bool primary) {
    auto context = std::make_shared<Context>();
    context->device = device;
    context->primary = primary;
    for (size_t i = 0; i < context->options.size(); ++i) context->options[i] = machine().options[i].load();
    context->default_stream = make_stream(context, 0, 0, true);
    context->handle = contexts().add(context);
    mark_device_used();
    return context;
}

void drop_memory_of(int32_t device) {
    for (const auto& gone : address_space().take_if([device](const Allocation& a) { return a.on_device() && a.device == device; })) {
        if (gone.kind == MemoryKind::mapped) continue; // goes with its physical memory, below
        if (gone.kind == MemoryKind::device) {
            withdraw_memory(gone);
            return_capacity(device, gone.size);
        }
        defer_free(gone);
    }
    forget_imports_of(device);
    drop_physical_memory_of(device);
}

// Waits for the streams that `chosen` says, and ends them. The first failure of any.
template <typename Chosen>
Failure end_streams(Chosen chosen) {
    Failure first;
    for (const auto& stream : streams().take_if(chosen)) {
        close_stream(*stream, false);
        const auto failure = isolated([&] { return wait_for(*stream, std::nullopt, ACL_SUCCESS); });
        if (failure && !first) first = failure;
    }
    return first;
}

// Ends everything on the device: waits for its streams, then its streams, events, graphs, memory and contexts are gone.
aclError reset(int32_t device) {
    drop_models_of(device);
    const Failure first = end_streams([device](const Stream& s) { return s.device == device; });
    events().take_if([device](const Event& e) { return e.device == device; });
    drop_memory_of(device);
    contexts().take_if([device](const Context& c) { return c.device == device; });
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    all.devices[static_cast<size_t>(device)] = Device{};
    for (auto& reaches : all.peers[static_cast<size_t>(device)]) reaches = false;
    return first ? raise(first) : ACL_SUCCESS;
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclInit(const char* configPath) {
    SIMNPU_CALL("aclInit", "config=%s", configPath ? configPath : "(null)");
    if (configPath && *configPath && ::access(configPath, R_OK) != 0)
        return fail(ACL_ERROR_INVALID_FILE, "cannot read the configuration file %s", configPath);
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    if (all.initialized) return fail(ACL_ERROR_REPEAT_INITIALIZE, "called before, without aclFinalize in between");
    all.initialized = true;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclFinalize() {
    SIMNPU_CALL("aclFinalize");
    size_t count = 0;
    {
        auto& all = machine();
        std::lock_guard lock(all.mutex);
        if (!all.initialized) return fail(ACL_ERROR_REPEAT_FINALIZE, "aclInit was not called, or aclFinalize was already");
        all.initialized = false;
        count = all.devices.size();
    }
    aclError first = ACL_SUCCESS;
    for (size_t device = 0; device < count; ++device)
        if (auto result = reset(static_cast<int32_t>(device)); result && !first) first = result;
    return first;
}

SIMNPU_EXPORT aclError aclrtSetDevice(int32_t deviceId) {
    SIMNPU_CALL("aclrtSetDevice", "device=%d", deviceId);
    if (!valid_device(deviceId)) return thread_errors().last;
    auto& all = machine();
    std::lock_guard lock(all.mutex);
    freeze(all);
    auto& device = all.devices[static_cast<size_t>(deviceId)];
    ++device.uses;
    if (!device.primary) device.primary = make_context(deviceId, true);
    make_current(device.primary);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtResetDevice(int32_t deviceId) {
    SIMNPU_CALL("aclrtResetDevice", "device=%d", deviceId);
    if (!valid_device(deviceId)) return thread_errors().last;
    {
        auto& all = machine();
        std::lock_guard lock(all.mutex);
        freeze(all);
        auto& device = all.devices[static_cast<size_t>(deviceId)];
        if (device.uses == 0) return fail(ACL_ERROR_RT_CONTEXT_NULL, "device %d is not set", deviceId);
        // Every aclrtSetDevice counts; the last matching reset ends the device.
        if (--device.uses > 0) return ACL_SUCCESS;
    }
    return reset(deviceId);
}

SIMNPU_EXPORT aclError aclrtResetDeviceForce(int32_t deviceId) {
    SIMNPU_CALL("aclrtResetDeviceForce", "device=%d", deviceId);
    if (!valid_device(deviceId)) return thread_errors().last;
    {
        auto& all = machine();
        std::lock_guard lock(all.mutex);
        freeze(all);
    }
    return reset(deviceId);
}

SIMNPU_EXPORT aclError aclrtCreateContext(aclrtContext* out, int32_t deviceId) {
    SIMNPU_CALL("aclrtCreateContext", "device=%d", deviceId);
    if (!out) return is_null("the result pointer");
    if (!valid_device(deviceId)) return thread_errors().last;
    {
        auto& all = machine();
        std::lock_guard lock(all.mutex);
        freeze(all);
    }
    auto context = make_context(deviceId, false);
    make_current(context);
    *out = context->handle;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtDestroyContext(aclrtContext handle) {
    SIMNPU_CALL("aclrtDestroyContext", "context=%p", handle);
    auto context = contexts().find(handle);
    if (!context) return fail(ACL_ERROR_RT_CONTEXT_NULL, "%p is no live context", handle);
    if (context->primary) return fail(ACL_ERROR_RT_PARAM_INVALID, "the context of aclrtSetDevice ends with aclrtResetDevice");
    contexts().take(handle);
    const Failure first = end_streams([&](const Stream& s) { return s.context.lock() == context; });
    return first ? raise(first) : ACL_SUCCESS;
}
