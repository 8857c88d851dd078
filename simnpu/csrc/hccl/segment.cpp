#include "segment.h"

#include "../runtime/streams.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

namespace simnpu::hccl {
namespace {

constexpr char kMagic[16] = "simnpu-hccl-1";
constexpr uint64_t kHeaderMagic = 0x316c63637069656eULL;
constexpr const char* kMemfdName = "simnpu-hccl";
constexpr long kLookNanoseconds = 20'000'000; // how often a waiting rank looks whether the others live
constexpr int kNotOpened = -1;
constexpr int kEnded = -2;
constexpr int kThisProcess = -3;

size_t round_up(size_t value, size_t to) {
    return (value + to - 1) / to * to;
}

// The field "starttime" of /proc/PID/stat; 0 if there is no such process (any more), or it has ended and only waits to be
// collected by its parent.
uint64_t start_time(int32_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return 0;
    // The second field is the program's name in parentheses and may contain anything.
    const auto at = line.rfind(')');
    if (at == std::string::npos) return 0;
    const char* text = line.c_str() + at + 1;
    char state = 0;
    unsigned long long started = 0;
    if (std::sscanf(text, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &started) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : started;
}

uint64_t pid_namespace() {
    struct stat facts {};
    return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

std::string host_name() {
    char name[64] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

Problem system_problem(const std::string& what) {
    return {HCCL_E_SYSCALL, what + ": " + std::strerror(errno)};
}

// The memory this process made and that others may still have to open, by its identity.
struct Made {
    std::mutex mutex;
    std::map<std::pair<uint64_t, uint64_t>, int> fds;
};

Made& made() {
    static Made& instance = *new Made;
    return instance;
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
    // Not FUTEX_PRIVATE_FLAG: the waiter is in another process.
    return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

} // namespace

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
}

Problem read_limit(const char* variable, double otherwise, Limit& out) {
    for (const char* name : {"SIMNPU_HCCL_TIMEOUT", variable}) {
        const char* text = std::getenv(name);
        if (!text || !*text) continue;
        char* end = nullptr;
        const double seconds = std::strtod(text, &end);
        if (end == text || *end || !std::isfinite(seconds) || seconds < 0)
            return {HCCL_E_PARA, std::string(name) + "=" + text + " cannot be understood: give seconds, or 0 for no limit"};
        out = {seconds, name};
        return {};
    }
    out = {otherwise, variable};
    return {};
}

Problem Segment::create(RootInfo& info) {
    std::memset(&info, 0, sizeof info);
    const int fd = ::memfd_create(kMemfdName, MFD_CLOEXEC);
    if (fd < 0) return system_problem("cannot make shared memory (memfd_create)");
    if (::ftruncate(fd, sizeof(Header)) != 0) {
        auto problem = system_problem("cannot size shared memory");
        ::close(fd);
        return problem;
    }
    if (::getrandom(info.id, sizeof info.id, 0) != sizeof info.id) {
        auto problem = system_problem("no random number for the communicator");
        ::close(fd);
        return problem;
    }
    void* at = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        auto problem = system_problem("cannot map shared memory");
        ::close(fd);
        return problem;
    }
    // A new memfd is all zero, which is the first state of everything else in it. Nobody can look before the blob travels, and
    // whatever carries it orders these stores before their loads.
    auto* header = static_cast<Header*>(at);
    std::memcpy(header->id, info.id, sizeof info.id);
    header->magic = kHeaderMagic;
    ::munmap(at, sizeof(Header));
    std::memcpy(info.magic, kMagic, sizeof kMagic);
    info.pid = ::getpid();
    info.start_time = start_time(info.pid);
    info.pid_namespace = pid_namespace();
    info.fd = fd;
    std::snprintf(info.host, sizeof info.host, "%s", host_name().c_str());
    std::lock_guard lock(made().mutex);
    made().fds[{info.id[0], info.id[1]}] = fd;
    return {};
}

void Segment::forget(const RootInfo& info) {
    std::lock_guard lock(made().mutex);
    auto at = made().fds.find({info.id[0], info.id[1]});
    if (at == made().fds.end()) return; // made by another process, or forgotten before
    ::close(at->second);
    made().fds.erase(at);
}

Problem Segment::enter(const RootInfo& info, uint32_t ranks, uint32_t rank, int32_t device, std::unique_ptr<Segment>& out) {
    if (std::memcmp(info.magic, kMagic, sizeof kMagic) != 0)
        return {HCCL_E_PARA, "the root information was not made by this simulator's HcclGetRootInfo"};
    if (ranks == 0 || ranks > kMaxRanks)
        return {HCCL_E_PARA, std::to_string(ranks) + " ranks: the simulator takes 1 to " + std::to_string(kMaxRanks)};
    if (rank >= ranks) return {HCCL_E_PARA, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " ranks"};
    const std::string root = "the process that made the root information (pid " + std::to_string(info.pid) + " on host " + info.host + ")";
    if (info.pid_namespace != pid_namespace() || std::strncmp(info.host, host_name().c_str(), sizeof info.host - 1) != 0)
        return {HCCL_E_TCP_CONNECT, root + " is not on this machine or in another container: simulated ranks share the memory of one machine"};
    const bool own = info.pid == ::getpid();
    if (!own && start_time(info.pid) != info.start_time) return {HCCL_E_REMOTE, root + " has ended before rank " + std::to_string(rank) + " came"};
    const std::string path = "/proc/" + (own ? std::string("self") : std::to_string(info.pid)) + "/fd/" + std::to_string(info.fd);
    char target[64] = {};
    if (::readlink(path.c_str(), target, sizeof target - 1) < 0 && errno == EACCES)
        return {HCCL_E_SYSCALL, root + " belongs to another user, so its memory cannot be shared"};
    if (!std::strstr(target, kMemfdName))
        return {HCCL_E_REMOTE, root + " has already given up this communicator, or its root information was used before"};
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return system_problem("cannot open the shared memory of " + root);

    std::unique_ptr<Segment> segment(new Segment);
    segment->info_ = info;
    segment->rank_ = rank;
    segment->ranks_ = ranks;
    segment->pidfds_.assign(ranks, kNotOpened);
    // Every pair of ranks has a channel each way; the more there are the smaller they get. Untouched pages cost nothing.
    segment->slot_bytes_ = ranks <= 8 ? 64 << 10 : 16 << 10;
    segment->channel_bytes_ = round_up(sizeof(Channel) + kSlots * (64 + segment->slot_bytes_), 4096);
    const size_t header_bytes = round_up(sizeof(Header), 4096);
    const size_t bytes = header_bytes + static_cast<size_t>(ranks) * ranks * segment->channel_bytes_;

    // First the head alone, to see that all agree on the number of ranks: the size of the rest follows from it.
    void* at = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        auto problem = system_problem("cannot map shared memory");
        ::close(fd);
        return problem;
    }
    segment->header_ = static_cast<Header*>(at);
    segment->bytes_ = sizeof(Header);
    auto& head = *segment->header_;
    if (head.magic != kHeaderMagic || std::memcmp(head.id, info.id, sizeof info.id) != 0) {
        ::close(fd);
        return {HCCL_E_REMOTE, root + " has already given up this communicator, or its root information was used before"};
    }
    uint32_t agreed = 0;
    if (!head.ranks.compare_exchange_strong(agreed, ranks) && agreed != ranks) {
        ::close(fd);
        return segment->poison({HCCL_E_PARA, "rank " + std::to_string(rank) + " came with " + std::to_string(ranks) +
                                                 " ranks, but an earlier one with " + std::to_string(agreed)});
    }
    // Every rank sets the same size, so it does not matter who is first.
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
        auto problem = system_problem("cannot size shared memory");
        ::close(fd);
        return problem;
    }
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return system_problem("cannot map shared memory");
    ::munmap(segment->header_, sizeof(Header));
    segment->header_ = static_cast<Header*>(at);
    segment->bytes_ = bytes;
    // A forked child (a data loader's worker) takes no part and shall not keep the memory alive.
    ::madvise(at, bytes, MADV_DONTFORK);

