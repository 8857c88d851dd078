// Kernel launches: blocks of host code, one after the other on the stream's worker.
#include "devices.h"
#include "errors.h"
#include "kernel_binaries.h"
#include "kernel_guard.h"
#include "memory.h"
#include "streams.h"
#include "simnpu/core.h"

#include <runtime/runtime/rt.h>

#include <cstring>
#include <mutex>
#include <vector>

namespace simnpu {
namespace {

constexpr uint32_t kMostBlocks = 65535; // the hardware's count has 16 bits
constexpr size_t kFftsBytes = 8;

// The arguments as the kernel wants them, whether or not the launcher packed the FFTS address that they begin with.
struct Arguments {
    explicit Arguments(const Kernel& kernel) : words((kernel.code->args_size + 7) / 8) {}
    std::vector<uint64_t> words;

    const unsigned char* begin() const { return reinterpret_cast<const unsigned char*>(words.data()); }
    void fill(const Kernel& kernel, const void* packed, size_t size) {
        std::memcpy(reinterpret_cast<unsigned char*>(words.data()) + (kernel.code->args_size - size), packed, size);
    }
};

struct Blocks {
    const simnpu_kernel& code;
    const unsigned char* args;
    uint32_t count;
    uint32_t current = 0;
    const char* problem = nullptr;
};

void run_blocks(void* data) {
    auto& blocks = *static_cast<Blocks*>(data);
    for (; blocks.current < blocks.count; ++blocks.current) {
        blocks.problem = blocks.code.run(blocks.args, blocks.current);
        if (blocks.problem) return;
    }
}

// Memory of a device that the arguments point into.
std::vector<Allocation> allocations_of(const Arguments& arguments) {
    std::vector<Allocation> found;
    for (const uint64_t word : arguments.words) {
        Allocation allocation;
        if (!address_space().at(word, allocation) || !allocation.on_device()) continue;
        bool known = false;
        for (const auto& other : found) known |= other.base == allocation.base;
        if (!known) found.push_back(allocation);
    }
    return found;
}

// A write between an allocation's end and its page's end does not fault. Reports the first one with a changed byte there, and
// makes all of them whole again.
aclError check_slack(const Kernel& kernel, const std::vector<Allocation>& allocations, const char* who) {
    aclError result = ACL_SUCCESS;
    for (const auto& allocation : allocations) {
        size_t at = 0;
        if (slack_is_whole(allocation, at)) continue;
        fill_slack(allocation);
        if (result != ACL_SUCCESS) continue;
        const uintptr_t end = allocation.base + allocation.size;
        result = fail(ACL_ERROR_RT_AICORE_EXCEPTION,
                      "kernel %s %s: address 0x%zx, %zu bytes behind the allocation of %zu bytes at 0x%zx",
                      kernel.name.c_str(), who, end + at, at, allocation.size, allocation.base);
    }
    return result;
}

// Another device's memory faults at the kernel's first touch, unless access to it was enabled.
aclError check_reach(const Kernel& kernel, const std::vector<Allocation>& allocations, int32_t device) {
    for (size_t i = 0; i < allocations.size(); ++i)
        if (const auto& memory = allocations[i]; !reaches(device, memory.device))
            return fail(ACL_ERROR_RT_AICORE_EXCEPTION,
                        "kernel %s on device %d was given memory of device %d, which it cannot reach: pointer %zu of its arguments, into "
                        "the allocation of %zu bytes at 0x%zx. Remedy: launch it on the device of its tensors (torch.npu.device)",
                        kernel.name.c_str(), device, memory.device, i + 1, memory.size, memory.base);
    return ACL_SUCCESS;
}

aclError run(const Kernel& kernel, const Arguments& arguments, uint32_t count, int32_t device) {
    static std::mutex& atomics = *new std::mutex;
    std::unique_lock alone(atomics, std::defer_lock);
    if (kernel.code->flags & SIMNPU_KERNEL_ATOMIC) alone.lock();

    const auto allocations = allocations_of(arguments);
    if (auto result = check_reach(kernel, allocations, device)) return result;
    if (auto result = check_slack(kernel, allocations, "was not run, because something before it wrote out of bounds")) return result;
    Blocks blocks{*kernel.code, arguments.begin(), count};
    const Fault fault = guarded(run_blocks, &blocks);
    const std::string problem = !fault && blocks.problem ? blocks.problem : "";
    const Fault at_end = guarded([](void* code) { static_cast<const simnpu_kernel*>(code)->finish(); }, const_cast<simnpu_kernel*>(kernel.code));

    if (fault)
        return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s %s, block %u of %u", kernel.name.c_str(), describe(fault, allocations).c_str(),
                    blocks.current, count);
    if (!problem.empty())
        return fail(ACL_ERROR_RT_AICORE_TRAP_EXCEPTION, "kernel %s: %s, block %u of %u", kernel.name.c_str(), problem.c_str(),
                    blocks.current, count);
    if (at_end)
        return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s %s, behind its last block", kernel.name.c_str(),
                    describe(at_end, allocations).c_str());
    return check_slack(kernel, allocations, ("wrote out of bounds in one of its " + std::to_string(count) + " blocks").c_str());
}

