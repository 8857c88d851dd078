#include "communicator.h"

#include "../runtime/graphs.h"
#include "../runtime/handles.h"
#include "../runtime/streams.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

namespace simnpu::hccl {
namespace {

HandleTable<Communicator>& communicators() {
    static HandleTable<Communicator>& table = *new HandleTable<Communicator>(0x48);
    return table;
}

// A call's place in the order. It is given back when the task is destroyed, so one that never runs (its stream was destroyed,
// or stopped after a failure) does not hold up the rest.
class Place {
public:
    explicit Place(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
        std::lock_guard lock(communicator_->mutex);
        number_ = ++communicator_->made;
        communicator_->waiting.insert(number_);
    }
    ~Place() {
        std::lock_guard lock(communicator_->mutex);
        communicator_->waiting.erase(number_);
        communicator_->turn.notify_all();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    uint64_t number() const { return number_; }

private:
    std::shared_ptr<Communicator> communicator_;
    uint64_t number_;
};

bool is_captured(aclrtStream handle) {
    auto stream = find_stream(handle);
    if (!stream) return false;
    Recording probe; // filled in if the stream is being captured, and thrown away
    aclError ignored = ACL_SUCCESS;
    return record_mark(stream, probe, ignored);
}

aclError code_for(HcclResult code) {
    return code == HCCL_E_TIMEOUT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT : ACL_ERROR_RT_INTERNAL_ERROR;
}

aclError run(Communicator& communicator, const Place* place, const Body& body) {
    {
        std::unique_lock lock(communicator.mutex);
        const bool mine = wait_in_worker(lock, communicator.turn, [&] {
            return !communicator.running && (!place || *communicator.waiting.begin() == place->number());
        });
        if (!mine) return process_is_ending();
        communicator.running = true;
    }
    Problem problem;
    if (auto reason = communicator.segment->poisoned())
        problem = {reason->code, std::string(current_name()) + ": communicator " + communicator.name + " is broken since: " + reason->text};
    else
        problem = body(communicator, ++communicator.calls);
    {
        std::lock_guard lock(communicator.mutex);
        communicator.running = false;
        communicator.turn.notify_all();
    }
    return problem ? raise({code_for(problem.code), problem.text}) : ACL_SUCCESS;
}

struct Settings {
    std::string name;
    Limit connect;
    Limit execute;
};

// Offsets in HcclCommConfig, whose first field says how long it is: older wheels' headers end it earlier.
constexpr size_t kNameOffset = 32;
constexpr size_t kNameBytes = 128;
constexpr size_t kExecTimeoutOffset = 316;

HcclResult read_settings(const HcclCommConfig* config, uint64_t id, Settings& out) {
    for (auto problem : {read_limit("HCCL_CONNECT_TIMEOUT", 120, out.connect), read_limit("HCCL_EXEC_TIMEOUT", 1836, out.execute)})
        if (problem) return refuse(problem.code, "%s", problem.text.c_str());
    char made_up[32];
    std::snprintf(made_up, sizeof made_up, "simnpu-%016llx", static_cast<unsigned long long>(id));
    out.name = made_up;
    if (!config) return HCCL_SUCCESS;
    const char* bytes = reinterpret_cast<const char*>(config);
    size_t size = 0;
    std::memcpy(&size, bytes, sizeof size);
    if (size >= kNameOffset + kNameBytes && bytes[kNameOffset])
        out.name.assign(bytes + kNameOffset, ::strnlen(bytes + kNameOffset, kNameBytes - 1));
    if (size >= kExecTimeoutOffset + sizeof(int32_t)) {
        int32_t seconds = -1;
        std::memcpy(&seconds, bytes + kExecTimeoutOffset, sizeof seconds);
        if (seconds >= 0 && out.execute.variable != "SIMNPU_HCCL_TIMEOUT") out.execute = {static_cast<double>(seconds), "hcclExecTimeOut"};
    }
    return HCCL_SUCCESS;
}

HcclResult refuse(const Problem& problem) {
    // Some texts name the call already.
    if (problem.text.rfind(current_name(), 0) != 0) return hccl::refuse(problem.code, "%s", problem.text.c_str());
    raise({static_cast<aclError>(problem.code), problem.text});
    return problem.code;
}

HcclComm publish(std::unique_ptr<Segment> segment, const Settings& settings, int32_t device) {
    auto communicator = std::make_shared<Communicator>();
    communicator->name = settings.name;
    communicator->device = device;
    communicator->limit = settings.execute;
    communicator->segment = std::move(segment);
    return communicators().add(std::move(communicator));
}

HcclResult join(const RootInfo& info, uint32_t ranks, uint32_t rank, int32_t device, const HcclCommConfig* config, HcclComm* out) {
    Settings settings;
    if (auto result = read_settings(config, info.id[0], settings)) return result;
    std::unique_ptr<Segment> segment;
    auto problem = Segment::enter(info, ranks, rank, device, segment);
    if (!problem) problem = segment->await_all(settings.connect);
    Segment::forget(info);
    if (problem) return refuse(problem);
    *out = publish(std::move(segment), settings, device);
    return HCCL_SUCCESS;
}

HcclResult init_root_info(uint32_t ranks, const HcclRootInfo* root, uint32_t rank, const HcclCommConfig* config, HcclComm* out) {
    if (!root || !out) return hccl::refuse(HCCL_E_PTR, "the root information or result pointer is null");
    auto context = current_context();
    if (!context) return HCCL_E_RUNTIME;
    RootInfo info;
    std::memcpy(&info, root->internal, sizeof info);
    return join(info, ranks, rank, context->device, config, out);
}

uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15ULL;
    return value ^ (value >> 29);
}

// The first member puts the new memory's place on the parent's board, the others look for it there.
Problem exchange_root(Communicator& parent, uint64_t group, bool first, const Limit& limit, uint32_t first_rank,
                      RootInfo& info, BoardEntry*& entry) {
    Segment& segment = *parent.segment;
    auto& board = segment.header().board;
    if (first) {
        if (auto problem = Segment::create(info)) return problem;
        for (auto& candidate : board) {
            uint32_t expected = 0;
            if (!candidate.state.compare_exchange_strong(expected, 1)) continue;
            candidate.group = group;
            candidate.info = info;
            candidate.state.store(2, std::memory_order_release);
            entry = &candidate;
            segment.ring_all();
            return {};
        }
        Segment::forget(info);
        return {HCCL_E_UNAVAIL, std::to_string(kBoardEntries) + " sub-communicators are being made at once; the simulator takes no more"};
    }
    const auto begin = Clock::now();
    while (true) {
        const uint32_t seen = segment.doorbell();
        for (auto& candidate : board) {
            if (candidate.state.load(std::memory_order_acquire) != 2 || candidate.group != group) continue;
            info = candidate.info;
            return {};
        }
        const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
        if (auto reason = segment.poisoned()) return *reason;
        if (stopping()) return {HCCL_E_UNAVAIL, "the process is ending"};
        if (auto why = segment.gone(first_rank); !why.empty()) return {HCCL_E_REMOTE, why + " after " + seconds_text(waited)};
        if (limit.seconds > 0 && waited > limit.seconds)
            return {HCCL_E_TIMEOUT, segment.who(first_rank) + ", the first of the sub-communicator, has not arrived after " +
                                        seconds_text(waited) + " (limit " + limit.variable + ")"};
        segment.sleep(seen);
    }
}

} // namespace

HcclResult find(HcclComm handle, std::shared_ptr<Communicator>& out) {
    out = communicators().find(handle);
    if (!out) return refuse(HCCL_E_PARA, "%p is no live communicator (destroyed, or never one)", handle);
    return HCCL_SUCCESS;
}

HcclResult submit(const std::shared_ptr<Communicator>& communicator, aclrtStream handle, Body body) {
    auto stream = find_stream(handle);
    if (!stream) return HCCL_E_PARA;
    if (stream->device != communicator->device)
        return refuse(HCCL_E_PARA, "the stream is on device %d, communicator %s on device %d", stream->device,
                      communicator->name.c_str(), communicator->device);
    std::shared_ptr<Place> place;
    if (!is_captured(handle)) place = std::make_shared<Place>(communicator);
    const aclError result = enqueue(handle, [communicator, place, body = std::move(body)]() -> aclError {
        return run(*communicator, place.get(), body);
    });
    return result == ACL_SUCCESS ? HCCL_SUCCESS : HCCL_E_RUNTIME; // with enqueue's text
}

} // namespace simnpu::hccl

