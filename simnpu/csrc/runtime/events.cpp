#include "events.h"

#include "calls.h"
#include "graphs.h"

namespace simnpu {

HandleTable<Event>& events() {
    static HandleTable<Event>& table = *new HandleTable<Event>(0x53);
    return table;
}

namespace {

std::shared_ptr<Event> find_event(aclrtEvent handle) {
    auto event = events().find(handle);
    if (!event)
        fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live event (destroyed, its device reset, or never one)", handle);
    return event;
}

std::shared_ptr<Recording> latest(Event& event) {
    std::lock_guard lock(event.mutex);
    return event.latest;
}

void pass(Recording& recording, Failure failure) {
    std::lock_guard lock(recording.mutex);
    recording.nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count();
    recording.failure = std::move(failure);
    recording.done = true;
    recording.passed.notify_all();
    if (recording.publish) recording.publish(recording.failure.code);
}

// The work of a task that has only an announcement.
aclError nothing() {
    return ACL_SUCCESS;
}

void signal(Event& event, bool value) {
    std::lock_guard lock(event.mutex);
    event.signalled = value;
    event.signalled_changed.notify_all();
}

void add(const std::shared_ptr<Event>& event, int32_t device, uint32_t flags, aclrtEvent* out) {
    static std::atomic<uint32_t> next_id{0};
    event->id = next_id.fetch_add(1);
    event->device = device;
    event->flags = flags;
    event->handle = events().add(event);
    *out = event->handle;
}

aclError create(aclrtEvent* out, uint32_t flags) {
    constexpr uint32_t known = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                               ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
    if (!out) return is_null("the event pointer");
    if (flags & ~known) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown flag bits 0x%x", flags & ~known);
    if ((flags & ACL_EVENT_IPC) && (flags & ACL_EVENT_EXTERNAL))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "an event is either shared between processes or external to graphs");
    FIND_OR_RETURN(context, current_context());
    auto event = std::make_shared<Event>();
    add(event, context->device, flags, out);
    return ACL_SUCCESS;
}

// From here on other processes may open the event; a recording under way tells them when it is passed.
aclError share(Event& event) {
    std::lock_guard lock(event.mutex);
    if (event.shared.offer) return ACL_SUCCESS;
    if (auto result = make_offer(OfferKind::event, -1, 0, 0, true, event.offer, event.shared)) return result;
    if (!event.latest) return ACL_SUCCESS;
    Recording& recording = *event.latest;
    std::lock_guard recording_lock(recording.mutex);
    uint64_t number = 0;
    if (auto result = event.shared.offer->event.begin(0, number)) return result;
    // Holds on to the place in memory that other processes look at, even if the event is destroyed first.
    auto publish = [shared = event.shared, number](aclError failure) { shared.offer->event.pass(number, failure); };
    if (recording.done) {
        publish(recording.failure.code);
    } else {
        recording.publish = std::move(publish);
    }
    return ACL_SUCCESS;
}

// Waits in the calling thread for a recording of an event shared between processes.
aclError wait_shared(SharedEvent& event, uint64_t number, Deadline deadline, int32_t timeout) {
    while (true) {
        const uint32_t seen = event.doorbell.load();
        if (event.passed(number) || !event.can_pass(number)) return event.problem(number);
        if (deadline && std::chrono::steady_clock::now() >= *deadline)
            return fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event was not reached within %d ms", timeout);
        event.sleep(seen);
    }
}

aclError wait_done(aclrtEvent handle, int32_t timeout) {
    if (timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "timeout %d: give milliseconds, or -1 for none", timeout);
    FIND_OR_RETURN(event, find_event(handle));
    if (auto* shared = event->between_processes()) {
        const uint64_t number = shared->recorded.load();
        return number == 0 ? ACL_SUCCESS : wait_shared(*shared, number, deadline_after(timeout), timeout);
    }
    auto recording = latest(*event);
    if (!recording) return ACL_SUCCESS; // never recorded: nothing to wait for
    if (recording->capture)
        return fail(ACL_ERROR_RT_EVENT_CAPTURED, "the event was recorded during a graph capture and marks no point in time");
    std::unique_lock lock(recording->mutex);
    if (!wait_until(lock, recording->passed, deadline_after(timeout), [&] { return recording->done; }))
        return fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event was not reached within %d ms", timeout);
    return recording->failure ? raise(recording->failure) : ACL_SUCCESS;
}

// Queues a wait for `event` behind what the stream has to do; `wait` runs on the stream's worker.
aclError queue_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, std::function<aclError()> wait) {
    event->pending_waits.fetch_add(1);
    const aclError result = submit(*stream, "event wait", TaskKind::control, std::move(wait),
                                   [event](const Failure&) { event->pending_waits.fetch_sub(1); });
    if (result != ACL_SUCCESS) event->pending_waits.fetch_sub(1);
    return result;
}

