// Call accounting: every entry point counts its calls, SIMNPU_LOG keeps a line per call, SIMNPU_FAULT makes chosen calls fail or
// take longer. Also the place that refuses calls where the device cannot work: a wrong environment, a forked child.
#include "calls.h"

#include "config.h"
#include "simnpu/core.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace simnpu {

struct ActiveFault {
    const FaultRule* rule;
    std::atomic<uint64_t> seen{0};
};

struct Counter {
    const char* name;
    std::atomic<uint64_t> count{0};
    std::atomic<int64_t> nanoseconds{0};
    std::deque<ActiveFault> faults;
};

namespace {

constexpr size_t kKeptRecords = 100000;

struct Accounts {
    std::mutex mutex;
    std::map<std::string, Counter, std::less<>> counters;
    std::deque<std::string> records;
    uint64_t dropped = 0;
    int log_fd = -1;
    bool keep_log = false;
    std::string problem;
};

Accounts* make_accounts();

// Never destroyed: worker threads and other libraries' destructors may still call in while the process exits.
Accounts& accounts() {
    static Accounts& instance = *make_accounts();
    return instance;
}

std::atomic<bool> g_device_used{false};
std::atomic<bool> g_broken_by_fork{false};
std::atomic<bool> g_timing{false};
thread_local Call* t_current = nullptr;

Accounts* make_accounts() {
    auto* made = new Accounts;
    made->problem = config().problem;
    const std::string& log = config().log;
    if (!log.empty()) {
        made->keep_log = true;
        if (log == "stderr") {
            made->log_fd = STDERR_FILENO;
        } else if (log != "memory") {
            made->log_fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
            if (made->log_fd < 0 && made->problem.empty())
                made->problem = "SIMNPU_LOG=" + log + " cannot be opened (" + std::strerror(errno) +
                                "): give a path in a writable directory, \"stderr\" or \"memory\"";
        }
    }
    if (!made->problem.empty()) tell(made->problem); // callers such as is_available() swallow the error
    ::pthread_atfork([] { accounts().mutex.lock(); }, [] { accounts().mutex.unlock(); },
                     [] {
                         accounts().mutex.unlock();
                         if (g_device_used.load()) g_broken_by_fork.store(true);
                     });
    return made;
}

int64_t clock_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

void write_record(const Counter& counter, const char* arguments, aclError result) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    char line[512];
    int length = std::snprintf(line, sizeof line, "%lld.%06ld pid=%d tid=%ld %s(%s) -> %d\n",
                               static_cast<long long>(now.tv_sec), now.tv_nsec / 1000, ::getpid(), ::syscall(SYS_gettid),
                               counter.name, arguments, result);
    auto& all = accounts();
    if (all.log_fd >= 0) {
        // One write per line, so lines of several processes do not mix.
        [[maybe_unused]] auto written = ::write(all.log_fd, line, static_cast<size_t>(length));
    }
    std::lock_guard lock(all.mutex);
    if (all.records.size() == kKeptRecords) {
        all.records.pop_front();
        ++all.dropped;
    }
    all.records.emplace_back(line, static_cast<size_t>(length));
}

} // namespace

