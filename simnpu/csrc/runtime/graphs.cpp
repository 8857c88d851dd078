#include "graphs.h"

#include "calls.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace simnpu {
namespace {

// Guards every capture, every stream's place in one, and models' `capturing`. Captures are rare and short.
std::mutex& capture_mutex() {
    static std::mutex& instance = *new std::mutex;
    return instance;
}

// Captures and updates under way; zero (the usual case) spares every enqueue the lock.
std::atomic<int> g_recording{0};

std::set<std::shared_ptr<Capture>>& active_captures() {
    static auto& instance = *new std::set<std::shared_ptr<Capture>>;
    return instance;
}

HandleTable<Model>& models() {
    static HandleTable<Model>& table = *new HandleTable<Model>(0x54);
    return table;
}

HandleTable<TaskGroup>& task_groups() {
    static HandleTable<TaskGroup>& table = *new HandleTable<TaskGroup>(0x55);
    return table;
}

thread_local aclmdlRICaptureMode t_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

void merge(std::map<const Stream*, size_t>& into, const std::map<const Stream*, size_t>& from) {
    for (const auto& [stream, count] : from) {
        auto& known = into[stream];
        known = std::max(known, count);
    }
}

void invalidate(Capture& capture, const std::string& why) {
    if (capture.invalid_because.empty()) capture.invalid_because = why;
}

aclError invalidated(const Capture& capture) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "the capture is no longer valid: %s", capture.invalid_because.c_str());
}

aclError refused_as_captured() {
    return fail(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured, its work is recorded and does not run");
}

std::shared_ptr<Model> find_model(aclmdlRI handle) {
    auto model = models().find(handle);
    if (!model) fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live model (destroyed, its device reset, or never one)", handle);
    return model;
}

aclError check_recorded(const Model& model) {
    std::lock_guard lock(capture_mutex());
    return model.capturing ? fail(ACL_ERROR_RT_MODEL_CAPTURED, "the model is still being captured") : ACL_SUCCESS;
}

bool valid_mode(aclmdlRICaptureMode mode) {
    return mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || mode == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL ||
           mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

} // namespace

bool record_instead(const std::shared_ptr<Stream>& stream, const char* name, TaskKind kind, const Task& task, aclError& result) {
    if (g_recording.load() == 0) return false;
    std::lock_guard lock(capture_mutex());
    if (stream->updating) {
        stream->update_tasks.push_back({name, kind, task, {}});
        return true;
    }
    if (!stream->capture) return false;
    Capture& capture = *stream->capture;
    if (!capture.invalid_because.empty()) {
        result = invalidated(capture);
        return true;
    }
    std::lock_guard model_lock(capture.model->mutex);
    if (capture.open_group && capture.group_stream == stream.get() && kind == TaskKind::work)
        capture.open_group->nodes.push_back(capture.model->nodes.size());
    capture.model->nodes.push_back({name, stream->id, std::make_shared<const Task>(task)});
    ++capture.clocks[stream.get()][stream.get()];
    return true;
}

bool record_mark(const std::shared_ptr<Stream>& stream, Recording& recording, aclError& result) {
    if (g_recording.load() == 0) return false;
    std::lock_guard lock(capture_mutex());
    if (!stream->capture) return false;
    if (!stream->capture->invalid_because.empty()) {
        result = invalidated(*stream->capture);
        return true;
    }
    recording.capture = stream->capture;
    recording.before = stream->capture->clocks[stream.get()];
    return true;
}

bool join_capture(const std::shared_ptr<Stream>& stream, const Recording& recording, aclError& result) {
    if (!recording.capture && g_recording.load() == 0) return false;
    std::lock_guard lock(capture_mutex());
    if (!recording.capture) {
        if (!stream->capture) return false;
        invalidate(*stream->capture, "it waited for an event from outside");
        result = fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
                      "a stream under capture cannot wait for an event recorded outside the capture");
        return true;
    }
    if (recording.capture->ended) {
        result = fail(ACL_ERROR_RT_EVENT_CAPTURED, "the event was recorded during a graph capture that has ended");
        return true;
    }
    if (stream->capture && stream->capture != recording.capture) {
        invalidate(*stream->capture, "it waited for an event of another capture");
        invalidate(*recording.capture, "another capture waited for its event");
        result = fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, "the stream and the event belong to two different captures");
        return true;
    }
    if (stream->is_default) {
        result = fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "the default stream cannot join a capture");
        return true;
    }
    stream->capture = recording.capture;
    stream->capture->members.insert(stream);
    merge(stream->capture->clocks[stream.get()], recording.before);
    return true;
}

