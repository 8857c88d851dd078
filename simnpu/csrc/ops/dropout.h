// The dropout mask as the device packs it: bit i of byte j tells whether element 8 j + i is kept.
#pragma once

#include "operator.h"

namespace simnpu {

// One flag for each element of `shape`, from the first bits of `mask`. Throws if the mask is too short.
inline Tensor kept_flags(const Tensor& mask, IntArrayRef shape) {
    const auto numel = c10::multiply_integers(shape);
    TORCH_CHECK(mask.element_size() == 1 && mask.is_contiguous() && mask.numel() * 8 >= numel, "a mask of ", mask.numel(),
                " bytes cannot hold ", numel, " bits");
    auto kept = aten::empty_memory_format::call(c10::fromIntArrayRefSlow(shape), at::kBool, {}, {}, {}, {});
    const auto* bits = static_cast<const uint8_t*>(mask.const_data_ptr());
    auto* flags = static_cast<bool*>(kept.mutable_data_ptr());
    for (int64_t i = 0; i < numel; ++i) flags[i] = bits[i / 8] >> (i % 8) & 1;
    return kept;
}

} // namespace simnpu
