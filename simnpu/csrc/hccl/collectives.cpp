// The collectives: each describes its call, says what goes where, and leaves the moving to Exchange.
#include "communicator.h"
#include "reduction.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace simnpu::hccl {
namespace {

using Counts = std::vector<uint64_t>;

Descriptor describe_call(const char* call = current_name()) {
    Descriptor descriptor{};
    std::strncpy(descriptor.call, call, sizeof descriptor.call - 1);
    return descriptor;
}

Descriptor describe_call(HcclDataType type, const char* call = current_name()) {
    Descriptor descriptor = describe_call(call);
    descriptor.type = static_cast<uint32_t>(type);
    descriptor.has = kHasType;
    return descriptor;
}

Descriptor describe_call(HcclDataType type, uint64_t count, const char* call = current_name()) {
    Descriptor descriptor = describe_call(type, call);
    descriptor.count = count;
    descriptor.has |= kHasCount;
    return descriptor;
}

Descriptor with_op(Descriptor descriptor, HcclReduceOp op) {
    descriptor.op = static_cast<uint32_t>(op);
    descriptor.has |= kHasOp;
    return descriptor;
}

Descriptor with_root(Descriptor descriptor, uint32_t root) {
    descriptor.root = root;
    descriptor.has |= kHasRoot;
    return descriptor;
}

const char* at(const void* base, uint64_t bytes) {
    return static_cast<const char*>(base) + bytes;
}

char* at(void* base, uint64_t bytes) {
    return static_cast<char*>(base) + bytes;
}

void copy_own(void* into, const void* from, uint64_t bytes) {
    if (bytes != 0 && into != from) std::memmove(into, from, bytes);
}

// At most 2^64 - 1, which no memory has: a count that is far too large must not come out small.
uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t plus(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t bytes_of(uint64_t count, HcclDataType type) {
    return times(count, size_of(static_cast<uint32_t>(type)));
}

// What every call asks first. Checks before anything is queued, so that the caller's line is in the traceback.
class Checked {
public:
    explicit Checked(HcclComm handle) { result_ = find(handle, communicator_); }

    Checked& type(HcclDataType type) {
        if (ok() && size_of(static_cast<uint32_t>(type)) == 0)
            result_ = refuse(HCCL_E_NOT_SUPPORT, "unknown data type %d", static_cast<int>(type));
        return *this;
    }
    Checked& reduction(HcclDataType type, HcclReduceOp op) {
        if (ok() && !can_reduce(static_cast<uint32_t>(type), static_cast<uint32_t>(op)))
            result_ = refuse(HCCL_E_NOT_SUPPORT, "reduction %d (%s) of %s is not simulated", static_cast<int>(op),
                             reduction_name(static_cast<uint32_t>(op)), type_name(static_cast<uint32_t>(type)));
        return *this;
    }
    Checked& rank(const char* what, uint32_t rank) {
        if (ok() && rank >= communicator_->ranks())
            result_ = refuse(HCCL_E_PARA, "%s %u of a communicator of %u ranks", what, rank, communicator_->ranks());
        return *this;
    }
    Checked& memory(const char* what, const void* p, uint64_t bytes) {
        if (ok() && bytes != 0 && !owns(p, bytes))
            result_ = refuse(HCCL_E_PARA, "%s (%llu bytes at %p) does not lie in live device memory", what,
                             static_cast<unsigned long long>(bytes), p);
        if (const auto far = ok() && bytes != 0 ? out_of_reach(p) : std::nullopt)
            result_ = refuse(HCCL_E_PARA, "%s is memory of device %d, which device %d cannot reach", what, far->owner, far->here);
        return *this;
    }
    Checked& present(const char* what, const void* p) {
        if (ok() && !p) result_ = refuse(HCCL_E_PTR, "%s is null", what);
        return *this;
    }

    bool ok() const { return result_ == HCCL_SUCCESS; }
    HcclResult result() const { return result_; }
    const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
    uint32_t ranks() const { return communicator_->ranks(); }

private:
    std::shared_ptr<Communicator> communicator_;
    HcclResult result_;
};

Exchange exchange_for(Communicator& c, Descriptor descriptor, uint64_t number, uint32_t phase = 0) {
    descriptor.number = number;
    descriptor.phase = phase;
    return Exchange(*c.segment, c.name, descriptor, c.limit);
}

Counts read_counts(const void* counts, uint32_t n) {
    Counts copied(n);
    if (counts) std::memcpy(copied.data(), counts, n * sizeof(uint64_t));
    return copied;
}

// Bytes from a buffer's start to the end of its last part.
uint64_t extent(const Counts& counts, const Counts& places, uint64_t element) {
    uint64_t end = 0;
    for (size_t i = 0; i < counts.size(); ++i)
        if (counts[i] != 0) end = std::max(end, times(plus(places[i], counts[i]), element));
    return end;
}

HcclResult all_to_all(Checked& checked, const void* send, Counts send_counts, Counts send_places, const void* receive,
                      Counts receive_counts, Counts receive_places, HcclDataType type, Descriptor descriptor, aclrtStream stream) {
    const uint64_t element = size_of(static_cast<uint32_t>(type));
    void* into = const_cast<void*>(receive);
    checked.memory("the send buffer", send, extent(send_counts, send_places, element));
    checked.memory("the receive buffer", into, extent(receive_counts, receive_places, element));
    if (!checked.ok()) return checked.result();
    const uint32_t own = checked.communicator()->rank();
    if (send_counts[own] != receive_counts[own])
        return refuse(HCCL_E_PARA, "rank %u sends itself %llu elements but expects %llu", own,
                      static_cast<unsigned long long>(send_counts[own]), static_cast<unsigned long long>(receive_counts[own]));
    return submit(checked.communicator(), stream,
                  [=, send_counts = std::move(send_counts), send_places = std::move(send_places),
                   receive_counts = std::move(receive_counts), receive_places = std::move(receive_places)](Communicator& c, uint64_t number) {
                      auto exchange = exchange_for(c, descriptor, number);
                      for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
                          const char* from = at(send, send_places[rank] * element);
                          char* to = at(into, receive_places[rank] * element);
                          if (rank == c.rank()) {
                              copy_own(to, from, send_counts[rank] * element);
                              continue;
                          }
                          exchange.send(rank, from, send_counts[rank] * element);
                          exchange.receive(rank, to, receive_counts[rank] * element);
                      }
                      return exchange.run();
                  });
}

HcclResult all_gather(Checked& checked, const void* send, void* into, Counts counts, Counts places, HcclDataType type,
                      Descriptor descriptor, aclrtStream stream) {
    const uint64_t element = size_of(static_cast<uint32_t>(type));
    const uint64_t own_bytes = checked.ok() ? times(counts[checked.communicator()->rank()], element) : 0;
    checked.memory("the send buffer", send, own_bytes).memory("the receive buffer", into, extent(counts, places, element));
    if (!checked.ok()) return checked.result();
    return submit(checked.communicator(), stream,
                  [=, counts = std::move(counts), places = std::move(places)](Communicator& c, uint64_t number) {
                      auto exchange = exchange_for(c, descriptor, number);
                      for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
                          if (rank == c.rank()) continue;
                          exchange.send(rank, send, own_bytes);
                          exchange.receive(rank, at(into, places[rank] * element), counts[rank] * element);
                      }
                      copy_own(at(into, places[c.rank()] * element), send, own_bytes);
                      return exchange.run();
                  });
}

