#include "streams.h"

#include "calls.h"
#include "graphs.h"
#include "memory.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

namespace simnpu {
namespace {

std::atomic<bool> g_stopping{false};
thread_local const Stream* t_working_on = nullptr;

struct Workers {
    std::mutex mutex;
    std::condition_variable ended;
    int alive = 0;
    std::multiset<std::condition_variable*> waiting_on;
};

Workers& workers() {
    static Workers& instance = *new Workers;
    return instance;
}

// The end of a worker, in whatever way it comes.
struct Departure {
    Departure() = default;
    Departure(const Departure&) = delete;
    Departure& operator=(const Departure&) = delete;
    ~Departure() {
        std::lock_guard lock(workers().mutex);
        --workers().alive;
        workers().ended.notify_all();
    }
};

void start_worker(const std::shared_ptr<Stream>& stream);

void finish_task(Stream& stream, QueuedTask& task, Failure failure) {
    task.run = nullptr; // what it holds goes before anybody sees the stream idle
    const Announcement announce = std::move(task.announce); // and what this holds goes after the lock
    std::lock_guard lock(stream.mutex);
    if (failure && !stream.failure) stream.failure = std::move(failure);
    ++stream.finished;
    work_in_flight().fetch_sub(1);
    if (announce) announce(stream.failure);
    stream.quiet.notify_all();
}

// A host function may end this thread, as Python's threads do when they want the interpreter at its end.
struct LastTask {
    const std::shared_ptr<Stream>& stream;
    QueuedTask& task;
    bool returned = false;
    ~LastTask() {
        if (returned) return;
        finish_task(*stream, task, {ACL_ERROR_INTERNAL_ERROR, std::string(task.name) + ": it ended the stream's thread (pthread_exit)"});
        start_worker(stream); // for what is queued behind it
    }
};

void work_through(const std::shared_ptr<Stream>& stream) {
    std::unique_lock lock(stream->mutex);
    while (true) {
        stream->work.wait(lock, [&] { return !stream->queue.empty() || stream->closing; });
        if (stream->queue.empty()) return;
        QueuedTask task = std::move(stream->queue.front());
        stream->queue.pop_front();
        const bool skip = task.kind == TaskKind::work && stream->failure && stream->stop_on_failure;
        lock.unlock();
        Failure failure;
        if (!skip) {
            LastTask last{stream, task};
            const Named named(task.name);
            failure = isolated(task.run);
            last.returned = true;
        }
        finish_task(*stream, task, std::move(failure));
        lock.lock();
    }
}

void start_worker(const std::shared_ptr<Stream>& stream) {
    static const bool registered = [] {
        // Runs before the destructors of libraries whose code the tasks run, since those were loaded before.
        std::atexit([] { stop_workers(); });
        return true;
    }();
    (void)registered;
    {
        std::lock_guard lock(workers().mutex);
        ++workers().alive;
    }
    std::thread([stream] {
        const std::string name = "npu" + std::to_string(stream->device) + "-s" + std::to_string(stream->id);
        ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
        t_working_on = stream.get();
        const Departure departure;
        work_through(stream);
    }).detach();
}

} // namespace

HandleTable<Stream>& streams() {
    static HandleTable<Stream>& table = *new HandleTable<Stream>(0x52);
    return table;
}

bool stopping() {
    return g_stopping.load(std::memory_order_relaxed);
}

aclError process_is_ending() {
    return fail(ACL_ERROR_RT_TASK_ABORT_STOP, "the process is ending");
}

void stop_workers() {
    if (broken_by_fork()) return;
    g_stopping.store(true);
    for (const auto& stream : streams().all()) close_stream(*stream, true);
    // A task that is stuck in foreign code (a host function that wants a lock nobody will release) is left behind.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    std::unique_lock lock(workers().mutex);
    while (workers().alive > 0 && std::chrono::steady_clock::now() < deadline) {
        // Again and again: a worker may have looked at the flag but not yet be asleep.
        for (auto* condition : workers().waiting_on) condition->notify_all();
        workers().ended.wait_for(lock, std::chrono::milliseconds(5), [] { return workers().alive == 0; });
    }
}

void add_waiter(std::condition_variable* condition) {
    std::lock_guard lock(workers().mutex);
    workers().waiting_on.insert(condition);
}

void remove_waiter(std::condition_variable* condition) {
    std::lock_guard lock(workers().mutex);
    workers().waiting_on.erase(workers().waiting_on.find(condition));
}

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, uint32_t priority, uint32_t flags, bool is_default) {
    static std::atomic<int32_t> next_id{0};
    auto stream = std::make_shared<Stream>();
    stream->id = next_id.fetch_add(1);
    stream->device = context->device;
    stream->context = context;
    stream->is_default = is_default;
    stream->priority = priority;
    stream->flags = flags;
    stream->handle = streams().add(stream);
    return stream;
}

