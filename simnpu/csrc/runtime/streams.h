// Streams: in-order queues, each with a worker thread of its own that starts with the first task.
#pragma once

#include "devices.h"
#include "errors.h"
#include "simnpu/core.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace simnpu {

struct Capture;
struct TaskGroup;

enum class TaskKind {
    work,    // skipped after a failure when the stream stops on failure
    control, // always runs, so that nobody waits for ever: event records and waits
};

// What a task tells others when it is done, given the failure that its stream has by then. Runs under the stream's lock in the moment
// in which the task counts as finished: whoever it wakes finds the stream that far, and whoever sees the stream that far finds it told.
using Announcement = std::function<void(const Failure& of_stream)>;

struct QueuedTask {
    const char* name;
    TaskKind kind;
    Task run;
    Announcement announce;
};

struct Stream {
    aclrtStream handle = nullptr;
    int32_t id = 0;
    int32_t device = 0;
    std::weak_ptr<Context> context;
    bool is_default = false;
    uint32_t priority = 0;
    uint32_t flags = 0;
    std::atomic<uint32_t> overflow_switch{0};

    std::mutex mutex;
    std::condition_variable work;  // the queue grew or the stream closes
    std::condition_variable quiet; // a task finished
    std::deque<QueuedTask> queue;
    uint64_t submitted = 0;
    uint64_t finished = 0;
    bool worker_started = false;
    bool closing = false;
    bool stop_on_failure = false;
    Failure failure; // of the earliest failed task nobody was told about

    // Guarded by capture_mutex() (graphs.h).
    std::shared_ptr<Capture> capture;
    std::shared_ptr<TaskGroup> updating;
    std::deque<QueuedTask> update_tasks;
};

HandleTable<Stream>& streams();

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, uint32_t priority, uint32_t flags, bool is_default);

// Finds the stream (nullptr: the default stream of the current context); records the error if there is none.
std::shared_ptr<Stream> find_stream(aclrtStream handle);

// Queues on the worker whatever the capture state. Returns an error only if the stream was destroyed meanwhile.
aclError submit(Stream& stream, const char* name, TaskKind kind, Task task, Announcement announce = {});

// As enqueue() in core.h, for a stream already found.
aclError enqueue_or_record(const std::shared_ptr<Stream>& stream, const char* name, TaskKind kind, Task task);

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
Deadline deadline_after(int32_t milliseconds); // -1: none

// Waits in a thread of the caller's. False if the deadline passed first.
template <typename Ready>
bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, Deadline deadline, Ready ready) {
    if (deadline) return condition.wait_until(lock, *deadline, ready);
    condition.wait(lock, ready);
    return true;
}

// Waits until everything queued so far has finished; `timeout_code` if the deadline passes. Reports and clears the failure.
aclError wait_for(Stream& stream, Deadline deadline, aclError timeout_code);

// Lets the queue run dry (or drops it), ends the worker.
void close_stream(Stream& stream, bool drop_queue);

// The process is ending: workers that wait for something must stop waiting.
bool stopping();

// Wait on a condition variable inside a worker that must also wake when the process ends. `ready` is called under the lock.
template <typename Ready>
bool wait_in_worker(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, Ready ready);

// What a task returns that stopped waiting for that reason.
aclError process_is_ending();

void stop_workers();

// Condition variables on which a worker waits, to wake when the process ends.
void add_waiter(std::condition_variable* condition);
void remove_waiter(std::condition_variable* condition);

template <typename Ready>
bool wait_in_worker(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, Ready ready) {
    if (ready()) return true;
    add_waiter(&condition);
    condition.wait(lock, [&] { return ready() || stopping(); });
    remove_waiter(&condition);
    return ready();
}

} // namespace simnpu
