#include "placement.h"

#include <c10/core/CPUAllocator.h>

#include <array>
#include <utility>

namespace simnpu {
namespace {

struct Place {
    void* memory = nullptr;
    size_t bytes = 0;
};
constexpr size_t kPlaces = 4; // no operator of importance has more outputs
thread_local std::array<Place, kPlaces> t_places;
thread_local size_t t_offered = 0;

void leave(void*) {}

// torch's allocator, except on a thread that has been offered memory.
class PlacingAllocator final : public c10::Allocator {
public:
    explicit PlacingAllocator(c10::Allocator& inner) : inner_(inner) {}

    c10::DataPtr allocate(size_t bytes) override {
        for (size_t i = 0; i < t_offered; ++i) {
            if (t_places[i].bytes != bytes || !t_places[i].memory) continue;
            void* memory = std::exchange(t_places[i].memory, nullptr);
            return {memory, memory, &leave, c10::Device(c10::DeviceType::CPU)};
        }
        return inner_.allocate(bytes);
    }
    bool is_simple_data_ptr(const c10::DataPtr& pointer) const override { return inner_.is_simple_data_ptr(pointer); }
    c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
    void copy_data(void* destination, const void* source, size_t bytes) const override {
        inner_.copy_data(destination, source, bytes);
    }

private:
    c10::Allocator& inner_;
};

// With the first operator, and for the rest of the process.
void install() {
    static const bool installed = [] {
        c10::SetCPUAllocator(new PlacingAllocator(*c10::GetCPUAllocator()));
        return true;
    }();
    (void)installed;
}

} // namespace

Placement::Placement() {
    install();
    t_offered = 0;
}

Placement::~Placement() {
    t_offered = 0;
}

void Placement::offer(void* memory, size_t bytes) {
    if (t_offered < kPlaces && bytes > 0) t_places[t_offered++] = {memory, bytes};
}

} // namespace simnpu
