// Graph capture: while a stream is captured its tasks are recorded into a model, which replays them in order.
#pragma once

#include "recording.h"
#include "streams.h"

#include <map>
#include <set>
#include <thread>
#include <vector>

namespace simnpu {

struct Node {
    const char* name;
    int32_t stream_id;
    std::shared_ptr<const Task> run;
};

struct Model {
    aclmdlRI handle = nullptr;
    uint32_t id = 0;
    int32_t device = 0;
    std::mutex mutex;
    std::vector<Node> nodes; // in the order of recording, which respects every dependency between the streams
    bool capturing = false;  // guarded by the capture mutex
};

// Nodes that may be replaced after the capture (aclmdlRICaptureTaskGrp…, …TaskUpdate…).
struct TaskGroup {
    std::shared_ptr<Model> model;
    std::vector<size_t> nodes;
};

struct Capture {
    std::shared_ptr<Model> model;
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    std::shared_ptr<Stream> origin;
    std::set<std::shared_ptr<Stream>> members;
    // Per member stream, how much of each stream's recorded work comes before its next task.
    std::map<const Stream*, std::map<const Stream*, size_t>> clocks;
    std::string invalid_because;
    bool ended = false;
    std::shared_ptr<TaskGroup> open_group;
    const Stream* group_stream = nullptr;
};

// If the stream is being captured (or collects an update), takes the task instead of the worker; `result` is what to return.
bool record_instead(const std::shared_ptr<Stream>& stream, const char* name, TaskKind kind, const Task& task, aclError& result);

// If the stream is being captured, makes `recording` a mark in the capture.
bool record_mark(const std::shared_ptr<Stream>& stream, Recording& recording, aclError& result);

// If the recording or the stream belongs to a capture, makes the stream part of it (or fails); false if neither does.
bool join_capture(const std::shared_ptr<Stream>& stream, const Recording& recording, aclError& result);

// Waiting for a stream that only records would wait for ever: refuses, and the capture goes on. ACL_SUCCESS if not captured.
aclError refuse_while_capturing(Stream& stream);
aclError refuse_while_device_captures(int32_t device);
// What should have become part of the graph and cannot: refuses, and invalidates the capture. ACL_SUCCESS if not captured.
aclError refuse_and_invalidate(Stream& stream);
// Operators of the legacy path cannot be recorded: refuses one on a stream under capture, and invalidates the capture.
aclError refuse_legacy_while_capturing(const char* type, aclrtStream handle);

// Synchronous copies run beside every stream, so the modes "global" and "thread local" forbid them.
aclError refuse_unsafe_during_capture();

void drop_models_of(int32_t device);

} // namespace simnpu
