#include "sharing.h"

#include "simnpu/core.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

namespace simnpu {

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free,
              "atomics in memory shared between processes must not need a lock of one of them");

// The layout of the memfd. A fresh one is all zero, which is what every field starts from.
struct OfferPages {
    static constexpr uint32_t kPlaces = 4096;
    static constexpr uint64_t kMagic = 0x31726566666f6e73ULL;

    std::atomic<uint64_t> magic;
    Offer offers[kPlaces];
};

class OfferBook {
public:
    OfferBook(int fd, OfferPages* pages) : fd_(fd), pages_(pages) {}
    ~OfferBook() {
        ::munmap(pages_, sizeof(OfferPages));
        if (fd_ >= 0) ::close(fd_);
    }
    OfferBook(const OfferBook&) = delete;
    OfferBook& operator=(const OfferBook&) = delete;

    int fd() const { return fd_; }
    OfferPages& pages() { return *pages_; }

private:
    int fd_; // -1: of another process, only mapped
    OfferPages* pages_;
};

namespace {

// An id: 22 bits process (Linux has no larger ones), 12 bits file descriptor, 12 bits place, 18 bits check.
constexpr int kPidBits = 22;
constexpr int kFdBits = 12;
constexpr int kPlaceBits = 12;
constexpr int kCheckBits = 18;
static_assert(kPidBits + kFdBits + kPlaceBits + kCheckBits == 64 && OfferPages::kPlaces == 1U << kPlaceBits);

constexpr uint64_t mask(int bits) {
    return (1ULL << bits) - 1;
}

struct Id {
    pid_t pid;
    int fd;
    uint32_t place;
    uint32_t check;

    uint64_t packed() const {
        return (((static_cast<uint64_t>(pid) << kFdBits | static_cast<uint64_t>(fd)) << kPlaceBits | place) << kCheckBits) | check;
    }
    static Id from(uint64_t id) {
        return {static_cast<pid_t>(id >> (kFdBits + kPlaceBits + kCheckBits)),
                static_cast<int>(id >> (kPlaceBits + kCheckBits) & mask(kFdBits)),
                static_cast<uint32_t>(id >> kCheckBits & mask(kPlaceBits)), static_cast<uint32_t>(id & mask(kCheckBits))};
    }
};

struct Books {
    std::mutex mutex;
    std::shared_ptr<OfferBook> own;
    pid_t own_pid = 0;
    std::map<std::pair<dev_t, ino_t>, std::weak_ptr<OfferBook>> others;
};

Books& books() {
    static Books& instance = *new Books;
    return instance;
}

std::string path_of(pid_t pid, int fd) {
    return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
}

std::shared_ptr<OfferBook> map_book(int fd, bool keep_fd) {
    void* pages = ::mmap(nullptr, sizeof(OfferPages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (pages == MAP_FAILED) return nullptr;
    return std::make_shared<OfferBook>(keep_fd ? fd : -1, static_cast<OfferPages*>(pages));
}

// With the books locked. This process's own, made with its first offer.
std::shared_ptr<OfferBook> own_book() {
    auto& all = books();
    if (all.own && all.own_pid == ::getpid()) return all.own;
    const int fd = ::memfd_create("simnpu-offers", MFD_CLOEXEC);
    if (fd < 0 || static_cast<uint64_t>(fd) > mask(kFdBits) || ::ftruncate(fd, sizeof(OfferPages)) != 0) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot share anything with other processes: %s",
             fd > 0 && static_cast<uint64_t>(fd) > mask(kFdBits) ? "too many files are open" : std::strerror(errno));
        if (fd >= 0) ::close(fd);
        return nullptr;
    }
    auto book = map_book(fd, true);
    if (!book) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot share anything with other processes: %s", std::strerror(errno));
        ::close(fd);
        return nullptr;
    }
    book->pages().magic.store(OfferPages::kMagic);
    all.own = book;
    all.own_pid = ::getpid();
    return book;
}

aclError not_there(const Id& id) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "what process %d offered is not there: it was freed or withdrawn, the process has ended, or the key is wrong",
                static_cast<int>(id.pid));
}

