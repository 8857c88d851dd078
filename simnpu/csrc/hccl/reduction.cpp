#include "reduction.h"

#include "api.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace simnpu::hccl {
namespace {

constexpr size_t kBlock = 1024;

float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    const uint32_t fraction = half & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) {
        const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
        return sign ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

// To the nearest, ties to even.
uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u); // rounds beyond the largest finite number
    if (magnitude < 0x38800000u) {
        // A subnormal half is a multiple of 2^-24; nearbyint rounds ties to even in the default mode.
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24))));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bfloat_to_float(uint16_t value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

uint16_t float_to_bfloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename T>
struct Plain {
    using Stored = T;
    using Value = T;
    static T load(T stored) { return stored; }
    static T store(T value) { return value; }
};

struct Half {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t stored) { return half_to_float(stored); }
    static uint16_t store(float value) { return float_to_half(value); }
};

struct BFloat {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t stored) { return bfloat_to_float(stored); }
    static uint16_t store(float value) { return float_to_bfloat(value); }
};

template <typename T>
T apply(uint32_t op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        // Integers wrap; 64 bits without sign do so for every narrower type, and never overflow as an int would.
        const auto x = static_cast<uint64_t>(a);
        const auto y = static_cast<uint64_t>(b);
        if (op == HCCL_REDUCE_SUM) return static_cast<T>(x + y);
        if (op == HCCL_REDUCE_PROD) return static_cast<T>(x * y);
        return op == HCCL_REDUCE_MAX ? std::max(a, b) : std::min(a, b);
    } else {
        if (op == HCCL_REDUCE_SUM) return a + b;
        if (op == HCCL_REDUCE_PROD) return a * b;
        if (std::isnan(a)) return a;
        if (std::isnan(b)) return b;
        return op == HCCL_REDUCE_MAX ? std::max(a, b) : std::min(a, b);
    }
}

template <typename Kind>
void combine_as(uint32_t op, const std::vector<const void*>& sources, void* out, size_t count) {
    using Stored = typename Kind::Stored;
    typename Kind::Value sum[kBlock];
    Stored block[kBlock];
    for (size_t done = 0; done < count; done += kBlock) {
        const size_t now = std::min(kBlock, count - done);
        for (size_t rank = 0; rank < sources.size(); ++rank) {
            // Through memcpy: a buffer of the caller's need not be aligned.
            std::memcpy(block, static_cast<const char*>(sources[rank]) + done * sizeof(Stored), now * sizeof(Stored));
            for (size_t i = 0; i < now; ++i) {
                const auto value = Kind::load(block[i]);
                sum[i] = rank == 0 ? value : apply(op, sum[i], value);
            }
        }
        for (size_t i = 0; i < now; ++i) block[i] = Kind::store(sum[i]);
        std::memcpy(static_cast<char*>(out) + done * sizeof(Stored), block, now * sizeof(Stored));
    }
}

} // namespace

bool can_reduce(uint32_t type, uint32_t op) {
    return type <= HCCL_DATA_TYPE_BFP16 && op <= HCCL_REDUCE_MIN;
}

void combine(uint32_t type, uint32_t op, const std::vector<const void*>& sources, void* out, size_t count) {
    switch (type) {
    case HCCL_DATA_TYPE_INT8: return combine_as<Plain<int8_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_INT16: return combine_as<Plain<int16_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_INT32: return combine_as<Plain<int32_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_INT64: return combine_as<Plain<int64_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_UINT8: return combine_as<Plain<uint8_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_UINT16: return combine_as<Plain<uint16_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_UINT32: return combine_as<Plain<uint32_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_UINT64: return combine_as<Plain<uint64_t>>(op, sources, out, count);
    case HCCL_DATA_TYPE_FP16: return combine_as<Half>(op, sources, out, count);
    case HCCL_DATA_TYPE_BFP16: return combine_as<BFloat>(op, sources, out, count);
    case HCCL_DATA_TYPE_FP32: return combine_as<Plain<float>>(op, sources, out, count);
    case HCCL_DATA_TYPE_FP64: return combine_as<Plain<double>>(op, sources, out, count);
    default: return; // can_reduce() said no before
    }
}

} // namespace simnpu::hccl