using namespace simnpu;
using namespace simnpu::hccl;

SIMNPU_EXPORT HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
    HCCL_CALL("HcclGetRootInfo");
    if (!rootInfo) return hccl::refuse(HCCL_E_PTR, "the result pointer is null");
    RootInfo info;
    if (auto problem = Segment::create(info)) return hccl::refuse(problem.code, "%s", problem.text.c_str());
    std::memset(rootInfo->internal, 0, sizeof rootInfo->internal);
    std::memcpy(rootInfo->internal, &info, sizeof info);
    return HCCL_SUCCESS;
}

SIMNPU_EXPORT HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm) {
    HCCL_CALL("HcclCommInitRootInfo", "ranks=%u rank=%u", nRanks, rank);
    return init_root_info(nRanks, rootInfo, rank, nullptr, comm);
}

SIMNPU_EXPORT HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                                    const HcclCommConfig* config, HcclComm* comm) {
    HCCL_CALL("HcclCommInitRootInfoConfig", "ranks=%u rank=%u", nRanks, rank);
    return init_root_info(nRanks, rootInfo, rank, config, comm);
}

SIMNPU_EXPORT HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
    HCCL_CALL("HcclCommInitAll", "devices=%u", ndev);
    if (!comms || ndev == 0) return hccl::refuse(HCCL_E_PTR, "no devices, or the result pointer is null");
    RootInfo info;
    if (auto problem = Segment::create(info)) return hccl::refuse(problem.code, "%s", problem.text.c_str());
    Settings settings;
    std::vector<std::unique_ptr<Segment>> segments(ndev);
    Problem problem;
    HcclResult result = read_settings(nullptr, info.id[0], settings);
    for (uint32_t rank = 0; rank < ndev && result == HCCL_SUCCESS; ++rank) {
        const int32_t device = devices ? devices[rank] : static_cast<int32_t>(rank);
        if (!valid_device(device)) result = HCCL_E_PARA;
        else if ((problem = Segment::enter(info, ndev, rank, device, segments[rank]))) result = refuse(problem);
    }
    Segment::forget(info);
    if (result != HCCL_SUCCESS) return result;
    for (uint32_t rank = 0; rank < ndev; ++rank)
        comms[rank] = publish(std::move(segments[rank]), settings, devices ? devices[rank] : static_cast<int32_t>(rank));
    return HCCL_SUCCESS;
}

