// Compiling in a process of its own: whatever happens to it, the caller gets a message and never waits for ever.
#pragma once

#include <functional>
#include <string>

namespace simnpu {

// Runs `work` in a child process and returns its code. 1, after a message on stderr that names the kernel in `input`, when the
// child is ended by a signal, or is not done after the seconds in SIMNPU_COMPILE_TIMEOUT (default 600, 0 is no limit); what the
// child has started ends with it.
int supervised(const std::string& input, const std::function<int()>& work);

// The name of the kernel in a file of MLIR, by its text alone; the file's own name if it names none.
std::string kernel_in(const std::string& input);

} // namespace simnpu
