// Combines the ranks' contributions element by element, always in rank order, so that a result repeats exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simnpu::hccl {

// False if elements of this type cannot be reduced with this operation.
bool can_reduce(uint32_t type, uint32_t op);

// `sources`: one pointer per rank, each to `count` elements at any alignment. `out` may be one of them. Float16 and bfloat16 are
// accumulated in float32 and rounded once; a NaN wins every max and min, as in torch.
void combine(uint32_t type, uint32_t op, const std::vector<const void*>& sources, void* out, size_t count);

} // namespace simnpu::hccl