HcclResult reduce_scatter(Checked& checked, const void* send, void* into, Counts counts, Counts places,
                          HcclDataType type, Descriptor descriptor, aclrtStream stream) {
    const uint64_t element = size_of(static_cast<uint32_t>(type));
    const uint64_t own_bytes = checked.ok() ? times(counts[checked.communicator()->rank()], element) : 0;
    checked.memory("the send buffer", send, extent(counts, places, element)).memory("the receive buffer", into, own_bytes);
    if (!checked.ok()) return checked.result();
    return submit(checked.communicator(), stream,
                  [=, counts = std::move(counts), places = std::move(places)](Communicator& c, uint64_t number) {
                      auto exchange = exchange_for(c, descriptor, number);
                      for (uint32_t rank = 0; rank < c.ranks(); ++rank)
                          if (rank != c.rank()) exchange.send(rank, at(send, places[rank] * element), counts[rank] * element);
                      exchange.reduce(at(send, places[c.rank()] * element), into, own_bytes);
                      return exchange.run();
                  });
}

Counts equal_counts(uint32_t n, uint64_t count) {
    return Counts(n, count);
}

Counts equal_places(uint32_t n, uint64_t count) {
    Counts places(n);
    for (uint32_t i = 0; i < n; ++i) places[i] = times(i, count);
    return places;
}

