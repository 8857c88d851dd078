// What the environment asks of the simulator (SIMNPU_*), read once at the first call so that importing a library reads nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simnpu {

struct FaultRule {
    std::string call;
    int64_t nth = 0; // 0: every call
    bool delay = false;
    int64_t value = 0; // error code, or milliseconds of delay
};

struct Config {
    uint32_t devices = 2;
    uint64_t memory = 2ULL << 30;
    std::string log; // "" (no log), "memory", "stderr" or a path
    std::vector<FaultRule> faults;
    std::string problem; // what is wrong with the environment; every call refuses with it
};

const Config& config();

struct VisibleDevices {
    std::vector<int32_t> physical; // by logical number
    bool ascending = true;         // else the runtime has no device at all
};

// What ASCEND_RT_VISIBLE_DEVICES says. Read on each use until the first device is set, because programs set the variable after
// importing torch_npu.
VisibleDevices visible_devices();

} // namespace simnpu