aclError stream_wait(aclrtStream stream_handle, aclrtEvent event_handle) {
    FIND_OR_RETURN(stream, find_stream(stream_handle));
    FIND_OR_RETURN(event, find_event(event_handle));
    if (event->flags & ACL_EVENT_EXTERNAL) {
        const Task wait = [event]() -> aclError {
            std::unique_lock lock(event->mutex);
            return wait_in_worker(lock, event->signalled_changed, [&] { return event->signalled; }) ? ACL_SUCCESS : process_is_ending();
        };
        const Task step = [event, wait]() -> aclError {
            event->pending_waits.fetch_add(1);
            const aclError waited = wait();
            event->pending_waits.fetch_sub(1);
            return waited;
        };
        aclError result = ACL_SUCCESS;
        return record_instead(stream, "event wait", TaskKind::control, step, result) ? result : queue_wait(stream, event, wait);
    }
    if (event->flags & ACL_EVENT_IPC)
        if (auto result = refuse_and_invalidate(*stream)) return result;
    if (auto* shared = event->between_processes()) {
        const uint64_t number = shared->recorded.load();
        if (number == 0) return ACL_SUCCESS;
        return queue_wait(stream, event, [shared, number]() -> aclError {
            bool possible = true;
            while (!shared->passed(number) && !stopping() && (possible = shared->can_pass(number))) {
                const uint32_t seen = shared->doorbell.load();
                if (!shared->passed(number)) shared->sleep(seen);
            }
            return !shared->passed(number) && possible ? process_is_ending() : shared->problem(number);
        });
    }
    auto recording = latest(*event);
    if (!recording) return ACL_SUCCESS;
    aclError result = ACL_SUCCESS;
    if (join_capture(stream, *recording, result)) return result;
    {
        std::lock_guard lock(recording->mutex);
        if (recording->done && !recording->failure) return ACL_SUCCESS;
    }
    return queue_wait(stream, event, [recording]() -> aclError {
        std::unique_lock lock(recording->mutex);
        if (!wait_in_worker(lock, recording->passed, [&] { return recording->done; })) return process_is_ending();
        // What comes next on this stream builds on work that failed, so the failure comes along: nobody reads a wrong number.
        return recording->failure ? raise(recording->failure) : ACL_SUCCESS;
    });
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclrtCreateEvent(aclrtEvent* event) {
    SIMNPU_CALL("aclrtCreateEvent");
    return create(event, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS);
}

SIMNPU_EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
    SIMNPU_CALL("aclrtCreateEventWithFlag", "flag=%u", flag);
    return create(event, flag);
}

SIMNPU_EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
    SIMNPU_CALL("aclrtCreateEventExWithFlag", "flag=%u", flag);
    return create(event, flag);
}

SIMNPU_EXPORT aclError aclrtDestroyEvent(aclrtEvent event) {
    SIMNPU_CALL("aclrtDestroyEvent", "event=%p", event);
    // Waits already queued hold on to what they need.
    if (!events().take(event))
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live event (destroyed before, or never one)", event);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtRecordEvent(aclrtEvent event_handle, aclrtStream stream_handle) {
    SIMNPU_CALL("aclrtRecordEvent", "event=%p stream=%p", event_handle, stream_handle);
    FIND_OR_RETURN(event, find_event(event_handle));
    FIND_OR_RETURN(stream, find_stream(stream_handle));
    if (event->flags & ACL_EVENT_IPC)
        if (auto result = refuse_and_invalidate(*stream)) return result;
    if (auto* shared = event->between_processes()) {
        uint64_t number = 0;
        if (auto result = shared->begin(static_cast<uint64_t>(stream->id) + 1, number)) return result;
        const aclError result = submit(*stream, "event record", TaskKind::control, nothing,
                                       [event, shared, number](const Failure& failure) { shared->pass(number, failure.code); });
        if (result != ACL_SUCCESS) shared->pass(number, result);
        return result;
    }
    if (event->flags & ACL_EVENT_EXTERNAL) {
        auto recording = std::make_shared<Recording>();
        const auto reached = [event, recording] {
            pass(*recording, {});
            signal(*event, true);
        };
        // In a graph it is a step among others that may wait for it: there it tells at once.
        const Task step = [reached]() -> aclError {
            reached();
            return ACL_SUCCESS;
        };
        aclError result = ACL_SUCCESS;
        if (!record_instead(stream, "event record", TaskKind::control, step, result))
            result = submit(*stream, "event record", TaskKind::control, nothing, [reached](const Failure&) { reached(); });
        std::lock_guard lock(event->mutex);
        if (result == ACL_SUCCESS) event->latest = std::move(recording);
        return result;
    }
    auto recording = std::make_shared<Recording>();
    aclError result = ACL_SUCCESS;
    // Held until the recording is the event's latest, so that sharing the event does not miss it.
    std::lock_guard lock(event->mutex);
    if (!record_mark(stream, *recording, result)) {
        result = submit(*stream, "event record", TaskKind::control, nothing,
                        [recording](const Failure& failure) { pass(*recording, failure); });
    }
    if (result == ACL_SUCCESS) event->latest = std::move(recording);
    return result;
}