struct Item {
    bool send;
    void* buffer;
    uint64_t count;
    HcclDataType type;
    uint32_t peer;
};

Descriptor describe_item(const Item& item) {
    // A receiver expects the description of the sender's call.
    return describe_call(item.type, item.count, "HcclSend");
}

// Sends to the own rank meet the receives from it in order, on the spot.
Problem copy_to_self(const std::vector<Item>& items, uint32_t self) {
    std::vector<const Item*> sends;
    std::vector<const Item*> receives;
    for (const auto& item : items)
        if (item.peer == self) (item.send ? sends : receives).push_back(&item);
    if (sends.size() != receives.size())
        return {HCCL_E_PARA, std::string(current_name()) + ": rank " + std::to_string(self) + " sends itself " + std::to_string(sends.size()) +
                                 " messages and receives " + std::to_string(receives.size()) + " from itself"};
    for (size_t i = 0; i < sends.size(); ++i) {
        const auto sent = describe_item(*sends[i]);
        const auto expected = describe_item(*receives[i]);
        if (std::memcmp(&sent, &expected, sizeof sent) != 0)
            return {HCCL_E_PARA, std::string(current_name()) + ": rank " + std::to_string(self) + " sends itself " + describe(sent) + " and expects " +
                                     describe(expected)};
        copy_own(receives[i]->buffer, sends[i]->buffer, bytes_of(sends[i]->count, sends[i]->type));
    }
    return {};
}

HcclResult point_to_point(const std::shared_ptr<Communicator>& communicator, std::vector<Item> items, aclrtStream stream) {
    Descriptor descriptor = items.size() == 1 ? describe_call(items[0].type, items[0].count) : describe_call();
    return submit(communicator, stream, [=, items = std::move(items)](Communicator& c, uint64_t number) -> Problem {
        if (auto problem = copy_to_self(items, c.rank())) return problem;
        auto exchange = exchange_for(c, descriptor, number);
        for (const auto& item : items) {
            if (item.peer == c.rank()) continue;
            Descriptor message = describe_item(item);
            message.bytes = bytes_of(item.count, item.type);
            message.number = number;
            if (item.send) exchange.send(item.peer, message, item.buffer);
            else exchange.receive(item.peer, message, item.buffer);
        }
        return exchange.run();
    });
}

HcclResult check_item(HcclComm comm, const Item& item, std::shared_ptr<Communicator>& out) {
    Checked checked(comm);
    checked.type(item.type).rank(item.send ? "destination" : "source", item.peer);
    checked.memory(item.send ? "the send buffer" : "the receive buffer", item.buffer, bytes_of(item.count, item.type));
    if (checked.ok()) out = checked.communicator();
    return checked.result();
}

