/* CANN's runtime interface below acl, as much of it as the simulated NPU has. The torch_npu wheel ships no header for it, while
 * Triton's host code wants one in ASCEND_HOME_PATH to be compiled against. Names and values are CANN's. */
#ifndef SIMNPU_RUNTIME_RT_H
#define SIMNPU_RUNTIME_RT_H

#include <stdint.h>

/* The reporting calls' types, which generated launchers expect to come along. */
#if defined(__has_include)
#if __has_include(<profiling/aprof_pub.h>)
#include <profiling/aprof_pub.h>
#endif
#endif
/* Kinds of tasks beside MSPROF_GE_TASK_TYPE_AI_CORE, which is all that the wheel's header has. */
#ifndef MSPROF_GE_TASK_TYPE_AIV
#define MSPROF_GE_TASK_TYPE_AIV 2
#define MSPROF_GE_TASK_TYPE_MIX_AIC 4
#define MSPROF_GE_TASK_TYPE_MIX_AIV 5
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef int32_t rtError_t; /* 0, or a code of acl/error_codes/rt_error_codes.h */
#define RT_ERROR_NONE 0

typedef void* rtStream_t;

/* A kernel's binary in memory; the caller may free it after the registration. */
typedef struct {
    uint32_t magic;
    uint32_t version;
    const void* data;
    uint64_t length;
} rtDevBinary_t;
#define RT_DEV_BINARY_MAGIC_ELF 0x43554245U
#define RT_DEV_BINARY_MAGIC_ELF_AIVEC 0x41415246U
#define RT_DEV_BINARY_MAGIC_ELF_AICUBE 0x41494343U

rtError_t rtDevBinaryRegister(const rtDevBinary_t* binary, void** handle);
rtError_t rtDevBinaryUnRegister(void* handle);
/* From now on the address `stub` stands for the binary's kernel of that name. */
rtError_t rtFunctionRegister(void* binary, const void* stub, const char* stub_name, const void* kernel_name, uint32_t mode);
/* Queues `blocks` blocks; the arguments are copied at the call. */
rtError_t rtKernelLaunch(const void* stub, uint32_t blocks, void* args, uint32_t args_size, void* memory_description,
                         rtStream_t stream);
/* Where kernels of mixed mode synchronize: the first value of their arguments. */
rtError_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* bytes);

rtError_t rtGetSocVersion(char* version, const uint32_t room);
rtError_t rtGetAiCoreCount(uint32_t* count);
rtError_t rtSetDevice(int32_t device);

typedef enum {
    RT_LIMIT_TYPE_LOW_POWER_TIMEOUT = 0,
    RT_LIMIT_TYPE_SIMT_WARP_STACK_SIZE = 1,
    RT_LIMIT_TYPE_SIMT_DVG_WARP_STACK_SIZE = 2,
    RT_LIMIT_TYPE_STACK_SIZE = 3
} rtLimitType_t;
rtError_t rtDeviceSetLimit(int32_t device, rtLimitType_t type, uint32_t value);

rtError_t rtStreamCreate(rtStream_t* stream, int32_t priority);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);

typedef uint32_t rtMemType_t;
#define RT_MEMORY_DEFAULT 0x0U
#define RT_MEMORY_HBM 0x2U
#define RT_MEMORY_DDR 0x4U
#define RT_MEMORY_HOST 0x81U
rtError_t rtMalloc(void** memory, uint64_t bytes, rtMemType_t type, const uint16_t module);
rtError_t rtFree(void* memory);
rtError_t rtMallocHost(void** memory, uint64_t bytes, const uint16_t module);
rtError_t rtFreeHost(void* memory);

typedef enum {
    RT_MEMCPY_HOST_TO_HOST = 0,
    RT_MEMCPY_HOST_TO_DEVICE = 1,
    RT_MEMCPY_DEVICE_TO_HOST = 2,
    RT_MEMCPY_DEVICE_TO_DEVICE = 3
} rtMemcpyKind_t;
rtError_t rtMemcpy(void* destination, uint64_t room, const void* source, uint64_t bytes, rtMemcpyKind_t kind);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
