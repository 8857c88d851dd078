// Filling tensors: constants, ranges, patterns.
#include "operator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace simnpu {
namespace {

// Gives the pages of much memory back instead of writing them: whoever touches one next finds zeros. Autotuning clears
// hundreds of megabytes before each run of each candidate, and never reads them.
bool zero_by_giving_back(const Tensor& self) {
    constexpr size_t kMuch = size_t{64} << 20;
    const size_t bytes = self.nbytes();
    if (bytes < kMuch || !self.is_non_overlapping_and_dense()) return false;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<uintptr_t>(self.data_ptr());
    const uintptr_t end = begin + bytes, first = (begin + page - 1) / page * page, last = end / page * page;
    if (::madvise(reinterpret_cast<void*>(first), last - first, MADV_REMOVE) != 0) return false; // memory of another kind
    std::memset(reinterpret_cast<void*>(begin), 0, first - begin);
    std::memset(reinterpret_cast<void*>(last), 0, end - last);
    return true;
}

} // namespace
} // namespace simnpu

OPERATOR(InplaceZero, [](Tensor& self) {
    if (!simnpu::zero_by_giving_back(self)) aten::zero_::call(self);
})
OPERATOR(InplaceOne, [](Tensor& self) { aten::fill__Scalar::call(self, 1); })
ATEN(InplaceFillScalar, fill__Scalar)
ATEN(InplaceFillTensor, fill__Tensor)
ATEN(InplaceFillDiagonal, fill_diagonal_)

OPERATOR(Arange, [](const Scalar& start, const Scalar& end, const Scalar& step, Out out) {
    out = aten::arange_start_step::call(start, end, step, out.dtype(), {}, {}, {});
})
OPERATOR(Range, [](const Scalar& start, const Scalar& end, const Scalar& step, Out out) {
    out = aten::range_step::call(start, end, step, out.dtype(), {}, {}, {});
})
OPERATOR(Linspace, [](const Scalar& start, const Scalar& end, int64_t steps, Out out) {
    out = aten::linspace::call(start, end, steps, out.dtype(), {}, {}, {});
})
OPERATOR(LogSpace, [](const Scalar& start, const Scalar& end, int64_t steps, double base, Out out) {
    out = aten::logspace::call(start, end, steps, base, out.dtype(), {}, {}, {});
})
OPERATOR(Eye, [](int64_t n, int64_t m, Out out) { out = aten::eye_m::call(n, m, out.dtype(), {}, {}, {}); })

ATEN_BOTH(Tril, tril)
ATEN_BOTH(Triu, triu)