// Sends and receives between HcclGroupStart and HcclGroupEnd, which run together.
struct Deferred {
    std::shared_ptr<Communicator> communicator;
    aclrtStream stream;
    std::vector<Item> items;
};
thread_local int t_group_depth = 0;
thread_local std::vector<Deferred> t_deferred;

HcclResult one_item(HcclComm comm, const Item& item, aclrtStream stream) {
    std::shared_ptr<Communicator> communicator;
    if (auto result = check_item(comm, item, communicator)) return result;
    if (t_group_depth == 0) {
        if (item.peer == communicator->rank())
            return refuse(HCCL_E_PARA, "rank %u and itself: only a batch can hold both halves", item.peer);
        return point_to_point(communicator, {item}, stream);
    }
    for (auto& group : t_deferred)
        if (group.communicator == communicator && group.stream == stream) {
            group.items.push_back(item);
            return HCCL_SUCCESS;
        }
    t_deferred.push_back({communicator, stream, {item}});
    return HCCL_SUCCESS;
}

// Part `rank` of `count` elements shared out among `ranks`: the first ones take one more each.
uint64_t part_begin(uint64_t count, uint32_t ranks, uint32_t rank) {
    return count / ranks * rank + std::min<uint64_t>(count % ranks, rank);
}

} // namespace
} // namespace simnpu::hccl

using namespace simnpu;
using namespace simnpu::hccl;

// Every rank reduces its part of the elements, then hands it to the others: all get the same numbers, bit for bit.
SIMNPU_EXPORT HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                       aclrtStream stream) {
    HCCL_CALL("HcclAllReduce", "count=%llu type=%d op=%d comm=%p", static_cast<unsigned long long>(count), static_cast<int>(dataType),
              static_cast<int>(op), comm);
    Checked checked(comm);
    checked.type(dataType).reduction(dataType, op);
    const uint64_t element = size_of(static_cast<uint32_t>(dataType));
    const uint64_t bytes = bytes_of(count, dataType);
    checked.memory("the send buffer", sendBuf, bytes).memory("the receive buffer", recvBuf, bytes);
    if (!checked.ok()) return checked.result();
    const auto descriptor = with_op(describe_call(dataType, count), op);
    return submit(checked.communicator(), stream, [=](Communicator& c, uint64_t number) {
        auto begin = [&](uint32_t rank) { return part_begin(count, c.ranks(), rank) * element; };
        const uint64_t own = begin(c.rank());
        const uint64_t own_bytes = begin(c.rank() + 1) - own;
        auto first = exchange_for(c, descriptor, number, 0);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank)
            if (rank != c.rank()) first.send(rank, at(sendBuf, begin(rank)), begin(rank + 1) - begin(rank));
        first.reduce(at(sendBuf, own), at(recvBuf, own), own_bytes);
        if (auto problem = first.run()) return problem;
        auto second = exchange_for(c, descriptor, number, 1);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
            if (rank == c.rank()) continue;
            second.send(rank, at(recvBuf, own), own_bytes);
            second.receive(rank, at(recvBuf, begin(rank)), begin(rank + 1) - begin(rank));
        }
        return second.run();
    });
}

SIMNPU_EXPORT HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, uint32_t root,
                                    HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclReduce", "count=%llu type=%d op=%d root=%u comm=%p", static_cast<unsigned long long>(count), static_cast<int>(dataType),
              static_cast<int>(op), root, comm);
    Checked checked(comm);
    checked.type(dataType).reduction(dataType, op).rank("root", root);
    const uint64_t bytes = bytes_of(count, dataType);
    checked.memory("the send buffer", sendBuf, bytes);
    if (checked.ok() && checked.communicator()->rank() == root) checked.memory("the receive buffer", recvBuf, bytes);
    if (!checked.ok()) return checked.result();
    const auto descriptor = with_root(with_op(describe_call(dataType, count), op), root);
    return submit(checked.communicator(), stream, [=](Communicator& c, uint64_t number) {
        auto exchange = exchange_for(c, descriptor, number);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
            if (rank == c.rank()) continue;
            exchange.send(rank, sendBuf, rank == root ? bytes : 0);
            if (c.rank() != root) exchange.receive(rank, nullptr, 0);
        }
        if (c.rank() == root) exchange.reduce(sendBuf, recvBuf, bytes);
        return exchange.run();
    });
}