aclError refuse_while_capturing(Stream& stream) {
    if (g_recording.load() == 0) return ACL_SUCCESS;
    std::lock_guard lock(capture_mutex());
    return stream.capture ? refused_as_captured() : ACL_SUCCESS;
}

aclError refuse_and_invalidate(Stream& stream) {
    if (g_recording.load() == 0) return ACL_SUCCESS;
    std::lock_guard lock(capture_mutex());
    if (!stream.capture) return ACL_SUCCESS;
    invalidate(*stream.capture, std::string(current_name()) + " was called on a stream under capture");
    return refused_as_captured();
}

aclError refuse_legacy_while_capturing(const char* type, aclrtStream handle) {
    if (g_recording.load() == 0) return ACL_SUCCESS;
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(capture_mutex());
    if (!stream->capture) return ACL_SUCCESS;
    invalidate(*stream->capture, std::string("operator ") + type + " of the legacy path was called on a stream under capture");
    return fail(ACL_ERROR_RT_STREAM_CAPTURED, "operator %s of the legacy path cannot be recorded into a graph", type);
}

aclError refuse_while_device_captures(int32_t device) {
    if (g_recording.load() == 0) return ACL_SUCCESS;
    std::lock_guard lock(capture_mutex());
    for (const auto& capture : active_captures()) {
        if (capture->origin->device != device) continue;
        return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "a stream of device %d is being captured", device);
    }
    return ACL_SUCCESS;
}

aclError refuse_unsafe_during_capture() {
    if (g_recording.load() == 0 || t_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return ACL_SUCCESS;
    std::lock_guard lock(capture_mutex());
    for (const auto& capture : active_captures()) {
        const bool ours = capture->thread == std::this_thread::get_id();
        const bool forbidden = capture->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
                                   ? ours || t_mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
                                   : ours && capture->mode == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
        if (!forbidden) continue;
        invalidate(*capture, std::string(current_name()) + " was called during the capture");
        return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                    "not allowed while a stream is captured in mode %s; use the asynchronous form, or the relaxed mode",
                    capture->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL ? "global" : "thread local");
    }
    return ACL_SUCCESS;
}

void drop_models_of(int32_t device) {
    std::lock_guard lock(capture_mutex());
    for (auto at = active_captures().begin(); at != active_captures().end();) {
        if ((*at)->origin->device != device) {
            ++at;
            continue;
        }
        (*at)->ended = true;
        for (const auto& member : (*at)->members) member->capture.reset();
        (*at)->model->capturing = false;
        at = active_captures().erase(at);
        g_recording.fetch_sub(1);
    }
    for (const auto& stream : streams().all())
        if (stream->device == device && stream->updating) {
            stream->updating.reset();
            stream->update_tasks.clear();
            g_recording.fetch_sub(1);
        }
    task_groups().take_if([device](const TaskGroup& group) { return group.model->device == device; });
    models().take_if([device](const Model& model) { return model.device == device; });
}

namespace {

aclError begin(aclrtStream handle, const std::shared_ptr<Model>& given, aclmdlRICaptureMode mode) {
    if (!valid_mode(mode)) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown mode %d", static_cast<int>(mode));
    FIND_OR_RETURN(stream, find_stream(handle));
    if (stream->is_default)
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "the default stream cannot be captured, use a created one");
    std::lock_guard lock(capture_mutex());
    if (stream->capture) return fail(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured already");
    if (stream->updating) return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "the stream is collecting a task update");
    auto model = given;
    if (!model) {
        static std::atomic<uint32_t> next_id{0};
        model = std::make_shared<Model>();
        model->id = next_id.fetch_add(1);
        model->device = stream->device;
        model->handle = models().add(model);
    } else if (model->capturing) {
        return fail(ACL_ERROR_RT_MODEL_CAPTURED, "another capture into the model is under way");
    }
    model->capturing = true;
    auto capture = std::make_shared<Capture>();
    capture->model = model;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream;
    capture->members.insert(stream);
    stream->capture = capture;
    active_captures().insert(capture);
    g_recording.fetch_add(1);
    return ACL_SUCCESS;
}