std::shared_ptr<Stream> find_stream(aclrtStream handle) {
    if (!handle) {
        auto context = current_context();
        return context ? context->default_stream : nullptr;
    }
    auto stream = streams().find(handle);
    if (!stream)
        fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live stream (destroyed, its device reset, or never one)", handle);
    return stream;
}

aclError submit(Stream& stream, const char* name, TaskKind kind, Task task, Announcement announce) {
    std::unique_lock lock(stream.mutex);
    if (stream.closing) return fail(ACL_ERROR_RT_STREAM_CONTEXT, "the stream was destroyed");
    stream.queue.push_back({name, kind, std::move(task), std::move(announce)});
    ++stream.submitted;
    work_in_flight().fetch_add(1);
    if (!stream.worker_started) {
        stream.worker_started = true;
        auto self = streams().find(stream.handle);
        if (!self) {
            stream.queue.pop_back();
            --stream.submitted;
            work_in_flight().fetch_sub(1);
            stream.worker_started = false;
            return fail(ACL_ERROR_RT_STREAM_CONTEXT, "the stream was destroyed");
        }
        start_worker(self);
    }
    stream.work.notify_one();
    return ACL_SUCCESS;
}

aclError enqueue_or_record(const std::shared_ptr<Stream>& stream, const char* name, TaskKind kind, Task task) {
    aclError result = ACL_SUCCESS;
    if (record_instead(stream, name, kind, task, result)) return result;
    return submit(*stream, name, kind, std::move(task));
}

aclError enqueue(aclrtStream handle, Task task) {
    FIND_OR_RETURN(stream, find_stream(handle));
    return enqueue_or_record(stream, current_name(), TaskKind::work, std::move(task));
}

Deadline deadline_after(int32_t milliseconds) {
    if (milliseconds < 0) return std::nullopt;
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

aclError wait_for(Stream& stream, Deadline deadline, aclError timeout_code) {
    if (t_working_on == &stream)
        return fail(ACL_ERROR_RT_STREAM_CONTEXT, "called from the stream's own task, it would wait for itself");
    std::unique_lock lock(stream.mutex);
    const uint64_t target = stream.submitted;
    auto reached = [&] { return stream.finished >= target; };
    if (!wait_until(lock, stream.quiet, deadline, reached)) return fail(timeout_code, "the stream's work did not finish in time");
    if (!stream.failure) return ACL_SUCCESS;
    return raise(std::exchange(stream.failure, Failure{}));
}

void close_stream(Stream& stream, bool drop_queue) {
    std::unique_lock lock(stream.mutex);
    if (drop_queue) {
        // Control tasks stay: other streams may wait for the events they record.
        auto dropped = std::remove_if(stream.queue.begin(), stream.queue.end(),
                                      [](const QueuedTask& task) { return task.kind == TaskKind::work; });
        stream.finished += static_cast<uint64_t>(stream.queue.end() - dropped);
        work_in_flight().fetch_sub(stream.queue.end() - dropped);
        stream.queue.erase(dropped, stream.queue.end());
    }
    stream.closing = true;
    stream.work.notify_all();
    stream.quiet.notify_all();
}

} // namespace simnpu

using namespace simnpu;

namespace {

template <typename Value, typename Member>
aclError read(aclrtStream handle, const char* what, Value* out, Member member) {
    if (!out) return is_null(what);
    FIND_OR_RETURN(stream, find_stream(handle));
    *out = (*stream).*member;
    return ACL_SUCCESS;
}

aclError create(aclrtStream* out, uint32_t priority, uint32_t flags) {
    if (!out) return is_null("the stream pointer");
    FIND_OR_RETURN(context, current_context());
    *out = make_stream(context, priority, flags, false)->handle;
    return ACL_SUCCESS;
}

aclError destroy(aclrtStream handle, bool force) {
    FIND_OR_RETURN(stream, find_stream(handle));
    if (stream->is_default)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "the default stream goes with its context and cannot be destroyed");
    if (auto result = refuse_while_capturing(*stream)) return result;
    close_stream(*stream, force);
    if (!streams().take(handle)) return fail(ACL_ERROR_RT_PARAM_INVALID, "the stream was destroyed meanwhile");
    return wait_for(*stream, std::nullopt, ACL_SUCCESS);
}

