// Devices and contexts: which device the calling thread works on.
#pragma once

#include "handles.h"

#include "simnpu/cann.h"

#include <array>
#include <atomic>
#include <memory>

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

// The context of this thread; with none, or one that was destroyed or reset, records the error and returns nullptr.
std::shared_ptr<Context> current_context();

// True if `device` is one of the visible devices; else records the error.
bool valid_device(int64_t device);

int32_t device_count();

} // namespace simnpu