SIMNPU_EXPORT HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                                           HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclReduceScatter", "count=%llu type=%d op=%d comm=%p", static_cast<unsigned long long>(recvCount),
              static_cast<int>(dataType), static_cast<int>(op), comm);
    Checked checked(comm);
    checked.type(dataType).reduction(dataType, op);
    if (!checked.ok()) return checked.result();
    return reduce_scatter(checked, sendBuf, recvBuf, equal_counts(checked.ranks(), recvCount),
                          equal_places(checked.ranks(), recvCount), dataType,
                          with_op(describe_call(dataType, recvCount), op), stream);
}

SIMNPU_EXPORT HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                                            uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclReduceScatterV", "count=%llu type=%d op=%d comm=%p", static_cast<unsigned long long>(recvCount),
              static_cast<int>(dataType), static_cast<int>(op), comm);
    Checked checked(comm);
    checked.type(dataType).reduction(dataType, op).present("sendCounts", sendCounts).present("sendDispls", sendDispls);
    if (!checked.ok()) return checked.result();
    auto counts = read_counts(sendCounts, checked.ranks());
    const uint32_t rank = checked.communicator()->rank();
    if (counts[rank] != recvCount)
        return refuse(HCCL_E_PARA, "recvCount %llu, but sendCounts[%u] is %llu", static_cast<unsigned long long>(recvCount),
                      rank, static_cast<unsigned long long>(counts[rank]));
    return reduce_scatter(checked, sendBuf, recvBuf, std::move(counts), read_counts(sendDispls, checked.ranks()), dataType,
                          with_op(describe_call(dataType), op), stream);
}

SIMNPU_EXPORT HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                                       aclrtStream stream) {
    HCCL_CALL("HcclAllGather", "count=%llu type=%d comm=%p", static_cast<unsigned long long>(sendCount), static_cast<int>(dataType), comm);
    Checked checked(comm);
    checked.type(dataType);
    if (!checked.ok()) return checked.result();
    return all_gather(checked, sendBuf, recvBuf, equal_counts(checked.ranks(), sendCount),
                      equal_places(checked.ranks(), sendCount), dataType, describe_call(dataType, sendCount), stream);
}

SIMNPU_EXPORT HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts, const void* recvDispls,
                                        HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclAllGatherV", "count=%llu type=%d comm=%p", static_cast<unsigned long long>(sendCount), static_cast<int>(dataType), comm);
    Checked checked(comm);
    checked.type(dataType).present("recvCounts", recvCounts).present("recvDispls", recvDispls);
    if (!checked.ok()) return checked.result();
    auto counts = read_counts(recvCounts, checked.ranks());
    const uint32_t rank = checked.communicator()->rank();
    if (counts[rank] != sendCount)
        return refuse(HCCL_E_PARA, "sendCount %llu, but recvCounts[%u] is %llu", static_cast<unsigned long long>(sendCount), rank,
                      static_cast<unsigned long long>(counts[rank]));
    return all_gather(checked, sendBuf, recvBuf, std::move(counts), read_counts(recvDispls, checked.ranks()), dataType,
                      describe_call(dataType), stream);
}