aclError synchronize(aclrtStream handle, int32_t timeout) {
    if (timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "timeout %d: give milliseconds, or -1 for none", timeout);
    FIND_OR_RETURN(stream, find_stream(handle));
    if (auto result = refuse_while_capturing(*stream)) return result;
    return wait_for(*stream, deadline_after(timeout), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

aclError synchronize_device(int32_t timeout) {
    if (timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "timeout %d: give milliseconds, or -1 for none", timeout);
    FIND_OR_RETURN(context, current_context());
    if (auto result = refuse_while_device_captures(context->device)) return result;
    const auto deadline = deadline_after(timeout);
    Failure first;
    for (const auto& stream : streams().all()) {
        if (stream->device != context->device) continue;
        const auto failure = isolated([&] { return wait_for(*stream, deadline, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT); });
        if (failure && !first) first = failure;
    }
    return first ? raise(first) : ACL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT aclError aclrtCreateStream(aclrtStream* stream) {
    SIMNPU_CALL("aclrtCreateStream");
    return create(stream, 0, 0);
}

SIMNPU_EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
    SIMNPU_CALL("aclrtCreateStreamWithConfig", "priority=%u flag=%u", priority, flag);
    if (priority > 7) return fail(ACL_ERROR_RT_PARAM_INVALID, "priority %u: give 0 (first) to 7 (last)", priority);
    return create(stream, priority, flag);
}

SIMNPU_EXPORT aclError aclrtDestroyStream(aclrtStream stream) {
    SIMNPU_CALL("aclrtDestroyStream", "stream=%p", stream);
    return destroy(stream, false);
}

SIMNPU_EXPORT aclError aclrtDestroyStreamForce(aclrtStream stream) {
    SIMNPU_CALL("aclrtDestroyStreamForce", "stream=%p", stream);
    return destroy(stream, true);
}

SIMNPU_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) {
    SIMNPU_CALL("aclrtSynchronizeStream", "stream=%p", stream);
    return synchronize(stream, -1);
}

SIMNPU_EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    SIMNPU_CALL("aclrtSynchronizeStreamWithTimeout", "stream=%p timeout=%d", stream, timeout);
    return synchronize(stream, timeout);
}

SIMNPU_EXPORT aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) {
    SIMNPU_CALL("aclrtStreamQuery", "stream=%p", handle);
    if (!status) return is_null("the status pointer");
    FIND_OR_RETURN(stream, find_stream(handle));
    if (auto result = refuse_while_capturing(*stream)) return result;
    std::lock_guard lock(stream->mutex);
    if (stream->failure) return raise(std::exchange(stream->failure, Failure{}));
    *status = stream->finished == stream->submitted ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtStreamGetId(aclrtStream handle, int32_t* id) {
    SIMNPU_CALL("aclrtStreamGetId", "stream=%p", handle);
    return read(handle, "the id pointer", id, &Stream::id);
}

SIMNPU_EXPORT aclError aclrtStreamGetPriority(aclrtStream handle, uint32_t* priority) {
    SIMNPU_CALL("aclrtStreamGetPriority", "stream=%p", handle);
    return read(handle, "the priority pointer", priority, &Stream::priority);
}

SIMNPU_EXPORT aclError aclrtStreamGetFlags(aclrtStream handle, uint32_t* flags) {
    SIMNPU_CALL("aclrtStreamGetFlags", "stream=%p", handle);
    return read(handle, "the flags pointer", flags, &Stream::flags);
}

SIMNPU_EXPORT aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
    SIMNPU_CALL("aclrtSetStreamFailureMode", "stream=%p mode=%llu", handle, static_cast<unsigned long long>(mode));
    if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "mode %llu: give 0 (continue) or 1 (stop)", static_cast<unsigned long long>(mode));
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(stream->mutex);
    stream->stop_on_failure = mode == ACL_STOP_ON_FAILURE;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSetStreamOverflowSwitch(aclrtStream handle, uint32_t flag) {
    SIMNPU_CALL("aclrtSetStreamOverflowSwitch", "stream=%p flag=%u", handle, flag);
    FIND_OR_RETURN(stream, find_stream(handle));
    stream->overflow_switch = flag;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetStreamOverflowSwitch(aclrtStream handle, uint32_t* flag) {
    SIMNPU_CALL("aclrtGetStreamOverflowSwitch", "stream=%p", handle);
    return read(handle, "the flag pointer", flag, &Stream::overflow_switch);
}

SIMNPU_EXPORT aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
    SIMNPU_CALL("aclrtCtxGetCurrentDefaultStream");
    if (!stream) return is_null("the result pointer");
    FIND_OR_RETURN(context, current_context());
    *stream = context->default_stream->handle;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtSynchronizeDevice() {
    SIMNPU_CALL("aclrtSynchronizeDevice");
    return synchronize_device(-1);
}

SIMNPU_EXPORT aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    SIMNPU_CALL("aclrtSynchronizeDeviceWithTimeout", "timeout=%d", timeout);
    return synchronize_device(timeout);
}
