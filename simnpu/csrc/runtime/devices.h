// Devices and contexts: which device the calling thread works on.
#pragma once

#include "handles.h"

#include "simnpu/cann.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace simnpu {

struct Stream;

// What every query about the hardware answers.
constexpr const char* kSocName = "Ascend910B3";
constexpr const char* kCannVersion = "8.5.0";
constexpr int64_t kCubeCores = 24;
constexpr int64_t kVectorCores = 48;
constexpr int64_t kAiCpuCores = 6;
constexpr int64_t kL2Bytes = 192LL << 20;

struct Context {
    int32_t device;
    bool primary;
    aclrtContext handle = nullptr;
    std::shared_ptr<Stream> default_stream;
    std::array<std::atomic<int64_t>, 3> options{}; // by aclSysParamOpt
};

HandleTable<Context>& contexts();

struct Device {
    int uses = 0; // aclrtSetDevice without aclrtResetDevice
    std::shared_ptr<Context> primary;
    uint32_t cube_limit = kCubeCores;
    uint32_t vector_limit = kVectorCores;
};

struct Machine {
    std::mutex mutex;
    bool frozen = false; // the list of visible devices is fixed
    std::vector<int32_t> visible; // physical numbers by logical ones
    std::vector<Device> devices;
    bool initialized = false;
    std::array<std::atomic<int64_t>, 3> options{}; // by aclSysParamOpt, for contexts yet to come
    std::atomic<int> saturation{ACL_RT_OVERFLOW_MODE_INFNAN};
    std::atomic<uint64_t> execute_timeout_us{0};
    // [a][b]: work on device a may touch the memory of device b (aclrtDeviceEnablePeerAccess). By logical number.
    std::array<std::array<std::atomic<bool>, 64>, 64> peers{};
};

Machine& machine();

// Fixes the list of visible devices. With the machine locked.
void freeze(Machine& all);

// The context is this thread's from now on.
void make_current(const std::shared_ptr<Context>& context);

// The context of this thread; with none, or one that was destroyed or reset, records the error and returns nullptr.
std::shared_ptr<Context> current_context();

// True if `device` is one of the visible devices; else records the error.
bool valid_device(int64_t device);

// Whether work on `device` may touch memory of `other`: its own, or a peer's.
bool reaches(int32_t device, int32_t other);

} // namespace simnpu