void tell(const std::string& what) {
    const std::string line = "simnpu: " + what + "\n";
    [[maybe_unused]] auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void mark_device_used() {
    g_device_used.store(true);
}

bool broken_by_fork() {
    return g_broken_by_fork.load();
}

void note_result(aclError code) {
    if (t_current) t_current->set_result(code);
}

CallSite::CallSite(const char* name)
    : counter_([name]() -> Counter& {
          auto& all = accounts();
          std::lock_guard lock(all.mutex);
          auto [at, added] = all.counters.try_emplace(name);
          Counter& counter = at->second;
          if (added) {
              counter.name = at->first.c_str();
              for (const auto& rule : config().faults)
                  if (rule.call == name) counter.faults.emplace_back().rule = &rule;
          }
          return counter;
      }()) {}

Call::Call(const CallSite& site, bool always)
    : counter_(site.counter()), named_(counter_.name), outer_(t_current), logged_(accounts().keep_log) {
    t_current = this;
    // A call that another one makes is part of that one's time.
    if (g_timing.load(std::memory_order_relaxed) && !outer_) began_ = clock_now();
    counter_.count.fetch_add(1, std::memory_order_relaxed);
    arguments_[0] = '\0';
    if (!always) {
        if (!accounts().problem.empty()) {
            const Named nothing(""); // the text says what is wrong with the environment, whatever the call
            refusal_ = fail(ACL_ERROR_INVALID_PARAM, "%s", accounts().problem.c_str());
            return;
        }
        if (broken_by_fork()) {
            refusal_ = fail(ACL_ERROR_RT_CONTEXT_NULL,
                            "this process was forked from one that had used the NPU; its streams do not exist here. Start "
                            "it with the spawn method, or fork before the first use of the NPU");
            return;
        }
    }
    for (auto& fault : counter_.faults) {
        const uint64_t seen = fault.seen.fetch_add(1) + 1;
        if (fault.rule->nth != 0 && fault.rule->nth != seen) continue;
        if (fault.rule->delay) {
            std::this_thread::sleep_for(std::chrono::milliseconds(fault.rule->value));
        } else {
            refusal_ = fail(static_cast<aclError>(fault.rule->value), "call %llu failed on request (SIMNPU_FAULT)",
                            static_cast<unsigned long long>(seen));
        }
    }
}

Call::~Call() {
    if (logged_) write_record(counter_, arguments_, result_);
    t_current = outer_;
    if (began_ != 0) counter_.nanoseconds.fetch_add(clock_now() - began_, std::memory_order_relaxed);
}

void Call::arguments(const char* format, ...) {
    va_list values;
    va_start(values, format);
    std::vsnprintf(arguments_, sizeof arguments_, format, values);
    va_end(values);
}

namespace {

// Copies as much of `text` as fits and returns the room needed, so that a caller can ask twice.
size_t hand_out(const std::string& text, char* buffer, size_t room) {
    if (buffer && room > 0) {
        const size_t fits = std::min(text.size(), room - 1);
        std::memcpy(buffer, text.data(), fits);
        buffer[fits] = '\0';
    }
    return text.size() + 1;
}

// "name number" per line, of the numbers that are not 0.
template <typename Number>
size_t hand_out_each(Number number, char* buffer, size_t room) {
    auto& all = accounts();
    std::string text;
    std::lock_guard lock(all.mutex);
    for (const auto& [name, counter] : all.counters)
        if (auto value = (counter.*number).load()) text += name + " " + std::to_string(value) + "\n";
    return hand_out(text, buffer, room);
}

} // namespace
} // namespace simnpu

using namespace simnpu;

// "name count" per line, for simnpu/calls.py.
SIMNPU_EXPORT size_t simnpu_counts(char* buffer, size_t room) {
    return hand_out_each(&Counter::count, buffer, room);
}

// From now on the time inside calls is added up (on: not 0), or not.
SIMNPU_EXPORT void simnpu_time_calls(int on) {
    g_timing.store(on != 0);
}

// "name nanoseconds" per line, of the calls made while timing was on.
SIMNPU_EXPORT size_t simnpu_call_times(char* buffer, size_t room) {
    return hand_out_each(&Counter::nanoseconds, buffer, room);
}

// 1 if a log is kept (SIMNPU_LOG).
SIMNPU_EXPORT int simnpu_log_kept(void) {
    return accounts().keep_log ? 1 : 0;
}

// The kept lines of the log; `dropped` receives how many older ones were let go.
SIMNPU_EXPORT size_t simnpu_log(char* buffer, size_t room, uint64_t* dropped) {
    auto& all = accounts();
    std::string text;
    std::lock_guard lock(all.mutex);
    for (const auto& record : all.records) text += record;
    if (dropped) *dropped = all.dropped;
    return hand_out(text, buffer, room);
}

// Counts, times and log start over; SIMNPU_FAULT goes on counting from the start of the process.
SIMNPU_EXPORT void simnpu_reset_calls(void) {
    auto& all = accounts();
    std::lock_guard lock(all.mutex);
    for (auto& [name, counter] : all.counters) {
        counter.count.store(0);
        counter.nanoseconds.store(0);
    }
    all.records.clear();
    all.dropped = 0;
}