SIMNPU_EXPORT HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclBroadcast", "count=%llu type=%d root=%u comm=%p", static_cast<unsigned long long>(count), static_cast<int>(dataType),
              root, comm);
    Checked checked(comm);
    const uint64_t bytes = bytes_of(count, dataType);
    checked.type(dataType).rank("root", root).memory("the buffer", buf, bytes);
    if (!checked.ok()) return checked.result();
    const auto descriptor = with_root(describe_call(dataType, count), root);
    return submit(checked.communicator(), stream, [=](Communicator& c, uint64_t number) {
        auto exchange = exchange_for(c, descriptor, number);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
            if (rank == c.rank()) continue;
            exchange.send(rank, buf, c.rank() == root ? bytes : 0);
            exchange.receive(rank, buf, rank == root ? bytes : 0);
        }
        return exchange.run();
    });
}

SIMNPU_EXPORT HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root, HcclComm comm,
                                     aclrtStream stream) {
    HCCL_CALL("HcclScatter", "count=%llu type=%d root=%u comm=%p", static_cast<unsigned long long>(recvCount), static_cast<int>(dataType),
              root, comm);
    Checked checked(comm);
    const uint64_t bytes = bytes_of(recvCount, dataType);
    checked.type(dataType).rank("root", root).memory("the receive buffer", recvBuf, bytes);
    if (checked.ok() && checked.communicator()->rank() == root) checked.memory("the send buffer", sendBuf, times(bytes, checked.ranks()));
    if (!checked.ok()) return checked.result();
    const auto descriptor = with_root(describe_call(dataType, recvCount), root);
    return submit(checked.communicator(), stream, [=](Communicator& c, uint64_t number) {
        auto exchange = exchange_for(c, descriptor, number);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
            if (rank == c.rank()) continue;
            if (c.rank() == root) exchange.send(rank, at(sendBuf, rank * bytes), bytes);
            else exchange.send(rank, nullptr, 0);
            exchange.receive(rank, recvBuf, rank == root ? bytes : 0);
        }
        if (c.rank() == root) copy_own(recvBuf, at(sendBuf, root * bytes), bytes);
        return exchange.run();
    });
}

SIMNPU_EXPORT HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                                      uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclAlltoAll", "count=%llu type=%d comm=%p", static_cast<unsigned long long>(sendCount), static_cast<int>(sendType), comm);
    Checked checked(comm);
    checked.type(sendType);
    if (!checked.ok()) return checked.result();
    if (sendType != recvType || sendCount != recvCount)
        return refuse(HCCL_E_PARA, "sends %llu x %s per rank but receives %llu x %s", static_cast<unsigned long long>(sendCount),
                      type_name(static_cast<uint32_t>(sendType)), static_cast<unsigned long long>(recvCount),
                      type_name(static_cast<uint32_t>(recvType)));
    const auto counts = equal_counts(checked.ranks(), sendCount);
    const auto places = equal_places(checked.ranks(), sendCount);
    return all_to_all(checked, sendBuf, counts, places, recvBuf, counts, places, sendType,
                      describe_call(sendType, sendCount), stream);
}

SIMNPU_EXPORT HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls, HcclDataType sendType,
                                       const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
                                       HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclAlltoAllV", "type=%d comm=%p", static_cast<int>(sendType), comm);
    Checked checked(comm);
    checked.type(sendType).present("sendCounts", sendCounts).present("sdispls", sdispls).present("recvCounts", recvCounts).present("rdispls", rdispls);
    if (!checked.ok()) return checked.result();
    if (sendType != recvType)
        return refuse(HCCL_E_PARA, "sends %s but receives %s", type_name(static_cast<uint32_t>(sendType)),
                      type_name(static_cast<uint32_t>(recvType)));
    const uint32_t n = checked.ranks();
    return all_to_all(checked, sendBuf, read_counts(sendCounts, n), read_counts(sdispls, n), recvBuf,
                      read_counts(recvCounts, n), read_counts(rdispls, n), sendType, describe_call(sendType), stream);
}