aclError replay(Model& model) {
    // A graph may replay others; two that were extended to replay each other would never end.
    constexpr int most = 32;
    thread_local int depth = 0;
    struct Level {
        Level() { ++depth; }
        ~Level() { --depth; }
    } level;
    if (depth > most) return fail(ACL_ERROR_RT_MODEL_EXECUTE, "graphs replay each other more than %d levels deep", most);
    for (size_t i = 0;; ++i) {
        Node node;
        {
            std::lock_guard lock(model.mutex);
            if (i == model.nodes.size()) return ACL_SUCCESS;
            node = model.nodes[i];
        }
        const Named named(node.name);
        if (auto result = (*node.run)()) return result;
    }
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
    SIMNPU_CALL("aclmdlRICaptureBegin", "stream=%p mode=%d", stream, static_cast<int>(mode));
    return begin(stream, nullptr, mode);
}

SIMNPU_EXPORT aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI handle, aclmdlRICaptureMode mode) {
    SIMNPU_CALL("aclmdlRICaptureToModelRIBegin", "stream=%p model=%p mode=%d", stream, handle, static_cast<int>(mode));
    FIND_OR_RETURN(model, find_model(handle));
    return begin(stream, model, mode);
}

SIMNPU_EXPORT aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus* status, aclmdlRI* model) {
    SIMNPU_CALL("aclmdlRICaptureGetInfo", "stream=%p", handle);
    if (!status) return is_null("the status pointer");
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(capture_mutex());
    const auto& capture = stream->capture;
    *status = !capture                            ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
              : capture->invalid_because.empty() ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
                                                 : ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
    if (model) *model = capture ? capture->model->handle : nullptr;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* out) {
    SIMNPU_CALL("aclmdlRICaptureEnd", "stream=%p", handle);
    if (!out) return is_null("the model pointer");
    *out = nullptr;
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(capture_mutex());
    auto capture = stream->capture;
    if (!capture) return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not being captured");
    if (capture->origin != stream)
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream, end it there");
    if (capture->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
                    "only the thread that began the capture may end it (except in mode relaxed)");
    capture->ended = true;
    for (const auto& member : capture->members) member->capture.reset();
    capture->model->capturing = false;
    active_captures().erase(capture);
    g_recording.fetch_sub(1);

    aclError result = ACL_SUCCESS;
    if (!capture->invalid_because.empty()) {
        result = invalidated(*capture);
    } else if (capture->open_group) {
        result = fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a task group was begun and not ended");
    } else {
        const auto& joined = capture->clocks[stream.get()];
        for (const auto& member : capture->members) {
            const auto known = joined.find(member.get());
            const size_t own = capture->clocks[member.get()][member.get()];
            if (own > (known == joined.end() ? 0 : known->second)) {
                result = fail(ACL_ERROR_RT_STREAM_UNJOINED,
                              "stream %d has recorded work that the capturing stream %d never waited for",
                              member->id, stream->id);
                break;
            }
        }
    }
    if (result != ACL_SUCCESS) {
        models().take(capture->model->handle);
        return result;
    }
    *out = capture->model->handle;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
    SIMNPU_CALL("aclmdlRICaptureThreadExchangeMode", "mode=%d", mode ? static_cast<int>(*mode) : -1);
    if (!mode) return is_null("the mode pointer");
    if (!valid_mode(*mode)) return fail(ACL_ERROR_RT_PARAM_INVALID, "unknown mode %d", static_cast<int>(*mode));
    std::swap(*mode, t_mode);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
    SIMNPU_CALL("aclmdlRIExecuteAsync", "model=%p stream=%p", handle, stream_handle);
    FIND_OR_RETURN(model, find_model(handle));
    FIND_OR_RETURN(stream, find_stream(stream_handle));
    if (auto result = check_recorded(*model)) return result;
    return enqueue_or_record(stream, "graph replay", TaskKind::work, [model] { return replay(*model); });
}