    auto& slot = segment->header_->slots[rank];
    uint32_t expected = kAbsent;
    if (!slot.state.compare_exchange_strong(expected, kArriving))
        return segment->poison({HCCL_E_PARA, "rank " + std::to_string(rank) + " came twice: as pid " + std::to_string(::getpid()) +
                                                 " and as pid " + std::to_string(slot.pid)});
    slot.pid = ::getpid();
    slot.device = device;
    slot.start_time = start_time(slot.pid);
    slot.state.store(kJoined, std::memory_order_release);
    segment->entered_ = true;
    segment->ring_all();
    out = std::move(segment);
    return {};
}

Segment::~Segment() {
    if (entered_) {
        header_->slots[rank_].state.store(kLeft, std::memory_order_release);
        ring_all();
    }
    for (const int fd : pidfds_)
        if (fd >= 0) ::close(fd);
    if (header_) ::munmap(header_, bytes_);
}

Problem Segment::await_all(const Limit& limit) {
    const auto begin = Clock::now();
    while (true) {
        const uint32_t seen = doorbell();
        std::string missing;
        std::string here;
        uint32_t absent = 0;
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            const bool joined = header_->slots[rank].state.load(std::memory_order_acquire) >= kJoined;
            auto& list = joined ? here : missing;
            if (!joined) ++absent;
            list += (list.empty() ? "" : ", ") + std::to_string(rank);
        }
        if (auto reason = poisoned()) return *reason;
        // A rank may join, finish and leave before this one looks again: then all is well.
        if (absent == 0) return {};
        if (stopping()) return {HCCL_E_UNAVAIL, std::string(current_name()) + ": the process is ending"};
        const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
        const std::string wanted = (absent == 1 ? "rank " : "ranks ") + missing + (absent == 1 ? " has" : " have") + " not arrived";
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            if (header_->slots[rank].state.load(std::memory_order_acquire) < kJoined) continue;
            if (auto why = gone(rank); !why.empty())
                return poison({HCCL_E_REMOTE, std::string(current_name()) + ": " + why + " while the communicator was being made; " + wanted +
                                                  " after " + seconds_text(waited)});
        }
        if (info_.pid != ::getpid() && start_time(info_.pid) != info_.start_time)
            return poison({HCCL_E_REMOTE, std::string(current_name()) + ": pid " + std::to_string(info_.pid) +
                                              ", which made the root information, has ended; " + wanted + " after " + seconds_text(waited)});
        if (limit.seconds > 0 && waited > limit.seconds)
            return poison({HCCL_E_TIMEOUT, std::string(current_name()) + ": " + wanted + " after " + seconds_text(waited) + " (limit " +
                                               limit.variable + "); here: " + here + " of " + std::to_string(ranks_) +
                                               " ranks. Remedy: see why it did not start or get here, or raise the limit"});
        sleep(seen);
    }
}