aclError open_book(const Id& id, std::shared_ptr<OfferBook>& out) {
    auto& all = books();
    std::lock_guard lock(all.mutex);
    if (id.pid == ::getpid()) {
        if (!all.own || all.own_pid != id.pid || all.own->fd() != id.fd) return not_there(id);
        out = all.own;
        return ACL_SUCCESS;
    }
    const int fd = ::open(path_of(id.pid, id.fd).c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        if (errno == EACCES || errno == EPERM)
            return fail(ACL_ERROR_RT_PARAM_INVALID, "this process must not look into process %d, which offers the memory: %s",
                        static_cast<int>(id.pid), std::strerror(errno));
        return not_there(id);
    }
    struct stat facts {};
    if (::fstat(fd, &facts) != 0 || static_cast<size_t>(facts.st_size) != sizeof(OfferPages)) {
        ::close(fd);
        return not_there(id);
    }
    auto& known = all.others[{facts.st_dev, facts.st_ino}];
    out = known.lock();
    if (!out) {
        out = map_book(fd, false);
        if (out && out->pages().magic.load() != OfferPages::kMagic) out = nullptr;
        known = out;
    }
    ::close(fd);
    return out ? ACL_SUCCESS : not_there(id);
}

// Ended, or ended and only waiting to be collected by its parent.
bool has_ended(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return true;
    // The second field is the program's name in parentheses and may contain anything.
    const auto at = line.rfind(')');
    return at == std::string::npos || at + 2 >= line.size() || line[at + 2] == 'Z' || line[at + 2] == 'X';
}

} // namespace

aclError make_offer(OfferKind kind, int fd, uint64_t offset, uint64_t size, bool anyone, uint64_t& id, FoundOffer& out) {
    auto& all = books();
    std::lock_guard lock(all.mutex);
    auto book = own_book();
    if (!book) return ACL_ERROR_RT_MEMORY_ALLOCATION;
    for (uint32_t place = 0; place < OfferPages::kPlaces; ++place) {
        Offer& offer = book->pages().offers[place];
        if (offer.open.load() != 0) continue;
        uint32_t check = 0;
        if (::getrandom(&check, sizeof check, 0) != sizeof check)
            return fail(ACL_ERROR_RT_INTERNAL_ERROR, "the host gives no random number: %s", std::strerror(errno));
        offer.kind = kind;
        offer.check = check & static_cast<uint32_t>(mask(kCheckBits));
        offer.fd = fd;
        offer.offset = offset;
        offer.size = size;
        offer.anyone = anyone ? 1 : 0;
        offer.allowed_count.store(0);
        if (kind == OfferKind::event) {
            offer.event.recorded.store(0);
            for (auto& mark : offer.event.marks) {
                mark.begun.store(0);
                mark.stream.store(0);
                mark.done.store(0);
                mark.failure.store(ACL_SUCCESS);
            }
        }
        offer.open.store(1);
        id = Id{::getpid(), book->fd(), place, offer.check}.packed();
        out = {book, &offer, ::getpid()};
        return ACL_SUCCESS;
    }
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "this process shares %u things already, no more are simulated",
                OfferPages::kPlaces);
}

aclError find_offer(uint64_t packed, OfferKind kind, FoundOffer& out) {
    const Id id = Id::from(packed);
    std::shared_ptr<OfferBook> book;
    if (auto result = open_book(id, book)) return result;
    Offer& offer = book->pages().offers[id.place];
    if (offer.open.load() == 0 || offer.check != id.check || offer.kind != kind) return not_there(id);
    if (offer.anyone == 0 && id.pid != ::getpid()) {
        const uint32_t count = std::min(offer.allowed_count.load(), Offer::kMostAllowed);
        const auto self = static_cast<int32_t>(::getpid());
        if (std::none_of(offer.allowed, offer.allowed + count, [self](const auto& pid) { return pid.load() == self; }))
            return fail(ACL_ERROR_RT_PARAM_INVALID, "process %d has not allowed this process (%d) to use its memory",
                        static_cast<int>(id.pid), self);
    }
    out = {std::move(book), &offer, id.pid};
    return ACL_SUCCESS;
}

