#include "errors.h"

#include "calls.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace simnpu {
namespace {

thread_local const char* t_name = "";

} // namespace

const char* current_name() {
    return t_name;
}

Named::Named(const char* name) : outer_(std::exchange(t_name, name)) {}

Named::~Named() {
    t_name = outer_;
}

ErrorState& thread_errors() {
    thread_local ErrorState state;
    return state;
}

aclError fail(aclError code, const char* format, ...) {
    char text[1024];
    const int begin = *t_name ? std::snprintf(text, sizeof text, "%s: ", t_name) : 0;
    va_list values;
    va_start(values, format);
    std::vsnprintf(text + begin, sizeof text - static_cast<size_t>(begin), format, values);
    va_end(values);
    return raise(Failure{code, text});
}

aclError raise(const Failure& failure) {
    auto& state = thread_errors();
    state.text = failure.text;
    state.last = failure.code;
    note_result(failure.code);
    return failure.code;
}

aclError is_null(const char* what, aclError code) {
    return fail(code, "%s is null", what);
}

aclError not_simulated() {
    return raise({ACL_ERROR_RT_FEATURE_NOT_SUPPORT, std::string(t_name) + " is not simulated: this needs a real NPU with CANN"});
}

} // namespace simnpu

using namespace simnpu;

// The text of this thread's latest error; asking clears it. Valid until the next call from the same thread.
SIMNPU_EXPORT const char* aclGetRecentErrMsg() {
    SIMNPU_CALL_SITE_("", true, "aclGetRecentErrMsg");
    thread_local std::string handed_out;
    handed_out.clear();
    std::swap(handed_out, thread_errors().text);
    return handed_out.c_str();
}

SIMNPU_EXPORT aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    SIMNPU_CALL_ALWAYS("aclrtPeekAtLastError", "level=%d", static_cast<int>(level));
    if (level != ACL_RT_THREAD_LEVEL) return fail(ACL_ERROR_INVALID_PARAM, "unknown level %d", level);
    const aclError last = thread_errors().last;
    simnpu_call_.set_result(last);
    return last;
}

SIMNPU_EXPORT aclError aclrtGetLastError(aclrtLastErrLevel level) {
    SIMNPU_CALL_ALWAYS("aclrtGetLastError", "level=%d", static_cast<int>(level));
    if (level != ACL_RT_THREAD_LEVEL) return fail(ACL_ERROR_INVALID_PARAM, "unknown level %d", level);
    const aclError last = std::exchange(thread_errors().last, ACL_SUCCESS);
    simnpu_call_.set_result(last);
    return last;
}

// Application logs of the wheel go nowhere: it has logs of its own.
SIMNPU_EXPORT void aclAppLog(aclLogLevel, const char*, const char*, uint32_t, const char*, ...) {
    SIMNPU_CALL_SITE_(, true, "aclAppLog");
}
