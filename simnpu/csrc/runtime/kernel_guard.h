// Runs a kernel's code so that a fault in it (memory out of bounds, an integer divided by zero) is the launch's failure and not
// the end of the process.
#pragma once

#include "memory.h"

#include <cstdint>
#include <string>
#include <vector>

namespace simnpu {

struct Fault {
    int signal = 0; // 0: none
    int code = 0;
    uintptr_t address = 0;
    enum class Access { unknown, read, write } access = Access::unknown;
    explicit operator bool() const { return signal != 0; }
};

// Calls `body` with `data`. After a fault inside, its frames are gone without their destructors: only plain C code, nothing that
// holds a lock. Signals from anywhere else go to whoever handled them before.
Fault guarded(void (*body)(void*), void* data);

// "wrote out of bounds: address 0x…, 0 bytes behind the allocation of 4000 bytes at 0x…"; call it on the thread of the fault. An
// address far from every allocation is told by the closest of `arguments`, which the kernel was given.
std::string describe(const Fault& fault, const std::vector<Allocation>& arguments);

} // namespace simnpu