SIMNPU_EXPORT HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                                                 uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
    HCCL_CALL("HcclCreateSubCommConfig", "ranks=%u id=%llu rank=%u", rankNum, static_cast<unsigned long long>(subCommId), subCommRankId);
    if (!comm || !subComm) return hccl::refuse(HCCL_E_PTR, "a pointer is null");
    *subComm = nullptr;
    if (!rankIds) return HCCL_SUCCESS; // so says a rank that is not a member
    std::shared_ptr<Communicator> parent;
    if (auto result = find(*comm, parent)) return result;
    if (subCommRankId >= rankNum || rankIds[subCommRankId] != parent->rank())
        return hccl::refuse(HCCL_E_PARA, "member %u of %u is not rank %u, which calls", subCommRankId, rankNum, parent->rank());
    uint64_t group = mix(subCommId + 1);
    for (uint32_t i = 0; i < rankNum; ++i) {
        if (rankIds[i] >= parent->ranks())
            return hccl::refuse(HCCL_E_PARA, "rank %u of a communicator of %u", rankIds[i], parent->ranks());
        group = mix(group + rankIds[i] + 1);
    }
    Limit limit;
    if (auto problem = read_limit("HCCL_CONNECT_TIMEOUT", 120, limit)) return refuse(problem);
    RootInfo info;
    BoardEntry* entry = nullptr;
    if (auto problem = exchange_root(*parent, group, subCommRankId == 0, limit, rankIds[0], info, entry)) return refuse(problem);
    const auto result = join(info, rankNum, subCommRankId, parent->device, config, subComm);
    // Every member has read the entry by now, or the communicator has failed.
    if (entry) entry->state.store(0, std::memory_order_release);
    return result;
}