SIMNPU_EXPORT aclError aclrtResetEvent(aclrtEvent event_handle, aclrtStream stream_handle) {
    SIMNPU_CALL("aclrtResetEvent", "event=%p stream=%p", event_handle, stream_handle);
    FIND_OR_RETURN(event, find_event(event_handle));
    FIND_OR_RETURN(stream, find_stream(stream_handle));
    return enqueue_or_record(stream, "event reset", TaskKind::control, [event]() -> aclError {
        signal(*event, false);
        return ACL_SUCCESS;
    });
}

SIMNPU_EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    SIMNPU_CALL("aclrtStreamWaitEvent", "stream=%p event=%p", stream, event);
    return stream_wait(stream, event);
}

SIMNPU_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent event) {
    SIMNPU_CALL("aclrtSynchronizeEvent", "event=%p", event);
    return wait_done(event, -1);
}

SIMNPU_EXPORT aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    SIMNPU_CALL("aclrtSynchronizeEventWithTimeout", "event=%p timeout=%d", event, timeout);
    return wait_done(event, timeout);
}

SIMNPU_EXPORT aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) {
    SIMNPU_CALL("aclrtQueryEventStatus", "event=%p", handle);
    if (!status) return is_null("the status pointer");
    FIND_OR_RETURN(event, find_event(handle));
    *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    if (auto* shared = event->between_processes()) {
        const uint64_t number = shared->recorded.load();
        if (number != 0 && !shared->passed(number)) {
            if (!shared->can_pass(number)) return shared->problem(number);
            *status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        }
        return ACL_SUCCESS;
    }
    if (auto recording = latest(*event)) {
        if (recording->capture) return fail(ACL_ERROR_RT_EVENT_CAPTURED, "the event was recorded during a graph capture");
        std::lock_guard lock(recording->mutex);
        if (!recording->done) *status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    }
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus* status) {
    SIMNPU_CALL("aclrtQueryEventWaitStatus", "event=%p", handle);
    if (!status) return is_null("the status pointer");
    FIND_OR_RETURN(event, find_event(handle));
    *status = event->pending_waits.load() == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

namespace {

// The time at which the event was passed; an error if it was not, or keeps no time.
aclError passed_at(aclrtEvent handle, int64_t& nanoseconds) {
    FIND_OR_RETURN(event, find_event(handle));
    if (!(event->flags & ACL_EVENT_TIME_LINE))
        return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event was made without ACL_EVENT_TIME_LINE and keeps no time");
    if (event->flags & ACL_EVENT_IPC)
        return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "an event shared between processes keeps no time");
    auto recording = latest(*event);
    if (!recording) return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event was never recorded");
    if (recording->capture)
        return fail(ACL_ERROR_RT_EVENT_CAPTURED, "the event was recorded during a graph capture and marks no point in time");
    std::lock_guard lock(recording->mutex);
    if (!recording->done) return fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "the stream has not reached the event yet");
    nanoseconds = recording->nanoseconds;
    return ACL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
    SIMNPU_CALL("aclrtEventElapsedTime", "start=%p end=%p", start, end);
    if (!ms) return is_null("the result pointer");
    int64_t from = 0;
    int64_t to = 0;
    if (auto result = passed_at(start, from)) return result;
    if (auto result = passed_at(end, to)) return result;
    *ms = static_cast<float>(static_cast<double>(to - from) / 1e6);
    return ACL_SUCCESS;
}

// Microseconds on the device's clock.
SIMNPU_EXPORT aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
    SIMNPU_CALL("aclrtEventGetTimestamp", "event=%p", event);
    if (!timestamp) return is_null("the result pointer");
    int64_t at = 0;
    if (auto result = passed_at(event, at)) return result;
    *timestamp = static_cast<uint64_t>(at / 1000);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetEventId(aclrtEvent handle, uint32_t* id) {
    SIMNPU_CALL("aclrtGetEventId", "event=%p", handle);
    if (!id) return is_null("the id pointer");
    FIND_OR_RETURN(event, find_event(handle));
    *id = event->id;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtIpcGetEventHandle(aclrtEvent handle, aclrtIpcEventHandle* out) {
    SIMNPU_CALL("aclrtIpcGetEventHandle", "event=%p", handle);
    if (!out) return is_null("the handle pointer");
    FIND_OR_RETURN(event, find_event(handle));
    if (!(event->flags & ACL_EVENT_IPC)) return fail(ACL_ERROR_RT_PARAM_INVALID, "the event was made without ACL_EVENT_IPC");
    if (auto result = share(*event)) return result;
    static_assert(sizeof(aclrtIpcEventHandle) >= kIdTextBytes);
    *out = {};
    id_to_text(event->offer, out->reserved);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* out) {
    SIMNPU_CALL("aclrtIpcOpenEventHandle");
    if (!out) return is_null("the event pointer");
    *out = nullptr;
    uint64_t id = 0;
    if (!text_to_id(handle.reserved, id)) return fail(ACL_ERROR_RT_PARAM_INVALID, "the handle is none of aclrtIpcGetEventHandle");
    FIND_OR_RETURN(context, current_context());
    auto event = std::make_shared<Event>();
    if (auto result = find_offer(id, OfferKind::event, event->shared)) return result;
    event->offer = id;
    event->opened = true;
    add(event, context->device, ACL_EVENT_IPC, out);
    return ACL_SUCCESS;
}
