// What a kernel is called, for messages about one that was not read.
#pragma once

#include <string>

namespace simnpu {

// The name of the kernel in a file of MLIR, by its text alone; the file's own name if it names none.
std::string kernel_in(const std::string& input);

} // namespace simnpu
