// Filling tensors: constants, ranges, patterns.
#include "operator.h"

OPERATOR(InplaceZero, [](Tensor& self) { aten::zero_::call(self); })
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