aclError check_launch(const Kernel& kernel, uint32_t blocks, const void* args, size_t size) {
    if (blocks == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: 0 blocks", kernel.name.c_str());
    if (blocks > kMostBlocks)
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "kernel %s: %u blocks, an NPU takes at most %u. Remedy: let each block do more (a larger block size), or loop over "
                    "the rest inside the kernel", kernel.name.c_str(), blocks, kMostBlocks);
    if (!args) return fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: the arguments are null", kernel.name.c_str());
    const uint32_t expected = kernel.code->args_size;
    if (size != expected && size != expected - kFftsBytes)
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "kernel %s takes %u bytes of arguments, or %zu without the FFTS address; %zu were given. Launcher and binary do not "
                    "belong together. Remedy: clear Triton's cache (TRITON_CACHE_DIR)", kernel.name.c_str(), expected, expected - kFftsBytes, size);
    return ACL_SUCCESS;
}

aclError launch(const void* function, uint32_t blocks, const void* args, size_t size, aclrtStream stream) {
    FIND_OR_RETURN(kernel, find_kernel(function));
    if (auto result = check_launch(*kernel, blocks, args, size)) return result;
    const auto arguments = std::make_shared<Arguments>(*kernel);
    arguments->fill(*kernel, args, size);
    FIND_OR_RETURN(target, find_stream(stream));
    return enqueue(stream, [=, device = target->device]() -> aclError { return run(*kernel, *arguments, blocks, device); });
}

// The arguments are in device memory, and read there when the kernel's turn comes.
aclError launch_with_device_arguments(const void* function, uint32_t blocks, const void* args, size_t size, aclrtStream stream) {
    FIND_OR_RETURN(kernel, find_kernel(function));
    if (auto result = check_launch(*kernel, blocks, args, size)) return result;
    if (auto result = check_device_range("arguments", args, size)) return result;
    FIND_OR_RETURN(target, find_stream(stream));
    return enqueue(stream, [=, device = target->device]() -> aclError {
        if (auto result = check_device_range("arguments", args, size)) return result;
        Arguments arguments(*kernel);
        arguments.fill(*kernel, args, size);
        return run(*kernel, arguments, blocks, device);
    });
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT rtError_t rtKernelLaunch(const void* stub, uint32_t blocks, void* args, uint32_t args_size, void*, rtStream_t stream) {
    SIMNPU_CALL("rtKernelLaunch", "kernel=%s blocks=%u bytes=%u stream=%p", kernel_name(stub).c_str(), blocks, args_size, stream);
    return launch(stub, blocks, args, args_size, stream);
}

SIMNPU_EXPORT aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void* argsData, size_t argsSize,
                                         aclrtStream stream) {
    SIMNPU_CALL("aclrtLaunchKernel", "kernel=%s blocks=%u bytes=%zu stream=%p", kernel_name(funcHandle).c_str(), numBlocks, argsSize, stream);
    return launch_with_device_arguments(funcHandle, numBlocks, argsData, argsSize, stream);
}

// The configuration (time limits, sizes of on-chip memory) changes nothing here.
SIMNPU_EXPORT aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                                     aclrtLaunchKernelCfg*, void* hostArgs, size_t argsSize, aclrtPlaceHolderInfo*,
                                                     size_t placeHolderNum) {
    SIMNPU_CALL("aclrtLaunchKernelWithHostArgs", "kernel=%s blocks=%u bytes=%zu stream=%p", kernel_name(funcHandle).c_str(), numBlocks,
                argsSize, stream);
    if (placeHolderNum != 0)
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "kernel %s: placeholders in the arguments are not simulated",
                    kernel_name(funcHandle).c_str());
    return launch(funcHandle, numBlocks, hostArgs, argsSize, stream);
}

// Where a device's blocks wait for each other. Here they run one after the other, so nothing is ever exchanged there.
static uint64_t meeting_place = 0;

SIMNPU_EXPORT rtError_t rtGetC2cCtrlAddr(uint64_t* address, uint32_t* bytes) {
    SIMNPU_CALL("rtGetC2cCtrlAddr");
    if (!address || !bytes) return is_null("a result pointer");
    *address = reinterpret_cast<uintptr_t>(&meeting_place);
    *bytes = sizeof meeting_place;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclrtGetHardwareSyncAddr(void** addr) {
    SIMNPU_CALL("aclrtGetHardwareSyncAddr");
    if (!addr) return is_null("the result pointer");
    *addr = &meeting_place;
    return ACL_SUCCESS;
}
