// Physical memory mapped into reserved ranges: what a reset ends there.
#pragma once

#include <cstdint>

namespace simnpu {

void drop_physical_memory_of(int32_t device);

} // namespace simnpu
