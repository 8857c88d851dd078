// What a process offers to others: device memory, physical memory, events. The offers of a process stand in one memfd that
// others open as /proc/PID/fd/N, like the memory itself: nothing has a name in a file system, so nothing is left behind.
#pragma once

#include "simnpu/cann.h"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace simnpu {

enum class OfferKind : uint32_t { memory = 1, physical, event };

// An event that several processes record and wait for. Lives in shared memory.
struct SharedEvent {
    struct Mark {
        std::atomic<uint64_t> begun;     // number of the recording, and who recorded it
        std::atomic<uint64_t> stream;    // of that process; 0: unknown
        std::atomic<uint64_t> done;      // number of the recording that was passed last
        std::atomic<int32_t> failure;    // of the stream that passed it
    };
    static constexpr uint64_t kMarks = 64; // recordings that may be under way at once, if not all of one stream

    std::atomic<uint64_t> recorded; // number of the latest recording; 0: none
    std::atomic<uint32_t> doorbell;
    Mark marks[kMarks];

    // The number of a new recording. An error if its place is taken by one under way that it may overtake.
    aclError begin(uint64_t stream, uint64_t& number);
    void pass(uint64_t number, aclError failure);
    bool passed(uint64_t number) const;
    // The failure that the recording carries, or of a recording process that ended before it was passed.
    aclError problem(uint64_t number) const;
    // False once the process that has to pass the recording has ended.
    bool can_pass(uint64_t number) const;
    // Sleeps until the event may have changed, for 20 ms at most: the caller looks again.
    void sleep(uint32_t seen);
};

struct Offer {
    static constexpr uint32_t kMostAllowed = 64;

    std::atomic<uint32_t> open; // 0: never made, or withdrawn
    OfferKind kind;
    uint32_t check; // tells this offer from earlier ones in its place
    int32_t fd;     // of the offering process
    uint64_t offset;
    uint64_t size;
    uint32_t anyone; // no list of processes
    std::atomic<uint32_t> allowed_count;
    std::atomic<int32_t> allowed[kMostAllowed];
    SharedEvent event;
};

// The offers of one process, mapped into this one.
class OfferBook;

// An offer that was found, and that keeps its place mapped.
struct FoundOffer {
    std::shared_ptr<OfferBook> book;
    Offer* offer = nullptr;
    pid_t pid = 0;
};

// Enters an offer of this process. `id` is what others open it by. Records an error if that fails.
aclError make_offer(OfferKind kind, int fd, uint64_t offset, uint64_t size, bool anyone, uint64_t& id, FoundOffer& out);

// Finds an offer of any process by its id, and checks that this process may use it.
aclError find_offer(uint64_t id, OfferKind kind, FoundOffer& out);

// Lets these processes use an offer of this process.
aclError allow_processes(uint64_t id, OfferKind kind, const int32_t* pids, size_t count);

// Nobody can open it any more; who has opened it keeps it.
void withdraw_offer(uint64_t id);

// The memory of an offer, opened for reading and writing; -1 after recording an error.
int open_offered_file(const FoundOffer& found);

// An id as text, and back; false for a text that is none.
constexpr size_t kIdTextBytes = 24; // with the zero at its end
void id_to_text(uint64_t id, char* text);
bool text_to_id(const char* text, uint64_t& id);

} // namespace simnpu