SIMNPU_EXPORT aclError aclmdlRIDestroy(aclmdlRI handle) {
    SIMNPU_CALL("aclmdlRIDestroy", "model=%p", handle);
    FIND_OR_RETURN(model, find_model(handle));
    if (auto result = check_recorded(*model)) return result;
    // A replay under way holds on to the model.
    models().take(handle);
    task_groups().take_if([&](const TaskGroup& group) { return group.model == model; });
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRIGetId(aclmdlRI handle, uint32_t* id) {
    SIMNPU_CALL("aclmdlRIGetId", "model=%p", handle);
    if (!id) return is_null("the id pointer");
    FIND_OR_RETURN(model, find_model(handle));
    *id = model->id;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRIDebugPrint(aclmdlRI handle) {
    SIMNPU_CALL("aclmdlRIDebugPrint", "model=%p", handle);
    FIND_OR_RETURN(model, find_model(handle));
    std::lock_guard lock(model->mutex);
    std::printf("model %u: %zu tasks\n", model->id, model->nodes.size());
    for (size_t i = 0; i < model->nodes.size(); ++i)
        std::printf("  %zu stream %d %s\n", i, model->nodes[i].stream_id, model->nodes[i].name);
    std::fflush(stdout);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRIDebugJsonPrint(aclmdlRI handle, const char* path SIMNPU_JSON_PRINT_FLAGS) {
    SIMNPU_CALL("aclmdlRIDebugJsonPrint", "model=%p path=%s", handle, path ? path : "(null)");
    if (!path) return is_null("the path");
    FIND_OR_RETURN(model, find_model(handle));
    std::ofstream file(path);
    std::lock_guard lock(model->mutex);
    // A list of complete events of the trace format. Nothing has run, so a task's time is its place: tasks follow each other in the
    // order of recording, which is that of a replay.
    file << "[";
    for (size_t i = 0; i < model->nodes.size(); ++i) {
        const auto& node = model->nodes[i];
        file << (i ? ",\n" : "\n") << R"( {"name": ")" << node.name << R"(", "ph": "X", "pid": "model)" << model->id << R"(", "tid": "stream)"
             << node.stream_id << R"(", "ts": )" << i << R"(, "dur": 1, "args": {"Model Id": )" << model->id << R"(, "Stream Id": )"
             << node.stream_id << R"(, "Task Id": )" << i << "}}";
    }
    file << "\n]\n";
    file.close();
    if (!file) return fail(ACL_ERROR_RT_FILE_WRITE, "cannot write %s: %s", path, std::strerror(errno));
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureTaskGrpBegin(aclrtStream handle) {
    SIMNPU_CALL("aclmdlRICaptureTaskGrpBegin", "stream=%p", handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(capture_mutex());
    if (!stream->capture) return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not being captured");
    if (stream->capture->open_group) return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a task group is open already");
    stream->capture->open_group = std::make_shared<TaskGroup>();
    stream->capture->open_group->model = stream->capture->model;
    stream->capture->group_stream = stream.get();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureTaskGrpEnd(aclrtStream handle, aclrtTaskGrp* out) {
    SIMNPU_CALL("aclmdlRICaptureTaskGrpEnd", "stream=%p", handle);
    if (!out) return is_null("the handle pointer");
    FIND_OR_RETURN(stream, find_stream(handle));
    std::lock_guard lock(capture_mutex());
    if (!stream->capture || !stream->capture->open_group || stream->capture->group_stream != stream.get())
        return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "no task group was begun on this stream");
    *out = task_groups().add(std::exchange(stream->capture->open_group, nullptr));
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream handle, aclrtTaskGrp group_handle) {
    SIMNPU_CALL("aclmdlRICaptureTaskUpdateBegin", "stream=%p group=%p", handle, group_handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    auto group = task_groups().find(group_handle);
    if (!group) return fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no live task group", group_handle);
    std::lock_guard lock(capture_mutex());
    if (stream->capture || stream->updating)
        return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "the stream is being captured or collects an update already");
    stream->updating = group;
    g_recording.fetch_add(1);
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream handle) {
    SIMNPU_CALL("aclmdlRICaptureTaskUpdateEnd", "stream=%p", handle);
    FIND_OR_RETURN(stream, find_stream(handle));
    std::shared_ptr<TaskGroup> group;
    std::deque<QueuedTask> tasks;
    {
        std::lock_guard lock(capture_mutex());
        if (!stream->updating) return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "no update was begun on this stream");
        group = std::exchange(stream->updating, nullptr);
        tasks.swap(stream->update_tasks);
        g_recording.fetch_sub(1);
    }
    if (tasks.size() != group->nodes.size())
        return fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "the group has %zu tasks, the update brings %zu",
                    group->nodes.size(), tasks.size());
    // Takes effect in the order of the stream, as any other task.
    return submit(*stream, "task update", TaskKind::work, [group, tasks]() -> aclError {
        std::lock_guard lock(group->model->mutex);
        for (size_t i = 0; i < tasks.size(); ++i) {
            auto& node = group->model->nodes[group->nodes[i]];
            node.name = tasks[i].name;
            node.run = std::make_shared<const Task>(tasks[i].run);
        }
        return ACL_SUCCESS;
    });
}
