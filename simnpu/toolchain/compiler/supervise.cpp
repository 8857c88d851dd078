#include "supervise.h"

#include "name.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simnpu {

namespace {

constexpr const char* kVariable = "SIMNPU_COMPILE_TIMEOUT";
constexpr long kDefaultSeconds = 600;
constexpr long kUnknown = -1;

long seconds_allowed() {
    const char* text = std::getenv(kVariable);
    if (!text || !*text) return kDefaultSeconds;
    if (std::strspn(text, "0123456789") != std::strlen(text) || std::strlen(text) > 9) return kUnknown;
    return std::atol(text);
}

timespec now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

// The child has a group of its own, which the linker that it starts belongs to.
[[noreturn]] void child(const sigset_t& mask, const std::vector<std::string>& command, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    refuse(command[0] + " cannot be started: " + std::strerror(errno) + ". Remedy: remove its directory, it is built again");
    ::_exit(1);
}

} // namespace

int refuse(const std::string& what) {
    std::fprintf(stderr, "bishengir-compile (simulated NPU): %s\n", what.c_str());
    return 1;
}

Deadline::Deadline() : seconds_(seconds_allowed()), start_(now()) {}

bool Deadline::is_known() const {
    if (seconds_ != kUnknown) return true;
    refuse(std::string(kVariable) + "=" + std::getenv(kVariable) + " cannot be understood: give seconds, or 0 for no limit");
    return false;
}

timespec Deadline::rest() const {
    if (seconds_ == 0) return {3600, 0};
    const timespec time = now();
    timespec rest{start_.tv_sec + seconds_ - time.tv_sec, start_.tv_nsec - time.tv_nsec};
    if (rest.tv_nsec < 0) rest = {rest.tv_sec - 1, rest.tv_nsec + 1'000'000'000};
    return rest;
}

std::string Deadline::overdue() const {
    return "not done after " + std::to_string(seconds_) + " s. Remedy: set " + kVariable + " to more seconds, or to 0 for no limit";
}

int supervised(const std::string& input, const std::vector<std::string>& command, const Deadline& deadline) {
    sigset_t ends, mask;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &ends, &mask);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return refuse(std::string("cannot start a process: ") + std::strerror(errno));
    if (pid == 0) child(mask, command, parent);
    for (;;) {
        int status = 0;
        if (::waitpid(pid, &status, WNOHANG) == pid) {
            if (WIFEXITED(status)) return WEXITSTATUS(status);
            ::kill(-pid, SIGKILL);
            const int signal = WTERMSIG(status);
            return refuse("kernel " + kernel_in(input) + " cannot be compiled: the compiler was ended by signal " + std::to_string(signal) + " (" +
                          ::strsignal(signal) + "). " +
                          (signal == SIGKILL ? "Somebody killed it, or the machine ran out of memory. Remedy: try again"
                                             : "Remedy: this is a fault of the simulator, please report it with the kernel"));
        }
        const timespec rest = deadline.rest();
        if (rest.tv_sec < 0) {
            ::kill(-pid, SIGKILL);
            ::kill(pid, SIGKILL); // which may not have its group yet
            ::waitpid(pid, &status, 0);
            return refuse("kernel " + kernel_in(input) + " cannot be compiled: " + deadline.overdue());
        }
        ::sigtimedwait(&ends, nullptr, &rest);
    }
}

} // namespace simnpu
