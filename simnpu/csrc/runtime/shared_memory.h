// Device memory that other processes use (aclrtIpcMem…): what a free and a reset end there.
#pragma once

#include "memory.h"

namespace simnpu {

// Other processes can no longer open what is being freed.
void withdraw_memory(const Allocation& allocation);
void forget_imports_of(int32_t device);

} // namespace simnpu
