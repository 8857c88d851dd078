// Errors with their texts, per thread, and carried from a stream's worker to the thread that synchronizes.
#pragma once

#include "simnpu/cann.h"

#include <cxxabi.h>
#include <exception>
#include <string>
#include <utility>

namespace simnpu {

struct Failure {
    aclError code = ACL_SUCCESS;
    std::string text;
    explicit operator bool() const { return code != ACL_SUCCESS; }
};

// Runs `body` on this thread apart from the thread's own error state; a non-zero result comes back with its text, an exception
// as ACL_ERROR_INTERNAL_ERROR. Only the end of the thread itself (pthread_exit, pthread_cancel) goes on through.
template <typename Body>
Failure isolated(const char* name, Body&& body);

// Makes a failure that happened elsewhere this thread's error.
aclError raise(const Failure& failure);

struct ErrorState {
    std::string text;
    aclError last = ACL_SUCCESS;
};
ErrorState& thread_errors();

// The end of a thread passes as an exception without an object, so that a handler for it names a reference to nothing: how the
// C++ library wants it, and no finding.
#define SIMNPU_PASSES_END_OF_THREAD __attribute__((no_sanitize("null")))

template <typename Body>
Failure isolated(const char* name, Body&& body) {
    ErrorState kept;
    std::swap(kept, thread_errors());
    Failure failure;
    try {
        failure.code = body();
    } catch (const std::exception& error) {
        failure.code = ACL_ERROR_INTERNAL_ERROR;
        thread_errors().text = std::string(name) + ": " + error.what();
    } catch (...) {
        // The end of the thread (pthread_exit) passes as an exception without a type. Whoever stops it ends the process.
        if (!abi::__cxa_current_exception_type()) {
            std::swap(kept, thread_errors());
            throw;
        }
        failure.code = ACL_ERROR_INTERNAL_ERROR;
        thread_errors().text = std::string(name) + ": unknown exception";
    }
    if (failure) {
        failure.text = thread_errors().text;
        if (failure.text.empty()) failure.text = std::string(name) + " failed with error " + std::to_string(failure.code);
    }
    std::swap(kept, thread_errors());
    return failure;
}

} // namespace simnpu
