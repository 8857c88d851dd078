#include "exchange.h"

#include "reduction.h"
#include "../runtime/streams.h"

#include <algorithm>
#include <cstring>

namespace simnpu::hccl {

std::string describe(const Descriptor& descriptor) {
    std::string inside;
    auto add = [&](const std::string& part) { inside += (inside.empty() ? "" : ", ") + part; };
    if (descriptor.has & kHasOp) add(reduction_name(descriptor.op));
    if (descriptor.has & kHasCount) add(std::to_string(descriptor.count) + " x " + type_name(descriptor.type));
    else if (descriptor.has & kHasType) add(type_name(descriptor.type));
    if (descriptor.has & kHasRoot) add("root " + std::to_string(descriptor.root));
    return std::string(descriptor.call, ::strnlen(descriptor.call, sizeof descriptor.call)) + "(" + inside + ")";
}

Exchange::Exchange(Segment& segment, std::string name, const Descriptor& call, const Limit& limit)
    : segment_(segment), name_(std::move(name)), call_(call), limit_(limit), peers_(segment.ranks()) {}

void Exchange::send(uint32_t to, const void* data, uint64_t bytes) {
    Descriptor message = call_;
    message.bytes = bytes;
    send(to, message, data);
}

void Exchange::receive(uint32_t from, void* into, uint64_t bytes) {
    Descriptor expected = call_;
    expected.bytes = bytes;
    receive(from, expected, into);
}

void Exchange::send(uint32_t to, const Descriptor& message, const void* data) {
    peers_[to].out.push_back({message, static_cast<const char*>(data)});
}

void Exchange::receive(uint32_t from, const Descriptor& expected, void* into) {
    peers_[from].in.push_back({expected, static_cast<char*>(into)});
}

void Exchange::reduce(const void* own, void* into, uint64_t bytes) {
    reducing_ = true;
    own_ = static_cast<const char*>(own);
    reduced_ = static_cast<char*>(into);
    reduce_bytes_ = bytes;
    for (uint32_t rank = 0; rank < segment_.ranks(); ++rank)
        if (rank != segment_.rank()) receive(rank, nullptr, bytes);
}

std::string Exchange::here() const {
    return describe(call_) + ", call " + std::to_string(call_.number) + " of rank " + std::to_string(segment_.rank()) + " on communicator " +
           name_;
}

Problem Exchange::broken(const std::string& why, HcclResult code) {
    return segment_.poison({code, here() + ": " + why});
}

Problem Exchange::compare(uint32_t from, const Descriptor& theirs, const Descriptor& expected) {
    const bool same = std::memcmp(theirs.call, expected.call, sizeof theirs.call) == 0 && theirs.has == expected.has &&
                      theirs.type == expected.type && theirs.op == expected.op && theirs.root == expected.root &&
                      theirs.phase == expected.phase && theirs.count == expected.count;
    if (!same)
        return broken("the ranks disagree: rank " + std::to_string(segment_.rank()) + " expects " + describe(expected) + ", but rank " +
                          std::to_string(from) + " calls " + describe(theirs) + " (its call " + std::to_string(theirs.number) +
                          "). Remedy: every rank must make the same calls in the same order",
                      HCCL_E_PARA);
    if (theirs.bytes != expected.bytes)
        return broken("the ranks disagree: rank " + std::to_string(from) + " sends " + std::to_string(theirs.bytes) + " bytes to rank " +
                          std::to_string(segment_.rank()) + ", which expects " + std::to_string(expected.bytes) + " from it",
                      HCCL_E_PARA);
    return {};
}

bool Exchange::move_out(uint32_t to) {
    auto& queue = peers_[to].out;
    if (queue.empty()) return false;
    Channel& channel = segment_.channel(segment_.rank(), to);
    uint64_t written = channel.written.load(std::memory_order_relaxed); // this rank alone stores it
    bool moved = false;
    while (!queue.empty() && written - channel.read.load(std::memory_order_acquire) < kSlots) {
        auto& item = queue.front();
        auto& slot = segment_.slot(channel, written);
        char* payload = segment_.payload(channel, written);
        if (!item.begun) {
            slot = {sizeof(Descriptor), 1};
            std::memcpy(payload, &item.message, sizeof(Descriptor));
            item.begun = true;
        } else {
            const auto now = std::min<uint64_t>(segment_.slot_bytes(), item.message.bytes - item.done);
            slot = {static_cast<uint32_t>(now), 0};
            std::memcpy(payload, item.data + item.done, now);
            item.done += now;
        }
        if (item.done == item.message.bytes) queue.pop_front();
        channel.written.store(++written, std::memory_order_release);
        moved = true;
    }
    if (moved) segment_.ring(to);
    return moved;
}

bool Exchange::move_in(uint32_t from, Problem& problem) {
    auto& queue = peers_[from].in;
    if (queue.empty()) return false;
    Channel& channel = segment_.channel(from, segment_.rank());
    uint64_t read = channel.read.load(std::memory_order_relaxed); // this rank alone stores it
    bool moved = false;
    while (!queue.empty() && channel.written.load(std::memory_order_acquire) != read) {
        auto& item = queue.front();
        const auto& slot = segment_.slot(channel, read);
        const char* payload = segment_.payload(channel, read);
        if (!item.begun) {
            Descriptor theirs{};
            std::memcpy(&theirs, payload, sizeof theirs);
            if (!slot.is_descriptor) {
                problem = broken("data where a message of rank " + std::to_string(from) + " should begin (an error of the simulator)", HCCL_E_INTERNAL);
                return false;
            }
            if ((problem = compare(from, theirs, item.expected))) return false;
            item.begun = true;
        } else if (!item.into) {
            break; // the reduction takes it
        } else {
            std::memcpy(item.into + item.done, payload, slot.bytes);
            item.done += slot.bytes;
        }
        if (item.done == item.expected.bytes) queue.pop_front();
        channel.read.store(++read, std::memory_order_release);
        moved = true;
    }
    if (moved) segment_.ring(from);
    return moved;
}

// One slot of every other rank at a time. All cut their data alike, so the slots hold the same elements.
bool Exchange::move_reduction() {
    bool moved = false;
    while (reduce_done_ < reduce_bytes_) {
        const auto now = std::min<uint64_t>(segment_.slot_bytes(), reduce_bytes_ - reduce_done_);
        std::vector<const void*> sources(segment_.ranks());
        for (uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
            if (rank == segment_.rank()) {
                sources[rank] = own_ + reduce_done_;
                continue;
            }
            const auto& queue = peers_[rank].in;
            Channel& channel = segment_.channel(rank, segment_.rank());
            const uint64_t read = channel.read.load(std::memory_order_relaxed);
            if (queue.empty() || !queue.front().begun || channel.written.load(std::memory_order_acquire) == read) return moved;
            sources[rank] = segment_.payload(channel, read);
        }
        combine(call_.type, call_.op, sources, reduced_ + reduce_done_, now / size_of(call_.type));
        reduce_done_ += now;
        for (uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
            if (rank == segment_.rank()) continue;
            auto& queue = peers_[rank].in;
            queue.front().done += now;
            if (queue.front().done == reduce_bytes_) queue.pop_front();
            auto& read = segment_.channel(rank, segment_.rank()).read;
            read.store(read.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            segment_.ring(rank);
        }
        moved = true;
    }
    return moved;
}

bool Exchange::move(Problem& problem) {
    bool moved = false;
    for (uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
        if (rank == segment_.rank()) continue;
        moved |= move_out(rank);
        moved |= move_in(rank, problem);
        if (problem) return moved;
    }
    if (reducing_) moved |= move_reduction();
    return moved;
}

std::string Exchange::waiting_for(uint32_t rank) const {
    const auto& peer = peers_[rank];
    const bool arrived = peer.in.empty() || peer.in.front().begun;
    if (!arrived) return "rank " + std::to_string(rank) + " has not arrived";
    const bool takes = !peer.out.empty();
    return "rank " + std::to_string(rank) + (takes ? " has stopped taking its data" : " has stopped sending its data");
}

Problem Exchange::run() {
    // With one rank there is nobody to wait for, but its own contribution still has to get where it belongs.
    if (reducing_ && segment_.ranks() == 1) {
        if (reduced_ != own_) std::memmove(reduced_, own_, reduce_bytes_);
        return {};
    }
    const auto begin = Clock::now();
    auto last_move = begin;
    while (true) {
        // The order matters: a change after this load keeps sleep() from sleeping.
        const uint32_t seen = segment_.doorbell();
        Problem problem;
        bool moved = move(problem);
        if (problem) return problem;
        if (std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.finished(); })) return {};
        if (moved) {
            last_move = Clock::now();
            continue;
        }
        if (auto reason = segment_.poisoned()) return *reason;
        if (stopping()) return {HCCL_E_UNAVAIL, here() + ": the process is ending"};
        const auto now = Clock::now();
        const std::string waited = seconds_text(std::chrono::duration<double>(now - begin).count());
        for (uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
            if (rank == segment_.rank() || peers_[rank].finished()) continue;
            auto why = segment_.gone(rank);
            if (why.empty()) continue;
            // What it sent before it went still counts.
            moved = move(problem);
            if (problem) return problem;
            if (moved) break;
            return broken(why + "; waited " + waited, HCCL_E_REMOTE);
        }
        if (moved) continue;
        if (limit_.seconds > 0 && std::chrono::duration<double>(now - last_move).count() > limit_.seconds) {
            std::string whom;
            for (uint32_t rank = 0; rank < segment_.ranks(); ++rank)
                if (rank != segment_.rank() && !peers_[rank].finished()) whom += (whom.empty() ? "" : ", ") + waiting_for(rank);
            return broken(whom + " after " + waited + " (limit " + limit_.variable +
                              "). Remedy: see what keeps it from making this call, or raise the limit",
                          HCCL_E_TIMEOUT);
        }
        segment_.sleep(seen);
    }
}

} // namespace simnpu::hccl
