// A test is a function that checks; a failed check is printed with its place and the test goes on.
#pragma once

#include "simnpu/cann.h"

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& all() {
    static std::vector<Test> tests;
    return tests;
}

struct Registered {
    Registered(const char* name, void (*run)()) { all().push_back({name, run}); }
};

inline std::atomic<int> failures{0};

inline bool that(bool holds, const char* what, const char* file, int line, const std::string& more = {}) {
    if (!holds) {
        ++failures;
        std::fprintf(stderr, "%s:%d: does not hold: %s %s\n", file, line, what, more.c_str());
    }
    return holds;
}

inline std::string told(aclError code) {
    return std::to_string(code) + " " + aclGetRecentErrMsg();
}

} // namespace check

#define TEST(name)                                                                                                             \
    static void name();                                                                                                        \
    static const check::Registered registered_##name{#name, name};                                                             \
    static void name()

#define CHECK(condition) check::that((condition), #condition, __FILE__, __LINE__)

// The call must succeed, or return just this code.
#define OK(call)                                                                                                               \
    do {                                                                                                                       \
        const aclError code_ = (call);                                                                                         \
        check::that(code_ == ACL_SUCCESS, #call, __FILE__, __LINE__, code_ ? check::told(code_) : "");                         \
    } while (false)
#define REFUSES(code, call)                                                                                                    \
    do {                                                                                                                       \
        const aclError code_ = (call);                                                                                         \
        check::that(code_ == (code), #call " -> " #code, __FILE__, __LINE__, check::told(code_));                              \
    } while (false)
