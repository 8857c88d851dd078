#include "supervise.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace simnpu {

namespace {

constexpr const char* kVariable = "SIMNPU_COMPILE_TIMEOUT";
constexpr long kDefaultSeconds = 600;

int refuse(const std::string& what) {
    std::fprintf(stderr, "bishengir-compile (simulated NPU): %s\n", what.c_str());
    return 1;
}

// -1 when the variable's value cannot be understood.
long seconds_allowed() {
    const char* text = std::getenv(kVariable);
    if (!text || !*text) return kDefaultSeconds;
    if (std::strspn(text, "0123456789") != std::strlen(text) || std::strlen(text) > 9) return -1;
    return std::atol(text);
}

// The child has a group of its own, which the linker that it starts belongs to.
int child(const sigset_t& mask, const std::function<int()>& work, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return 1;
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    // A file that grows too large is an error with a name.
    ::signal(SIGXFSZ, SIG_IGN);
    return work();
}

timespec now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

} // namespace

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

int supervised(const std::string& input, const std::function<int()>& work) {
    const long seconds = seconds_allowed();
    if (seconds < 0)
        return refuse(std::string(kVariable) + "=" + std::getenv(kVariable) + " cannot be understood: give seconds, or 0 for no limit");
    sigset_t ends, mask;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &ends, &mask);
    const pid_t parent = ::getpid();
    const timespec start = now();
    const pid_t pid = ::fork();
    if (pid < 0) return refuse(std::string("cannot start a process: ") + std::strerror(errno));
    if (pid == 0) {
        const int code = child(mask, work, parent);
        std::fflush(nullptr);
        ::_exit(code);
    }
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
        const timespec time = now();
        timespec rest{start.tv_sec + seconds - time.tv_sec, start.tv_nsec - time.tv_nsec};
        if (rest.tv_nsec < 0) rest = {rest.tv_sec - 1, rest.tv_nsec + 1'000'000'000};
        if (seconds == 0) rest = {3600, 0};
        if (rest.tv_sec < 0) {
            ::kill(-pid, SIGKILL);
            ::kill(pid, SIGKILL); // which may not have its group yet
            ::waitpid(pid, &status, 0);
            return refuse("kernel " + kernel_in(input) + " cannot be compiled: not done after " + std::to_string(seconds) +
                          " s. Remedy: set " + kVariable + " to more seconds, or to 0 for no limit");
        }
        ::sigtimedwait(&ends, nullptr, &rest);
    }
}

} // namespace simnpu