Channel& Segment::channel(uint32_t from, uint32_t to) {
    char* first = reinterpret_cast<char*>(header_) + round_up(sizeof(Header), 4096);
    return *reinterpret_cast<Channel*>(first + (static_cast<size_t>(from) * ranks_ + to) * channel_bytes_);
}

SlotHeader& Segment::slot(Channel& channel, uint64_t number) {
    char* first = reinterpret_cast<char*>(&channel) + sizeof(Channel);
    return *reinterpret_cast<SlotHeader*>(first + (number % kSlots) * (64 + slot_bytes_));
}

char* Segment::payload(Channel& channel, uint64_t number) {
    return reinterpret_cast<char*>(&slot(channel, number)) + 64;
}

// Sequentially consistent on both sides: either the sleeper's futex call sees the new value, or this sees the sleeper.
void Segment::ring(uint32_t rank) {
    auto& slot = header_->slots[rank];
    slot.doorbell.fetch_add(1);
    if (slot.sleepers.load() != 0) futex(slot.doorbell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Segment::ring_all() {
    for (uint32_t rank = 0; rank < ranks_; ++rank) ring(rank);
}

void Segment::sleep(uint32_t seen) {
    auto& slot = header_->slots[rank_];
    const timespec look{0, kLookNanoseconds};
    slot.sleepers.fetch_add(1);
    futex(slot.doorbell, FUTEX_WAIT, seen, &look); // whatever it returns, the caller looks again
    slot.sleepers.fetch_sub(1);
}

bool Segment::ended(uint32_t rank) {
    int& fd = pidfds_[rank];
    if (fd == kEnded) return true;
    if (fd == kThisProcess) return false;
    const auto& slot = header_->slots[rank];
    if (fd == kNotOpened) {
        if (slot.pid == ::getpid()) {
            fd = kThisProcess;
            return false;
        }
        const auto opened = static_cast<int>(::syscall(SYS_pidfd_open, slot.pid, 0));
        // After opening: had the pid been reused before, the process behind it would be a younger one.
        if (start_time(slot.pid) != slot.start_time) {
            if (opened >= 0) ::close(opened);
            fd = kEnded;
            return true;
        }
        if (opened < 0) return false; // a kernel without pidfd: the start time alone tells, each time anew
        fd = opened;
    }
    pollfd poll{fd, POLLIN, 0};
    if (::poll(&poll, 1, 0) <= 0) return false;
    ::close(fd);
    fd = kEnded;
    return true;
}

std::string Segment::gone(uint32_t rank) {
    // Leaving first: a process that left in good order and then ended has left.
    if (header_->slots[rank].state.load(std::memory_order_acquire) == kLeft) return who(rank) + " has destroyed its communicator";
    if (ended(rank)) return who(rank) + " has died: its process has ended";
    return "";
}

std::string Segment::who(uint32_t rank) const {
    const auto& slot = header_->slots[rank];
    return "rank " + std::to_string(rank) + " (pid " + std::to_string(slot.pid) + ", device " + std::to_string(slot.device) + ")";
}

Problem Segment::poison(Problem reason) {
    uint32_t expected = 0;
    if (header_->failed.compare_exchange_strong(expected, 1)) {
        header_->code = reason.code;
        std::snprintf(header_->text, sizeof header_->text, "%s", reason.text.c_str());
        header_->failed.store(2, std::memory_order_release);
        ring_all();
        return reason;
    }
    if (auto earlier = poisoned()) return *earlier;
    return reason; // another rank is just writing down its own; both are true
}

std::optional<Problem> Segment::poisoned() const {
    if (header_->failed.load(std::memory_order_acquire) != 2) return std::nullopt;
    return Problem{static_cast<HcclResult>(header_->code), header_->text};
}

} // namespace simnpu::hccl
