#include "name.h"

#include <sys/stat.h>

#include <fstream>

namespace simnpu {

std::string kernel_in(const std::string& input) {
    struct stat status{};
    if (::stat(input.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return input;
    std::ifstream file(input);
    for (std::string line; std::getline(file, line);) {
        const std::string before = "func.func @";
        const size_t at = line.find(before);
        if (at == std::string::npos) continue;
        const size_t begin = at + before.size();
        return line.substr(begin, line.find('(', begin) - begin);
    }
    return input;
}

} // namespace simnpu
