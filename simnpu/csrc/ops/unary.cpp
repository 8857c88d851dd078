// Functions of one tensor, element by element, and their gradients.
#include "operator.h"

ATEN(Abs, abs)
ATEN_BOTH(Acos, acos)
ATEN_BOTH(Acosh, acosh)
ATEN(AngleV2, angle)
ATEN_BOTH(Asin, asin)
ATEN_BOTH(Asinh, asinh)
ATEN_BOTH(Atan, atan)
ATEN_BOTH(Atanh, atanh)
ATEN(BitwiseNot, bitwise_not)
ATEN_BOTH(Ceil, ceil)
ATEN_BOTH(Cos, cos)
ATEN_BOTH(Cosh, cosh)
ATEN_BOTH(Erf, erf)
ATEN_BOTH(Erfc, erfc)
ATEN_BOTH(Erfinv, erfinv)
ATEN_BOTH(Exp, exp)
ATEN_BOTH(Exp2, exp2)
ATEN_BOTH(Expm1, expm1)
ATEN_BOTH(Floor, floor)
ATEN_BOTH(Frac, frac)
ATEN(IsFinite, isfinite)
ATEN(IsNegInf, isneginf)
ATEN(IsPosInf, isposinf)
ATEN_BOTH(Log, log)
ATEN_BOTH(Log10, log10)
ATEN_BOTH(Log1p, log1p)
ATEN_BOTH(Log2, log2)
ATEN_BOTH(LogicalNot, logical_not)
ATEN(Neg, neg)
ATEN_BOTH(Reciprocal, reciprocal)
ATEN(Round, round)
ATEN(RoundDecimals, round_decimals)
ATEN(InplaceRoundDecimals, round__decimals)
ATEN_BOTH(Rsqrt, rsqrt)
ATEN(Sign, sgn) // complex numbers too
ATEN(Signbit, signbit)
ATEN_BOTH(Sin, sin)
ATEN_BOTH(Sinc, sinc)
ATEN_BOTH(Sinh, sinh)
ATEN_BOTH(Sqrt, sqrt)
ATEN_BOTH(Tan, tan)
ATEN(Trunc, trunc)

// Not a number, +inf and -inf come as floats, always given.
OPERATOR(NanToNum, [](const Tensor& self, float nan, float posinf, float neginf) {
    return aten::nan_to_num::call(self, nan, posinf, neginf);
})
OPERATOR(InplaceNanToNum, [](Tensor& self, float nan, float posinf, float neginf) {
    aten::nan_to_num_::call(self, nan, posinf, neginf);
})

OPERATOR(Logit, [](const Tensor& self, double eps) {
    return aten::logit::call(self, eps < 0 ? std::nullopt : std::optional(eps)); // -1: the caller gave no eps
})
OPERATOR(LogitGrad, [](const Tensor& self, const Tensor& grad_output, double eps) {
    return aten::logit_backward::call(grad_output, self, eps < 0 ? std::nullopt : std::optional(eps));
})
