#include "config.h"

#include "simnpu/cann.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace simnpu {
namespace {

constexpr uint64_t kMostMemory = 999999ULL << 30;
constexpr int64_t kLargestNumber = 999999999;

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
    if (!whole_number(text, out) || out == 0 || out > (kMostMemory >> shift)) return false;
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

bool positive(std::string_view text, int64_t& out) {
    return whole_number(text, out) && out > 0 && out <= kLargestNumber;
}

bool parse_fault(std::string_view text, FaultRule& rule) {
    auto parts = split(text, ':');
    if (parts.size() != 3 || parts[0].empty()) return false;
    rule.call = std::string(parts[0]);
    if (parts[1] != "*" && !positive(parts[1], rule.nth)) return false;
    auto action = parts[2];
    if (action == "error") {
        rule.value = ACL_ERROR_RT_INTERNAL_ERROR;
        return true;
    }
    if (action.substr(0, 6) == "error=") return positive(action.substr(6), rule.value);
    if (action.substr(0, 6) == "delay=") {
        rule.delay = true;
        return whole_number(action.substr(6), rule.value) && rule.value >= 0 && rule.value <= kLargestNumber;
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
            complain("SIMNPU_MEMORY", text, "give bytes per device, at most 999999G, with a suffix K, M or G if you like (512M)");
    if (auto text = environment("SIMNPU_FAULT"); !text.empty())
        for (auto part : split(text, ',')) {
            FaultRule rule;
            if (!parse_fault(part, rule)) {
                complain("SIMNPU_FAULT", part,
                         "write CALL:N:error, CALL:N:error=CODE or CALL:N:delay=MILLISECONDS, with N a count from 1 or * for "
                         "every call (aclrtMalloc:3:error=207001), numbers of at most nine digits; separate several with commas");
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

VisibleDevices visible_devices() {
    const auto count = static_cast<int32_t>(config().devices);
    VisibleDevices visible;
    const char* chosen = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (!chosen) {
        for (int32_t i = 0; i < count; ++i) visible.physical.push_back(i);
        return visible;
    }
    // The list counts up to its first entry that is no device, and up to the first character that is no part of a list.
    const std::string_view text(chosen);
    for (auto part : split(text.substr(0, text.find_first_not_of("0123456789,")), ',')) {
        int32_t device = -1;
        if (!whole_number(part, device)) break;
        if (!visible.physical.empty() && device <= visible.physical.back()) return {{}, false};
        if (device >= count) break;
        visible.physical.push_back(device);
    }
    return visible;
}

} // namespace simnpu
