// The memory that the ranks of one communicator share, and how they find it and each other.
//
// It is a memfd: the process that makes the root information holds it open until every rank has mapped it, the others open it
// as /proc/PID/fd/N. It has no name in any file system, so however a process ends, nothing is left behind.
#pragma once

#include "api.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace simnpu::hccl {

constexpr uint32_t kMaxRanks = 128;
constexpr uint32_t kSlots = 4; // per channel
constexpr uint32_t kBoardEntries = 64;

// Atomics in memory that several processes map must not hide a lock, which would be private to one of them.
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// What the root information blob carries.
struct RootInfo {
    char magic[16];
    uint64_t id[2];
    uint64_t start_time; // of the process, so that a reused pid is recognised
    uint64_t pid_namespace;
    int32_t pid;
    int32_t fd;
    char host[64];
};
static_assert(sizeof(RootInfo) <= HCCL_ROOT_INFO_BYTES);

enum RankState : uint32_t { kAbsent, kArriving, kJoined, kLeft };

struct alignas(64) RankSlot {
    std::atomic<uint32_t> state; // the release store of kJoined publishes the three fields below
    int32_t pid;
    int32_t device;
    uint64_t start_time;
    // Rung by whoever changed something this rank may be waiting for.
    alignas(64) std::atomic<uint32_t> doorbell;
    std::atomic<uint32_t> sleepers;
};

// How the first rank of a sub-communicator tells the others where its memory is.
struct BoardEntry {
    std::atomic<uint32_t> state; // 0 free, 1 being written, 2 readable (release / acquire orders the rest)
    uint64_t group;
    RootInfo info;
};

// Ring of fixed slots from one rank to another: one writer, one reader. `written` is stored by the writer alone, with release
// after the payload; `read` by the reader alone, with release after it is done with the payload. Each loads the other's with
// acquire, so a slot is never touched by both.
struct Channel {
    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> read;
};

struct SlotHeader {
    uint32_t bytes;
    uint32_t is_descriptor;
};

struct Header {
    uint64_t magic;
    uint64_t id[2];
    std::atomic<uint32_t> ranks;  // of the first rank that came; the others must agree
    std::atomic<uint32_t> failed; // 0 no, 1 being written, 2 readable (release / acquire orders `code` and `text`)
    uint32_t code;
    char text[900];
    BoardEntry board[kBoardEntries];
    RankSlot slots[kMaxRanks];
};

using Clock = std::chrono::steady_clock;

struct Problem {
    HcclResult code = HCCL_SUCCESS;
    std::string text;
    explicit operator bool() const { return code != HCCL_SUCCESS; }
};

// A limit of waiting; `variable` names who set it. Zero seconds: none.
struct Limit {
    double seconds = 0;
    std::string variable;
};

// HCCL_CONNECT_TIMEOUT (120) or HCCL_EXEC_TIMEOUT (1836), both in whole seconds; SIMNPU_HCCL_TIMEOUT overrides either and takes
// fractions.
Problem read_limit(const char* variable, double otherwise, Limit& out);

// One rank's view of a communicator's shared memory.
class Segment {
public:
    ~Segment();
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Makes the shared memory and fills in where to find it. It stays open until forget(info).
    static Problem create(RootInfo& info);
    static void forget(const RootInfo& info);

    // Maps the memory and takes the place of `rank`.
    static Problem enter(const RootInfo& info, uint32_t ranks, uint32_t rank, int32_t device, std::unique_ptr<Segment>& out);
    // Waits until every rank has entered.
    Problem await_all(const Limit& limit);

    uint32_t rank() const { return rank_; }
    uint32_t ranks() const { return ranks_; }
    Header& header() { return *header_; }
    uint64_t id() const { return header_->id[0]; }

    Channel& channel(uint32_t from, uint32_t to);
    SlotHeader& slot(Channel& channel, uint64_t number);
    char* payload(Channel& channel, uint64_t number);
    size_t slot_bytes() const { return slot_bytes_; }

    void ring(uint32_t rank);
    void ring_all();
    uint32_t doorbell() const { return header_->slots[rank_].doorbell.load(); }
    // Sleeps until the own doorbell is not `seen` any more, at most until it is time to look whether the others live.
    void sleep(uint32_t seen);

    // Why this rank will send nothing more: its process has ended or it destroyed its communicator; "" while it may.
    std::string gone(uint32_t rank);
    std::string who(uint32_t rank) const; // "rank 1 (pid 42, device 1)"

    // The communicator is broken for every rank from now on; the first one's reason counts. Returns that reason.
    Problem poison(Problem reason);
    std::optional<Problem> poisoned() const;

private:
    Segment() = default;
    bool ended(uint32_t rank);

    Header* header_ = nullptr;
    size_t bytes_ = 0;
    uint32_t rank_ = 0;
    uint32_t ranks_ = 0;
    size_t slot_bytes_ = 0;
    size_t channel_bytes_ = 0;
    RootInfo info_{};
    bool entered_ = false;
    std::vector<int> pidfds_; // by rank; -1 not opened, -2 known to have ended, -3 this process
};

// "1.5 s"
std::string seconds_text(double seconds);

} // namespace simnpu::hccl
