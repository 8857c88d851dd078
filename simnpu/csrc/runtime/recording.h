// What an event records, and what a graph capture knows of it.
#pragma once

#include "errors.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace simnpu {

struct Capture;
struct Stream;

// One recording of an event. A wait holds on to the recording it saw, so that recording again does not disturb it.
struct Recording {
    std::mutex mutex;
    std::condition_variable passed;
    bool done = false;
    int64_t nanoseconds = 0;
    Failure failure; // of the stream when it passed the mark
    std::function<void(aclError)> publish; // to other processes, if the event was shared while this was under way

    // Set if recorded on a stream that was being captured: which work of which stream comes before (by node count).
    std::shared_ptr<Capture> capture;
    std::map<const Stream*, size_t> before;
};

} // namespace simnpu
