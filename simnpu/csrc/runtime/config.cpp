#include "config.h"

#include "simnpu/cann.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace simnpu {
namespace {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::string_view(value) : std::string_view();
}

template <typename T>
bool whole_number(std::string_view text, T& out) {
    if (text.empty()) return false;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse_bytes(std::string_view text, uint64_t& out) {
    int shift = 0;
    if (!text.empty()) {
        switch (text.back()) {
        case 'K': shift = 10; break;
        case 'M': shift = 20; break;
        case 'G': shift = 30; break;
        default: break;
        }
    }
    if (shift) text.remove_suffix(1);
    if (!whole_number(text, out) || out == 0 || out > (UINT64_MAX >> shift)) return false;
    out <<= shift;
    return true;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

bool parse_fault(std::string_view text, FaultRule& rule) {
    auto parts = split(text, ':');
    if (parts.size() != 3 || parts[0].empty()) return false;
    rule.call = std::string(parts[0]);
    if (parts[1] != "*" && (!whole_number(parts[1], rule.nth) || rule.nth == 0)) return false;
    auto action = parts[2];
    if (action == "error") {
        rule.value = ACL_ERROR_RT_INTERNAL_ERROR;
        return true;
    }
    if (action.substr(0, 6) == "error=") return whole_number(action.substr(6), rule.value) && rule.value > 0;
    if (action.substr(0, 6) == "delay=") {
        rule.delay = true;
        return whole_number(action.substr(6), rule.value) && rule.value >= 0;
    }
    return false;
}

Config read() {
    Config result;
    auto complain = [&](const char* name, std::string_view value, const char* remedy) {
        if (result.problem.empty())
            result.problem = std::string(name) + "=" + std::string(value) + " cannot be understood: " + remedy;
    };
    if (auto text = environment("SIMNPU_DEVICES"); !text.empty())
        if (!whole_number(text, result.devices) || result.devices > 64)
            complain("SIMNPU_DEVICES", text, "give the number of devices, 0 to 64");
    if (auto text = environment("SIMNPU_MEMORY"); !text.empty())
        if (!parse_bytes(text, result.memory))
            complain("SIMNPU_MEMORY", text, "give bytes per device, with a suffix K, M or G if you like (512M)");
    if (auto text = environment("SIMNPU_FAULT"); !text.empty())
        for (auto part : split(text, ',')) {
            FaultRule rule;
            if (!parse_fault(part, rule)) {
                complain("SIMNPU_FAULT", part,
                         "write CALL:N:error, CALL:N:error=CODE or CALL:N:delay=MILLISECONDS, with N a count from 1 or * for "
                         "every call (aclrtMalloc:3:error=207001); separate several with commas");
                break;
            }
            result.faults.push_back(rule);
        }
    result.log = std::string(environment("SIMNPU_LOG"));
    return result;
}

} // namespace

const Config& config() {
    static const Config& instance = *new Config(read());
    return instance;
}

std::vector<int32_t> visible_devices() {
    const auto count = static_cast<int32_t>(config().devices);
    std::vector<int32_t> devices;
    const char* chosen = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (!chosen) {
        for (int32_t i = 0; i < count; ++i) devices.push_back(i);
        return devices;
    }
    // The list counts up to its first entry that is no device or was named before.
    for (auto part : split(chosen, ',')) {
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        int32_t device = -1;
        if (!whole_number(part, device) || device < 0 || device >= count) break;
        if (std::find(devices.begin(), devices.end(), device) != devices.end()) break;
        devices.push_back(device);
    }
    return devices;
}

} // namespace simnpu
