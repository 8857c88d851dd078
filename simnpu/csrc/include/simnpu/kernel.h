/* What a kernel's binary offers to the simulated device. The binary is an ELF shared object for the host that needs nothing but
 * libc and libm. Plain C: the compiler's support code and the runtime both include it. */
#ifndef SIMNPU_KERNEL_H
#define SIMNPU_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* Grows when the meaning of anything below changes; the runtime refuses binaries of another one. */
#define SIMNPU_KERNEL_ABI 1u

/* With the kernel's name behind it, the exported symbol: a `const struct simnpu_kernel`. */
#define SIMNPU_KERNEL_PREFIX "simnpu_kernel_"

/* Flags. */
enum {
    SIMNPU_KERNEL_ATOMIC = 1u /* uses atomic operations: two such kernels must not run at the same time in one process */
};

struct simnpu_kernel {
    uint32_t abi; /* SIMNPU_KERNEL_ABI */
    uint32_t flags;
    /* Bytes of the argument buffer: FFTS address, lock, workspace, the arguments each aligned to its own size, three int32 for
     * the grid, rounded up to the largest alignment. Launchers for targets without FFTS leave the address out. */
    uint32_t args_size;
    uint32_t reserved; /* 0 */
    const char* name;
    /* Runs one block. Blocks are numbered from 0; the kernel derives its program ids from the grid in the buffer. `args` points
     * at the FFTS address, or, when the launcher packed none (its buffer has args_size - 8 bytes), 8 bytes before the buffer.
     * Returns NULL, or what went wrong (a failed assertion); the text lives until this thread's next call. */
    const char* (*run)(const unsigned char* args, uint32_t block);
    /* Frees this thread's scratch memory. Called after the last block of a launch, also when a block failed. */
    void (*finish)(void);
};

/* The last bytes of a binary, behind the ELF image, by which the runtime knows that it is whole. */
#define SIMNPU_KERNEL_SEAL {'s', 'i', 'm', 'n', 'p', 'u', 'O', 'K'}

struct simnpu_kernel_seal {
    char mark[8]; /* SIMNPU_KERNEL_SEAL */
    uint64_t checksum; /* of all before the seal */
};

/* FNV-1a with 64 bits. */
static inline uint64_t simnpu_kernel_checksum(const void* data, size_t size) {
    const unsigned char* bytes = (const unsigned char*)data;
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; ++i) sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

#endif
