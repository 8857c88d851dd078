// Kernels for tests, native ones and those in Python: what a kernel compiler makes, written by hand.
#include "simnpu/kernel.h"

#include <sched.h>

namespace {

struct Arguments {
    void* ffts;
    void* lock;
    void* workspace;
    volatile int* data;
    long index;
    int grid[3];
};
static_assert(sizeof(Arguments) == 56);

int g_finished = 0;

void finish() {
    __atomic_add_fetch(&g_finished, 1, __ATOMIC_SEQ_CST);
}

const char* twice_plus_one(const Arguments& args, uint32_t block) {
    args.data[block] = 2 * args.data[block] + 1;
    return nullptr;
}

const char* write_at(const Arguments& args, uint32_t) {
    args.data[args.index] = 7;
    return nullptr;
}

const char* read_at(const Arguments& args, uint32_t) {
    args.data[0] = args.data[args.index];
    return nullptr;
}

const char* copy_at(const Arguments& args, uint32_t) {
    args.data[args.index] = static_cast<const int*>(args.workspace)[args.index];
    return nullptr;
}

const char* divide(const Arguments& args, uint32_t block) {
    args.data[block] = 100 / (args.data[block]);
    return nullptr;
}

const char* trap(const Arguments&, uint32_t) {
    __builtin_trap();
}

const char* complain(const Arguments& args, uint32_t block) {
    if (block == static_cast<uint32_t>(args.index)) return "assertion failed: x > 0";
    args.data[block] = 1;
    return nullptr;
}

int deeper(volatile int* data, int depth) {
    volatile char room[4096];
    room[0] = static_cast<char>(depth);
    if (depth == data[0] - 1) return 0; // never: data[0] is 0
    return deeper(data, depth + 1) + room[0] + data[0];
}

const char* recurse(const Arguments& args, uint32_t) {
    args.data[0] = deeper(args.data, 0);
    return nullptr;
}

// data: how many are inside now, the most that were, and whether the gate is open.
const char* meet(const Arguments& args, uint32_t) {
    const int inside = __atomic_add_fetch(&args.data[0], 1, __ATOMIC_SEQ_CST);
    if (inside > __atomic_load_n(&args.data[1], __ATOMIC_SEQ_CST)) __atomic_store_n(&args.data[1], inside, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&args.data[2], __ATOMIC_SEQ_CST) == 0) ::sched_yield();
    __atomic_sub_fetch(&args.data[0], 1, __ATOMIC_SEQ_CST);
    return nullptr;
}

const char* finishes(const Arguments& args, uint32_t) {
    args.data[0] = __atomic_load_n(&g_finished, __ATOMIC_SEQ_CST);
    return nullptr;
}

template <const char* (*body)(const Arguments&, uint32_t)>
const char* run(const unsigned char* args, uint32_t block) {
    return body(*reinterpret_cast<const Arguments*>(args), block);
}

} // namespace

#define KERNEL(name, flags) DESCRIPTION(name, SIMNPU_KERNEL_ABI, flags, run<name>)
#define DESCRIPTION(name, abi, flags, run)                                                                                     \
    extern "C" __attribute__((visibility("default"))) const simnpu_kernel simnpu_kernel_##name;                         \
    const simnpu_kernel simnpu_kernel_##name = {abi, flags, sizeof(Arguments), 0, #name, run, finish}

KERNEL(twice_plus_one, 0);
KERNEL(write_at, 0);
KERNEL(read_at, 0);
KERNEL(copy_at, 0);
KERNEL(divide, 0);
KERNEL(trap, 0);
KERNEL(complain, 0);
KERNEL(recurse, 0);
KERNEL(meet, 0);
DESCRIPTION(meet_alone, SIMNPU_KERNEL_ABI, SIMNPU_KERNEL_ATOMIC, run<meet>);
KERNEL(finishes, 0);
DESCRIPTION(of_tomorrow, SIMNPU_KERNEL_ABI + 1, 0, run<twice_plus_one>);
DESCRIPTION(incomplete, SIMNPU_KERNEL_ABI, 0, nullptr);
