// ATen's operators make their results in memory of their own. Most have a form that writes into given tensors, but not all, and not
// always straight into them. Instead, memory is offered to the allocator: what is made there need not be copied there.
#pragma once

#include <cstddef>

namespace simnpu {

// While it lives, ATen gets the offered memory when it asks on this thread for exactly as many bytes, each once. What it frees is
// left alone. Whoever offers must look where the result lies, since an intermediate result may have been first.
class Placement {
public:
    Placement();
    ~Placement();
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;
    void offer(void* memory, size_t bytes);
};

} // namespace simnpu
