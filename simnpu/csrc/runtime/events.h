// Events: marks in a stream, with the time at which the stream passed them.
#pragma once

#include "recording.h"
#include "sharing.h"
#include "streams.h"

namespace simnpu {

struct Event {
    aclrtEvent handle = nullptr;
    uint32_t id = 0;
    int32_t device = 0;
    uint32_t flags = 0;
    std::mutex mutex;
    std::condition_variable signalled_changed;
    std::shared_ptr<Recording> latest;
    bool signalled = false; // ACL_EVENT_EXTERNAL: what waits inside a replayed graph look at
    std::atomic<int> pending_waits{0};
    // ACL_EVENT_IPC: what the processes have in common. There from the first handle for others on; guarded by the mutex until then.
    FoundOffer shared;
    uint64_t offer = 0;  // what others open it by
    bool opened = false; // made by another process

    SharedEvent* between_processes() {
        std::lock_guard lock(mutex);
        return shared.offer ? &shared.offer->event : nullptr;
    }
    ~Event() {
        if (offer != 0 && !opened) withdraw_offer(offer);
    }
};

HandleTable<Event>& events();

} // namespace simnpu
