// Moves the messages of one collective between this rank and the others, all at once, through the channels of the segment.
//
// Each message begins with a descriptor of the call it belongs to, which the receiver compares with its own call: ranks that
// disagree get an error that names both, before a number of that message is touched.
#pragma once

#include "segment.h"

#include <deque>
#include <string>
#include <vector>

namespace simnpu::hccl {

// A call as its rank describes it to the others. Fields that a call does not have are zero.
struct Descriptor {
    char call[24]; // "HcclAllReduce"
    uint32_t type;
    uint32_t op;
    uint32_t root;
    uint32_t phase;
    uint64_t count;
    uint64_t bytes;  // of the message's data, which follow
    uint64_t number; // of the call among the rank's calls on this communicator, from 1
    uint32_t has;    // which of the fields above the call has: kHas…
};

constexpr uint32_t kHasType = 1;
constexpr uint32_t kHasOp = 2;
constexpr uint32_t kHasRoot = 4;
constexpr uint32_t kHasCount = 8;

std::string describe(const Descriptor& descriptor); // "HcclAllReduce(sum, 4 x float32)"

class Exchange {
public:
    // `name`: of the communicator, for messages; `call`: what this rank is doing.
    Exchange(Segment& segment, std::string name, const Descriptor& call, const Limit& limit);

    // Messages between two ranks arrive in the order in which they were sent. The memory must stay until run() returns.
    void send(uint32_t to, const void* data, uint64_t bytes);
    void receive(uint32_t from, void* into, uint64_t bytes);
    // The same for messages of point-to-point calls, which describe themselves.
    void send(uint32_t to, const Descriptor& message, const void* data);
    void receive(uint32_t from, const Descriptor& expected, void* into);
    // From every other rank `bytes`, combined with `own` in rank order into `into` (which may be `own`).
    void reduce(const void* own, void* into, uint64_t bytes);

    Problem run();

private:
    struct Outgoing {
        Descriptor message;
        const char* data;
        uint64_t done = 0;
        bool begun = false;
    };
    struct Incoming {
        Descriptor expected;
        char* into; // nullptr: its data are for the reduction
        uint64_t done = 0;
        bool begun = false;
    };
    struct Peer {
        std::deque<Outgoing> out;
        std::deque<Incoming> in;
        bool finished() const { return out.empty() && in.empty(); }
    };

    bool move(Problem& problem);
    bool move_out(uint32_t to);
    bool move_in(uint32_t from, Problem& problem);
    bool move_reduction();
    Problem compare(uint32_t from, const Descriptor& theirs, const Descriptor& expected);
    std::string waiting_for(uint32_t rank) const;
    std::string here() const; // "HcclAllReduce(sum, 4 x float32), call 3 of rank 0 on communicator world"
    Problem broken(const std::string& why, HcclResult code);

    Segment& segment_;
    std::string name_;
    Descriptor call_;
    Limit limit_;
    std::vector<Peer> peers_;
    bool reducing_ = false;
    const char* own_ = nullptr;
    char* reduced_ = nullptr;
    uint64_t reduce_bytes_ = 0;
    uint64_t reduce_done_ = 0;
};

} // namespace simnpu::hccl