// Calls still queued on a stream keep the communicator until they have run.
SIMNPU_EXPORT HcclResult HcclCommDestroy(HcclComm comm) {
    HCCL_CALL("HcclCommDestroy", "comm=%p", comm);
    if (!communicators().take(comm))
        return hccl::refuse(HCCL_E_PARA, "%p is no live communicator (destroyed before, or never one)", comm);
    return HCCL_SUCCESS;
}

namespace {

// `fill` writes what the communicator says to `out`.
template <typename Fill>
HcclResult read(HcclComm handle, const void* out, Fill fill) {
    std::shared_ptr<Communicator> communicator;
    if (auto result = find(handle, communicator)) return result;
    if (!out) return hccl::refuse(HCCL_E_PTR, "the result pointer is null");
    fill(*communicator);
    return HCCL_SUCCESS;
}

} // namespace

SIMNPU_EXPORT HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
    HCCL_CALL("HcclGetRankSize");
    return read(comm, rankSize, [=](const Communicator& communicator) { *rankSize = communicator.ranks(); });
}

SIMNPU_EXPORT HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
    HCCL_CALL("HcclGetRankId");
    return read(comm, rank, [=](const Communicator& communicator) { *rank = communicator.rank(); });
}

// `commName` has room for COMM_NAME_MAX_LENGTH bytes.
SIMNPU_EXPORT HcclResult HcclGetCommName(HcclComm comm, char* commName) {
    HCCL_CALL("HcclGetCommName");
    return read(comm, commName, [=](const Communicator& communicator) { std::snprintf(commName, COMM_NAME_MAX_LENGTH, "%s", communicator.name.c_str()); });
}

// Reports failures of links that no stream sees. Here a failed collective always fails its stream, with a text that says why, and
// torch_npu's watch-dog would abort the process without a word before Python could raise that.
SIMNPU_EXPORT HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
    HCCL_CALL("HcclGetCommAsyncError");
    return read(comm, asyncError, [=](const Communicator&) { *asyncError = HCCL_SUCCESS; });
}

// Name and time limit of a configuration are honoured; what tunes real links has no effect here.
SIMNPU_EXPORT uint32_t HcclGetCommConfigCapability() {
    SIMNPU_CALL_OR(0, "HcclGetCommConfigCapability");
    return HCCL_COMM_CONFIG_RESERVED;
}

namespace {
std::atomic<int32_t> g_deterministic{0};
}

SIMNPU_EXPORT HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
    HCCL_CALL("HcclSetConfig", "config=%d value=%d", static_cast<int>(config), configValue.value);
    if (config != HCCL_DETERMINISTIC) return hccl::refuse(HCCL_E_NOT_SUPPORT, "option %d is not simulated", static_cast<int>(config));
    g_deterministic = configValue.value; // results are deterministic either way
    return HCCL_SUCCESS;
}

SIMNPU_EXPORT HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
    HCCL_CALL("HcclGetConfig", "config=%d", static_cast<int>(config));
    if (!configValue) return hccl::refuse(HCCL_E_PTR, "the result pointer is null");
    if (config != HCCL_DETERMINISTIC) return hccl::refuse(HCCL_E_NOT_SUPPORT, "option %d is not simulated", static_cast<int>(config));
    configValue->value = g_deterministic;
    return HCCL_SUCCESS;
}

SIMNPU_EXPORT const char* HcclGetErrorString(HcclResult code) {
    SIMNPU_CALL_OR("", "HcclGetErrorString");
    switch (code) {
    case HCCL_SUCCESS: return "no error";
    case HCCL_E_PARA: return "parameter error";
    case HCCL_E_PTR: return "null pointer";
    case HCCL_E_MEMORY: return "memory error";
    case HCCL_E_INTERNAL: return "internal error";
    case HCCL_E_NOT_SUPPORT: return "not supported";
    case HCCL_E_NOT_FOUND: return "not found";
    case HCCL_E_UNAVAIL: return "unavailable";
    case HCCL_E_SYSCALL: return "system call failed";
    case HCCL_E_TIMEOUT: return "timeout";
    case HCCL_E_TCP_CONNECT: return "ranks cannot reach each other";
    case HCCL_E_RUNTIME: return "runtime error";
    case HCCL_E_REMOTE: return "another rank failed";
    default: return "HCCL error";
    }
}
