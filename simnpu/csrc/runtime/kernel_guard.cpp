#include "kernel_guard.h"

#include <csetjmp>
#include <csignal>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace simnpu {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

struct Guard {
    sigjmp_buf out;
    Fault fault;
};

// The signal handler reads these in whatever thread: the model lets it do so without allocating.
[[gnu::tls_model("initial-exec")]] thread_local Guard* t_guard = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool t_passing_on = false;

// Who handled each signal before, by its place in kSignals. Never freed: another thread may be reading.
std::array<std::atomic<const struct sigaction*>, kSignals.size()> g_earlier{};

void on_signal(int signal, siginfo_t* info, void* context);

Fault::Access access_of([[maybe_unused]] int signal, [[maybe_unused]] const void* context) {
#if defined(__x86_64__)
    if (signal == SIGSEGV || signal == SIGBUS) {
        const auto error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
        return error & 2 ? Fault::Access::write : Fault::Access::read;
    }
#endif
    return Fault::Access::unknown;
}

void end_by(int signal, const siginfo_t* info) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(signal, &standard, nullptr);
    // A fault comes again when the instruction is repeated; what somebody sent does not.
    if (info->si_code <= 0) ::raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction* earlier = nullptr;
    for (size_t i = 0; i < kSignals.size(); ++i)
        if (kSignals[i] == signal) earlier = g_earlier[i].load();
    // Here again while passing on: the earlier handler has done its part (Python's faulthandler prints) and raised the signal
    // for whoever it had found in its place, which is this handler.
    if (!earlier || t_passing_on || earlier->sa_handler == SIG_DFL) return end_by(signal, info);
    if (earlier->sa_handler == SIG_IGN) {
        if (info->si_code > 0) end_by(signal, info); // nobody can ignore a fault
        return;
    }
    t_passing_on = true;
    if (earlier->sa_flags & SA_SIGINFO)
        earlier->sa_sigaction(signal, info, context);
    else
        earlier->sa_handler(signal);
    t_passing_on = false;
}

void on_signal(int signal, siginfo_t* info, void* context) {
    // A fault, or raise() by a handler on top of this one that has done its part.
    if (Guard* guard = t_guard; guard && (info->si_code > 0 || info->si_code == SI_TKILL)) {
        t_guard = nullptr;
        guard->fault = {signal, info->si_code, reinterpret_cast<uintptr_t>(info->si_addr), access_of(signal, context)};
        siglongjmp(guard->out, 1);
    }
    pass_on(signal, info, context);
}

// Before each launch: another handler may have been put on top meanwhile (faulthandler.enable()).
void install_handlers() {
    static std::mutex& mutex = *new std::mutex;
    for (size_t i = 0; i < kSignals.size(); ++i) {
        struct sigaction now {};
        if (::sigaction(kSignals[i], nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal)) continue;
        std::lock_guard lock(mutex);
        ::sigaction(kSignals[i], nullptr, &now);
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal) continue;
        g_earlier[i].store(new struct sigaction(now));
        struct sigaction ours {};
        ours.sa_sigaction = on_signal;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        ::sigaction(kSignals[i], &ours, nullptr);
    }
}

// Where the handler runs when the fault is that the thread's stack is full.
class SignalStack {
public:
    SignalStack() {
        stack_t current{};
        if (::sigaltstack(nullptr, &current) != 0 || !(current.ss_flags & SS_DISABLE)) return;
        void* pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) return;
        stack_t ours{};
        ours.ss_sp = pages;
        ours.ss_size = kBytes;
        if (::sigaltstack(&ours, nullptr) == 0)
            pages_ = pages;
        else
            ::munmap(pages, kBytes);
    }
    ~SignalStack() {
        if (!pages_) return;
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        ::sigaltstack(&none, nullptr);
        ::munmap(pages_, kBytes);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

private:
    static constexpr size_t kBytes = 64U << 10;
    void* pages_ = nullptr;
};

bool near_the_stacks_end(uintptr_t address) {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return false;
    void* lowest = nullptr;
    size_t size = 0;
    ::pthread_attr_getstack(&attributes, &lowest, &size);
    ::pthread_attr_destroy(&attributes);
    constexpr uintptr_t reach = 1U << 20; // a frame of a kernel may be large
    return reinterpret_cast<uintptr_t>(lowest) - address < reach;
}

// From an address outside to the allocation's nearer end.
size_t distance(uintptr_t address, const Allocation& allocation) {
    return address < allocation.base ? allocation.base - address : address - (allocation.base + allocation.size);
}

} // namespace

Fault guarded(void (*body)(void*), void* data) {
    thread_local SignalStack stack;
    (void)stack;
    install_handlers();
    Guard guard;
    if (sigsetjmp(guard.out, 1) == 0) {
        t_guard = &guard;
        body(data);
        t_guard = nullptr;
    }
    return guard.fault;
}

std::string describe(const Fault& fault, const std::vector<Allocation>& arguments) {
    if (fault.signal == SIGFPE) return "divided an integer by zero, or its smallest value by -1";
    if (fault.signal == SIGILL) return "came to an illegal instruction: a place that must not be reached, or code for another processor";
    const char* did = fault.access == Fault::Access::write ? "wrote" : fault.access == Fault::Access::read ? "read" : "reached";
    char text[256];
    if (fault.code <= 0 || fault.code == SI_KERNEL)
        return "reached out of bounds, to an address that is not known (none that memory can have, or somebody else's signal handler "
               "took it)";
    if (fault.address < 4096) {
        std::snprintf(text, sizeof text, "%s through a null pointer: address 0x%zx", did, fault.address);
        return text;
    }
    Allocation closest;
    bool found = address_space().near(fault.address, kGuardBytes, closest);
    if (!found && near_the_stacks_end(fault.address)) return "needs more stack than its thread has";
    const char* which = "";
    if (!found) {
        which = ", the closest of its arguments";
        for (const auto& argument : arguments)
            if (!found || distance(fault.address, argument) < distance(fault.address, closest)) {
                closest = argument;
                found = true;
            }
    }
    if (found)
        std::snprintf(text, sizeof text, "%s out of bounds: address 0x%zx, %zu bytes %s the allocation of %zu bytes at 0x%zx%s", did,
                      fault.address, distance(fault.address, closest), fault.address < closest.base ? "before" : "behind", closest.size,
                      closest.base, which);
    else
        std::snprintf(text, sizeof text, "%s out of bounds: address 0x%zx, which is in no allocation nor near one (freed, or never memory)",
                      did, fault.address);
    return text;
}

} // namespace simnpu
