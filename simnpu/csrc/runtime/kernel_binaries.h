// Kernels' binaries (simnpu/kernel.h), and the stubs and handles by which programs launch what is in them.
#pragma once

#include "simnpu/cann.h"
#include "simnpu/kernel.h"

#include <map>
#include <memory>
#include <string>

namespace simnpu {

// A loaded shared object. Unloaded when the last kernel that queued or recorded work refers to is gone.
struct Binary {
    void* library = nullptr;
    int fd = -1;
    std::map<std::string, aclrtFuncHandle, std::less<>> functions; // handed out by the acl flavour

    Binary() = default;
    Binary(const Binary&) = delete;
    Binary& operator=(const Binary&) = delete;
    ~Binary();
};

struct Kernel {
    std::shared_ptr<const Binary> binary;
    const simnpu_kernel* code;
    std::string name;
};

// The kernel behind a stub (rtFunctionRegister) or a function handle (aclrtBinaryGetFunction); torch_npu launches either by
// either flavour. With none, records an error that says why there is none.
std::shared_ptr<const Kernel> find_kernel(const void* stub_or_handle);

// For the log of calls.
std::string kernel_name(const void* stub_or_handle);

} // namespace simnpu
