// What compiled kernels call: scratch memory for one block at a time, sorting, and the few functions of the device's math library that
// MLIR has no operation for. Linked into each kernel.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

struct Chunk {
    Chunk* before;
    size_t size;
};

// Memory that a block asks for lives until the block ends. Chunks stay for the next block.
struct Scratch {
    Chunk* newest = nullptr;
    size_t used = 0; // of the newest chunk
};

thread_local Scratch scratch;

constexpr size_t kAlignment = 64;
constexpr size_t kHeader = (sizeof(Chunk) + kAlignment - 1) / kAlignment * kAlignment;
constexpr size_t kSmallest = size_t{1} << 20;

void free_chunks(Chunk* newest) {
    while (newest) {
        Chunk* const before = newest->before;
        std::free(newest);
        newest = before;
    }
}

void* allocate(size_t size) {
    const size_t whole = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (!scratch.newest || scratch.newest->size - scratch.used < whole) {
        const size_t wanted = std::max(whole, scratch.newest ? 2 * scratch.newest->size : kSmallest);
        auto* chunk = static_cast<Chunk*>(std::aligned_alloc(kAlignment, kHeader + wanted));
        // A kernel that writes there stops with a fault, which the runtime reports.
        if (!chunk) return nullptr;
        *chunk = {scratch.newest, wanted};
        scratch.newest = chunk;
        scratch.used = 0;
    }
    void* const place = reinterpret_cast<unsigned char*>(scratch.newest) + kHeader + scratch.used;
    scratch.used += whole;
    return place;
}

// Bits of a value as an unsigned number of the same order, not-a-number last.
template <typename Bits, bool kIsReal> Bits rank_of(Bits bits) {
    constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
    if constexpr (!kIsReal) return bits ^ kSign;
    return bits & kSign ? Bits(~bits) : Bits(bits | kSign);
}

template <typename Bits, bool kIsReal> void sort_row(Bits* row, int64_t size, int64_t stride, bool descending) {
    auto* const values = static_cast<Bits*>(allocate(static_cast<size_t>(size) * sizeof(Bits)));
    for (int64_t i = 0; i < size; ++i) values[i] = row[i * stride];
    const auto less = [descending](Bits a, Bits b) {
        const Bits left = rank_of<Bits, kIsReal>(a), right = rank_of<Bits, kIsReal>(b);
        return descending ? right < left : left < right;
    };
    std::sort(values, values + size, less);
    for (int64_t i = 0; i < size; ++i) row[i * stride] = values[i];
}

} // namespace

#define KERNEL_CALLS extern "C" __attribute__((visibility("hidden")))

KERNEL_CALLS void simnpu_begin_block() {
    // One chunk, as large as all so far: a block like the one before fits in it.
    if (scratch.newest && scratch.newest->before) {
        free_chunks(scratch.newest->before);
        scratch.newest->before = nullptr;
    }
    scratch.used = 0;
}

KERNEL_CALLS void simnpu_finish() {
    free_chunks(scratch.newest);
    scratch = {};
}

KERNEL_CALLS void* _mlir_memref_to_llvm_alloc(size_t size) {
    return allocate(size);
}

KERNEL_CALLS void* _mlir_memref_to_llvm_aligned_alloc(size_t alignment, size_t size) {
    return alignment <= kAlignment ? allocate(size) : nullptr;
}

KERNEL_CALLS void _mlir_memref_to_llvm_free(void*) {}

// A row is a one-dimensional buffer: allocated, aligned, offset, size, stride.
#define SORT(name, bits, real)                                                                                                 \
    KERNEL_CALLS void simnpu_sort_##name(bits*, bits* row, int64_t offset, int64_t size, int64_t stride, int32_t descending) {  \
        sort_row<bits, real>(row + offset, size, stride, descending != 0);                                                     \
    }
SORT(f64, uint64_t, true)
SORT(f32, uint32_t, true)
SORT(f16, uint16_t, true)
SORT(bf16, uint16_t, true)
SORT(i64, uint64_t, false)
SORT(i32, uint32_t, false)
SORT(i16, uint16_t, false)
SORT(i8, uint8_t, false)

// LLVM calls these for bfloat16; libgcc has them from version 13. The result is in the low half of a vector register, where a float is
// returned too.
KERNEL_CALLS __attribute__((weak)) float __truncsfbf2(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = std::isnan(value) ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

KERNEL_CALLS __attribute__((weak)) float __truncdfbf2(double value) {
    auto single = static_cast<float>(value);
    // Rounding twice: the first time to odd keeps the second one right.
    if (!std::isnan(value) && static_cast<double>(single) != value) {
        uint32_t bits;
        std::memcpy(&bits, &single, sizeof bits);
        const bool away = std::fabs(static_cast<double>(single)) > std::fabs(value);
        bits = (away ? bits - 1 : bits) | 1;
        std::memcpy(&single, &bits, sizeof bits);
    }
    return __truncsfbf2(single);
}

KERNEL_CALLS float simnpu_log1p(float value) {
    return std::log1p(value);
}

KERNEL_CALLS float simnpu_ldexp(float value, float exponent) {
    return std::scalbn(value, static_cast<int>(exponent));
}

KERNEL_CALLS float simnpu_ilogb(float value) {
    return static_cast<float>(std::ilogb(value));
}

KERNEL_CALLS int64_t simnpu_powi(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (auto factor = static_cast<uint64_t>(base); exponent; exponent >>= 1, factor *= factor)
        if (exponent & 1) result *= factor;
    return static_cast<int64_t>(result);
}
