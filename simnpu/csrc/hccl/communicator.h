// A communicator as one rank holds it, and the order in which its calls run.
#pragma once

#include "exchange.h"
#include "segment.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace simnpu::hccl {

struct Communicator {
    std::string name;
    int32_t device = 0;
    Limit limit; // of waiting inside a call
    std::unique_ptr<Segment> segment;

    uint32_t rank() const { return segment->rank(); }
    uint32_t ranks() const { return segment->ranks(); }

    // Calls of one communicator run one at a time, in the order in which the host made them whatever their streams: the other
    // ranks take them in that order. A call that was captured into a graph runs when its turn comes in the graph's stream.
    std::mutex mutex; // guards the next four
    std::condition_variable turn;
    std::set<uint64_t> waiting; // calls made and neither finished nor dropped
    uint64_t made = 0;
    bool running = false;

    uint64_t calls = 0; // run so far; only the one that has the turn touches it
};

using Body = std::function<Problem(Communicator&, uint64_t number)>;

// The communicator of a handle; refuses if there is none.
HcclResult find(HcclComm handle, std::shared_ptr<Communicator>& out);

// Queues `body` as a task of the stream. Once the communicator is broken the task fails, and with it the
// stream: torch_npu makes calls from a thread whose errors do not reach every later operation, a stream's errors do.
HcclResult submit(const std::shared_ptr<Communicator>& communicator, aclrtStream stream, Body body);

} // namespace simnpu::hccl
