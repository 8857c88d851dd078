// The interface between the simulated runtime (libsimnpu) and everything that runs work on it (libopapi, collectives):
// queue work on a stream, report an error with its text, ask whether memory is the device's, account for each call.
#pragma once

#include "simnpu/cann.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#define SIMNPU_API __attribute__((visibility("default")))
// In front of every C entry point that the wheel links to or looks up by name.
#define SIMNPU_EXPORT extern "C" SIMNPU_API

namespace simnpu {

// Work for a stream. It may be run more than once (graph replay), so it must not consume what it captured. It must not throw:
// an exception is reported as ACL_ERROR_INTERNAL_ERROR with its text. A failure is reported with `return fail(code, ...)`.
using Task = std::function<aclError()>;

// Queues `task` on the stream's worker, in order (nullptr = the default stream of the current context). While the stream is
// being captured the task is recorded instead. A task that fails marks its stream: the next synchronize or query returns its
// code with its text. The task keeps the name of the call that queued it.
SIMNPU_API aclError enqueue(aclrtStream stream, Task task);

// What this thread is at: the entry point that it is in (the innermost), or the task that it runs; "" outside both.
SIMNPU_API const char* current_name();

// While it lives, this thread is at `name`, which must outlive the program (a literal).
class SIMNPU_API Named {
public:
    explicit Named(const char* name);
    ~Named();
    Named(const Named&) = delete;
    Named& operator=(const Named&) = delete;

private:
    const char* outer_;
};

// Keeps the text, behind "NAME: " of current_name(), for aclGetRecentErrMsg of this thread and returns `code`. Inside a task the
// text travels with the stream.
SIMNPU_API aclError fail(aclError code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The error of a null pointer: "WHAT is null".
SIMNPU_API aclError is_null(const char* what, aclError code = ACL_ERROR_RT_PARAM_INVALID);

// The error to return from an entry point that exists only because the wheel needs the symbol.
SIMNPU_API aclError not_simulated();

// True if [p, p + bytes) lies inside one live allocation that a device can touch: its own, or host memory registered as mapped.
SIMNPU_API bool owns(const void* p, std::size_t bytes);

struct OutOfReach {
    int here;  // the device of this thread's context
    int owner; // the device whose memory it is
};

// Says so if the memory at `p` belongs to a device that this thread's device has no access to (aclrtDeviceEnablePeerAccess).
SIMNPU_API std::optional<OutOfReach> out_of_reach(const void* p);

// Counts as work in flight while it lives: memory that is freed meanwhile stays mapped. For work that has checked its memory
// and is not queued yet.
class SIMNPU_API InFlight {
public:
    InFlight();
    ~InFlight();
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
};

// One per entry point and library; sites of the same name share a counter.
struct Counter;
class SIMNPU_API CallSite {
public:
    explicit CallSite(const char* name);
    Counter& counter() const { return counter_; }

private:
    Counter& counter_;
};

// One call of an entry point: counts it, delays or fails it if SIMNPU_FAULT says so, writes it to SIMNPU_LOG when it ends.
// The result in the log is the last fail() of this thread within the call, else 0.
class SIMNPU_API Call {
public:
    // `always` marks calls that work even where the device cannot be used (a forked child): reading errors, counting devices.
    explicit Call(const CallSite& site, bool always = false);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    aclError refusal() const { return refusal_; }
    bool logged() const { return logged_; }
    void arguments() {}
    void arguments(const char* format, ...) __attribute__((format(printf, 2, 3)));
    void set_result(aclError code) { result_ = code; }

private:
    Counter& counter_;
    Named named_;
    Call* outer_;
    aclError refusal_ = ACL_SUCCESS;
    aclError result_ = ACL_SUCCESS;
    bool logged_;
    int64_t began_ = 0; // nanoseconds; 0: this call is not timed
    char arguments_[160];
};

} // namespace simnpu

// At the top of every C entry point. The arguments after the name are a printf format and its values; they are evaluated only
// when a log is kept: SIMNPU_CALL("aclrtMalloc", "size=%zu", size).
#define SIMNPU_CALL(...) SIMNPU_CALL_OR(simnpu_call_.refusal(), __VA_ARGS__)

// The same for entry points that do not return aclError: SIMNPU_CALL_OR(nullptr, "aclCreateTensor").
#define SIMNPU_CALL_OR(refused, name, ...) SIMNPU_CALL_SITE_(refused, false, name __VA_OPT__(, ) __VA_ARGS__)

// For calls that need no device and no worker (reading an error, counting devices): they also work in a forked child.
#define SIMNPU_CALL_ALWAYS(...) SIMNPU_CALL_SITE_(simnpu_call_.refusal(), true, __VA_ARGS__)

#define SIMNPU_CALL_SITE_(refused, always, name, ...)                                                                          \
    static const ::simnpu::CallSite simnpu_site_{name};                                                                        \
    ::simnpu::Call simnpu_call_{simnpu_site_, always};                                                                         \
    if (simnpu_call_.logged()) simnpu_call_.arguments(__VA_ARGS__);                                                            \
    if (simnpu_call_.refusal() != ACL_SUCCESS) return refused