// `sendCountMatrix`: how many elements each rank (row) sends to each (column), packed without gaps in the buffers.
SIMNPU_EXPORT HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType, const void* recvBuf,
                                        HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclAlltoAllVC", "type=%d comm=%p", static_cast<int>(sendType), comm);
    Checked checked(comm);
    checked.type(sendType).present("sendCountMatrix", sendCountMatrix);
    if (!checked.ok()) return checked.result();
    if (sendType != recvType)
        return refuse(HCCL_E_PARA, "sends %s but receives %s", type_name(static_cast<uint32_t>(sendType)),
                      type_name(static_cast<uint32_t>(recvType)));
    const uint32_t n = checked.ranks();
    const uint32_t own = checked.communicator()->rank();
    const auto matrix = read_counts(sendCountMatrix, n * n);
    Counts send(n);
    Counts receive(n);
    Counts send_places(n);
    Counts receive_places(n);
    for (uint32_t rank = 0; rank < n; ++rank) {
        send[rank] = matrix[own * n + rank];
        receive[rank] = matrix[rank * n + own];
    }
    std::exclusive_scan(send.begin(), send.end(), send_places.begin(), uint64_t{0});
    std::exclusive_scan(receive.begin(), receive.end(), receive_places.begin(), uint64_t{0});
    return all_to_all(checked, sendBuf, send, send_places, recvBuf, receive, receive_places, sendType,
                      describe_call(sendType), stream);
}

SIMNPU_EXPORT HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclBarrier", "comm=%p", comm);
    Checked checked(comm);
    if (!checked.ok()) return checked.result();
    return submit(checked.communicator(), stream, [](Communicator& c, uint64_t number) {
        auto exchange = exchange_for(c, describe_call(), number);
        for (uint32_t rank = 0; rank < c.ranks(); ++rank) {
            if (rank == c.rank()) continue;
            exchange.send(rank, nullptr, 0);
            exchange.receive(rank, nullptr, 0);
        }
        return exchange.run();
    });
}

SIMNPU_EXPORT HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                                  aclrtStream stream) {
    HCCL_CALL("HcclSend", "count=%llu type=%d to=%u comm=%p", static_cast<unsigned long long>(count), static_cast<int>(dataType), destRank, comm);
    return one_item(comm, {true, sendBuf, count, dataType, destRank}, stream);
}

SIMNPU_EXPORT HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                                  aclrtStream stream) {
    HCCL_CALL("HcclRecv", "count=%llu type=%d from=%u comm=%p", static_cast<unsigned long long>(count), static_cast<int>(dataType), srcRank, comm);
    return one_item(comm, {false, recvBuf, count, dataType, srcRank}, stream);
}

SIMNPU_EXPORT HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
    HCCL_CALL("HcclBatchSendRecv", "items=%u comm=%p", itemNum, comm);
    Checked checked(comm);
    checked.present("sendRecvInfo", sendRecvInfo);
    if (!checked.ok()) return checked.result();
    std::vector<Item> items;
    for (uint32_t i = 0; i < itemNum; ++i) {
        const auto& info = sendRecvInfo[i];
        const Item item{info.sendRecvType == HCCL_SEND, info.buf, info.count, info.dataType, info.remoteRank};
        std::shared_ptr<Communicator> unused;
        if (auto result = check_item(comm, item, unused)) return result;
        items.push_back(item);
    }
    return point_to_point(checked.communicator(), std::move(items), stream);
}

SIMNPU_EXPORT HcclResult HcclGroupStart() {
    HCCL_CALL("HcclGroupStart");
    ++t_group_depth;
    return HCCL_SUCCESS;
}

SIMNPU_EXPORT HcclResult HcclGroupEnd() {
    HCCL_CALL("HcclGroupEnd");
    if (t_group_depth == 0) return refuse(HCCL_E_PARA, "no group was started on this thread");
    if (--t_group_depth > 0) return HCCL_SUCCESS;
    const auto groups = std::exchange(t_deferred, {});
    for (const auto& group : groups)
        if (auto result = point_to_point(group.communicator, group.items, group.stream)) return result;
    return HCCL_SUCCESS;
}
