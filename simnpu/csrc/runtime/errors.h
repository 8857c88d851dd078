// Errors with their texts, per thread, and carried from a stream's worker to the thread that synchronizes.
#pragma once

#include "simnpu/core.h"

#include <exception>
#include <string>
#include <utility>

namespace simnpu {

struct Failure {
    aclError code = ACL_SUCCESS;
    std::string text;
    explicit operator bool() const { return code != ACL_SUCCESS; }
};

// Makes a failure that happened elsewhere this thread's error, with the text that it has.
aclError raise(const Failure& failure);

struct ErrorState {
    std::string text;
    aclError last = ACL_SUCCESS;
};
ErrorState& thread_errors();

// Gives the thread its own error state back, also when the thread ends inside (pthread_exit), which passes as an exception that
// nobody may stop: hence no catch (...) below.
class OwnErrorState {
public:
    OwnErrorState() { std::swap(kept_, thread_errors()); }
    ~OwnErrorState() { std::swap(kept_, thread_errors()); }
    OwnErrorState(const OwnErrorState&) = delete;
    OwnErrorState& operator=(const OwnErrorState&) = delete;

private:
    ErrorState kept_;
};

// `name` becomes what a search found; if it found nothing and has said why, the entry point ends with that error.
#define FIND_OR_RETURN(name, ...)                                                                                              \
    const auto name = __VA_ARGS__;                                                                                             \
    if (!name) return ::simnpu::thread_errors().last

// Runs `body` on this thread apart from the thread's own error state; a non-zero result comes back with its text, an exception
// as ACL_ERROR_INTERNAL_ERROR. Only the end of the thread itself (pthread_exit, pthread_cancel) goes on through.
template <typename Body>
Failure isolated(Body&& body) {
    const OwnErrorState apart;
    Failure failure;
    try {
        failure.code = body();
    } catch (const std::exception& error) {
        failure.code = ACL_ERROR_INTERNAL_ERROR;
        thread_errors().text = std::string(current_name()) + ": " + error.what();
    }
    if (failure) {
        failure.text = thread_errors().text;
        if (failure.text.empty()) failure.text = std::string(current_name()) + " failed with error " + std::to_string(failure.code);
    }
    return failure;
}

} // namespace simnpu
