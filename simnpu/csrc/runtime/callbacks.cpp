// Host functions in a stream: run by the worker itself (aclrtLaunchHostFunc), or handed to a thread of the caller's that asks for
// them (aclrtSubscribeReport, aclrtProcessReport).
#include "errors.h"
#include "graphs.h"
#include "streams.h"

#include <pthread.h>

#include <deque>
#include <map>

namespace simnpu {
namespace {

struct Handover {
    aclrtCallback function;
    void* data;
    bool done = false;
};

struct Reports {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<aclrtStream, uint64_t> subscriber; // stream -> thread; by handle, since no other stream ever gets that
    std::map<uint64_t, std::deque<std::shared_ptr<Handover>>> waiting; // thread -> what it has to run
};

Reports& reports() {
    static Reports& instance = *new Reports;
    return instance;
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream handle) {
    SIMNPU_CALL("aclrtSubscribeReport", "thread=%llu stream=%p", static_cast<unsigned long long>(threadId), handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    auto& all = reports();
    std::lock_guard lock(all.mutex);
    if (!all.subscriber.emplace(stream->handle, threadId).second)
        return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "a thread is subscribed to the stream already");
    all.waiting.try_emplace(threadId);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream handle) {
    SIMNPU_CALL("aclrtUnSubscribeReport", "thread=%llu stream=%p", static_cast<unsigned long long>(threadId), handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    auto& all = reports();
    std::lock_guard lock(all.mutex);
    auto at = all.subscriber.find(stream->handle);
    if (at == all.subscriber.end() || at->second != threadId)
        return fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "this thread is not subscribed to the stream");
    all.subscriber.erase(at);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType, aclrtStream handle) {
    SIMNPU_CALL("aclrtLaunchCallback", "stream=%p block=%d", handle, static_cast<int>(blockType));
    if (!fn) return is_null("the function");
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown kind of blocking %d", static_cast<int>(blockType));
    FIND_OR_RETURN(stream, find_stream(handle));
    uint64_t thread = 0;
    {
        std::lock_guard lock(reports().mutex);
        auto at = reports().subscriber.find(stream->handle);
        if (at == reports().subscriber.end())
            return fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread is subscribed to the stream (aclrtSubscribeReport)");
        thread = at->second;
    }
    return enqueue_or_record(stream, "callback", TaskKind::work, [=]() -> aclError {
        auto& all = reports();
        auto handover = std::make_shared<Handover>(Handover{fn, userData});
        std::unique_lock lock(all.mutex);
        all.waiting[thread].push_back(handover);
        all.changed.notify_all();
        if (blockType == ACL_CALLBACK_NO_BLOCK) return ACL_SUCCESS;
        if (wait_in_worker(lock, all.changed, [&] { return handover->done; })) return ACL_SUCCESS;
        return process_is_ending();
    });
}

SIMNPU_EXPORT aclError aclrtProcessReport(int32_t timeout) {
    SIMNPU_CALL("aclrtProcessReport", "timeout=%d", timeout);
    if (timeout < -1 || timeout == 0)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "timeout %d: give milliseconds above 0, or -1 for none", timeout);
    auto& all = reports();
    std::unique_lock lock(all.mutex);
    auto at = all.waiting.find(::pthread_self());
    if (at == all.waiting.end()) return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread is not subscribed to any stream");
    auto& queue = at->second; // stays where it is: entries are never erased
    if (!wait_until(lock, all.changed, deadline_after(timeout), [&] { return !queue.empty(); }))
        return fail(ACL_ERROR_RT_REPORT_TIMEOUT, "no callback came within %d ms", timeout);
    while (!queue.empty()) {
        auto handover = queue.front();
        queue.pop_front();
        struct Return { // also when the function ends this thread: the stream must not wait for ever
            std::unique_lock<std::mutex>& lock;
            Handover& handover;
            ~Return() {
                lock.lock();
                handover.done = true;
                reports().changed.notify_all();
            }
        } back{lock, *handover};
        lock.unlock();
        handover->function(handover->data);
    }
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtLaunchHostFunc(aclrtStream handle, aclrtHostFunc fn, void* args) {
    SIMNPU_CALL("aclrtLaunchHostFunc", "stream=%p", handle);
    if (!fn) return is_null("the function");
    FIND_OR_RETURN(stream, find_stream(handle));
    return enqueue_or_record(stream, "host function", TaskKind::work, [fn, args]() -> aclError {
        fn(args);
        return ACL_SUCCESS;
    });
}
