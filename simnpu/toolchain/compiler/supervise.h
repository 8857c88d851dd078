// Compiling in a process of its own: whatever happens to it, the caller gets a message and never waits for ever.
#pragma once

#include <string>
#include <vector>

#include <ctime>

namespace simnpu {

// Until when a compile must be done, from when this was made.
class Deadline {
  public:
    // Of the seconds in SIMNPU_COMPILE_TIMEOUT (default 600, 0 is no limit).
    Deadline();
    // Whether the variable's value could be understood; a message on stderr says so otherwise.
    bool is_known() const;
    // Time left, negative when there is none.
    timespec rest() const;
    // What to say about a kernel that was not done in time.
    std::string overdue() const;

  private:
    long seconds_;
    timespec start_;
};

// Runs a program in a child process and returns its code. 1, after a message on stderr that names the kernel in `input`, when the
// child is ended by a signal or is not done in time; what the child has started ends with it.
int supervised(const std::string& input, const std::vector<std::string>& command, const Deadline& deadline);

// Says on stderr what is wrong; returns 1.
int refuse(const std::string& what);

} // namespace simnpu