aclError allow_processes(uint64_t packed, OfferKind kind, const int32_t* pids, size_t count) {
    if (!pids || count == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "no process is given");
    const Id id = Id::from(packed);
    if (id.pid != ::getpid())
        return fail(ACL_ERROR_RT_PARAM_INVALID, "only process %d, which offers the memory, can allow others to use it",
                    static_cast<int>(id.pid));
    FoundOffer found;
    if (auto result = find_offer(packed, kind, found)) return result;
    std::lock_guard lock(books().mutex);
    const uint32_t already = found.offer->allowed_count.load();
    if (count > Offer::kMostAllowed - already)
        return fail(ACL_ERROR_RT_PARAM_INVALID, "%zu processes more, but only %u in all can be allowed", count,
                    Offer::kMostAllowed);
    for (size_t i = 0; i < count; ++i) found.offer->allowed[already + i].store(pids[i]);
    found.offer->allowed_count.store(already + static_cast<uint32_t>(count));
    return ACL_SUCCESS;
}

void withdraw_offer(uint64_t packed) {
    const Id id = Id::from(packed);
    auto& all = books();
    std::lock_guard lock(all.mutex);
    if (!all.own || all.own_pid != id.pid || id.pid != ::getpid()) return;
    Offer& offer = all.own->pages().offers[id.place];
    if (offer.check == id.check) offer.open.store(0);
}

int open_offered_file(const FoundOffer& found) {
    const int fd = ::open(path_of(found.pid, found.offer->fd).c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fail(ACL_ERROR_RT_PARAM_INVALID, "the memory of process %d cannot be opened: %s", static_cast<int>(found.pid),
             std::strerror(errno));
    return fd;
}

void id_to_text(uint64_t id, char* text) {
    std::snprintf(text, kIdTextBytes, "simnpu-%016llx", static_cast<unsigned long long>(id));
}

bool text_to_id(const char* text, uint64_t& id) {
    if (::strnlen(text, kIdTextBytes) != kIdTextBytes - 1 || std::strncmp(text, "simnpu-", 7) != 0) return false;
    char* end = nullptr;
    id = std::strtoull(text + 7, &end, 16);
    return *end == '\0';
}

aclError SharedEvent::begin(uint64_t stream, uint64_t& number) {
    const auto self = static_cast<uint64_t>(::getpid());
    number = recorded.load();
    do {
        const Mark& place = marks[(number + 1) % kMarks];
        const uint64_t begun = place.begun.load();
        const uint64_t earlier = begun >> kPidBits;
        // A stream passes its recordings in order, so whoever waits for the earlier one may as well wait for the later.
        const bool in_order = (begun & mask(kPidBits)) == self && stream != 0 && place.stream.load() == stream;
        if (earlier > place.done.load() && !in_order && !has_ended(static_cast<pid_t>(begun & mask(kPidBits))))
            return fail(ACL_ERROR_RT_INTERNAL_ERROR,
                        "the event is shared with other processes and %llu recordings of several streams are under way; no more "
                        "are simulated", static_cast<unsigned long long>(kMarks));
    } while (!recorded.compare_exchange_weak(number, number + 1));
    ++number;
    Mark& place = marks[number % kMarks];
    place.stream.store(stream);
    place.begun.store(number << kPidBits | self);
    return ACL_SUCCESS;
}

void SharedEvent::pass(uint64_t number, aclError failure) {
    Mark& mark = marks[number % kMarks];
    mark.failure.store(failure);
    mark.done.store(number);
    doorbell.fetch_add(1);
    // Not FUTEX_PRIVATE_FLAG: who waits is in another process.
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&doorbell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool SharedEvent::passed(uint64_t number) const {
    return marks[number % kMarks].done.load() >= number;
}

aclError SharedEvent::problem(uint64_t number) const {
    const Mark& mark = marks[number % kMarks];
    const auto pid = static_cast<int>(mark.begun.load() & mask(kPidBits));
    if (!passed(number))
        return fail(ACL_ERROR_RT_TASK_ABORT_STOP, "process %d ended before its stream reached the event it had recorded", pid);
    if (const aclError failure = mark.failure.load(); failure != ACL_SUCCESS)
        return fail(failure, "the stream of process %d that recorded the event had failed with error %d", pid, failure);
    return ACL_SUCCESS;
}

bool SharedEvent::can_pass(uint64_t number) const {
    const uint64_t begun = marks[number % kMarks].begun.load();
    return begun >> kPidBits != number || !has_ended(static_cast<pid_t>(begun & mask(kPidBits))) || passed(number);
}

void SharedEvent::sleep(uint32_t seen) {
    const timespec look{0, 20'000'000};
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&doorbell), FUTEX_WAIT, seen, &look, nullptr, 0);
}

} // namespace simnpu
