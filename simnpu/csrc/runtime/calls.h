// What the rest of the runtime tells call accounting.
#pragma once

#include "simnpu/cann.h"

#include <string>

namespace simnpu {

// A line on stderr: for what a caller may keep to itself, so that a person sees it.
void tell(const std::string& what);

// From now on a forked child cannot use the device: the worker threads stay behind in the parent.
void mark_device_used();
bool broken_by_fork();

// The result of the current entry point, for the log.
void note_result(aclError code);

} // namespace simnpu
