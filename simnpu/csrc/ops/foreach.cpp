// Operators on lists of tensors (optimizers): the same computation for each position.
#include "operator.h"

namespace simnpu {
namespace {

using Outs = std::vector<Out>;

// out[i] = compute(i); refuses lists of different lengths.
template <class Compute, class... Lists>
void each(const Outs& out, const Compute& compute, const Lists&... lists) {
    TORCH_CHECK(((lists.size() == out.size()) && ...), "lists of different lengths");
    for (size_t i = 0; i < out.size(); ++i) out[i] = compute(i);
}

} // namespace
} // namespace simnpu

#define FOREACH_UNARY(NAME, ATEN_NAME)                                                                                         \
    OPERATOR(Foreach##NAME, [](TensorList x, const Outs& out) {                                                                \
        each(out, [&](size_t i) { return aten::ATEN_NAME::call(x[i]); }, x);                                                   \
    })

FOREACH_UNARY(Abs, abs)
FOREACH_UNARY(Acos, acos)
FOREACH_UNARY(Asin, asin)
FOREACH_UNARY(Atan, atan)
FOREACH_UNARY(Cos, cos)
FOREACH_UNARY(Cosh, cosh)
FOREACH_UNARY(Erf, erf)
FOREACH_UNARY(Erfc, erfc)
FOREACH_UNARY(Exp, exp)
FOREACH_UNARY(Expm1, expm1)
FOREACH_UNARY(Log, log)
FOREACH_UNARY(Log10, log10)
FOREACH_UNARY(Log1p, log1p)
FOREACH_UNARY(Log2, log2)
FOREACH_UNARY(Neg, neg)
FOREACH_UNARY(Reciprocal, reciprocal)
FOREACH_UNARY(Sigmoid, sigmoid)
FOREACH_UNARY(Sign, sign)
FOREACH_UNARY(Sin, sin)
FOREACH_UNARY(Sinh, sinh)
FOREACH_UNARY(Sqrt, sqrt)
FOREACH_UNARY(Tan, tan)
FOREACH_UNARY(Tanh, tanh)

// One scalar for all, one scalar each, one tensor each.
#define FOREACH_SCALAR(NAME, ...)                                                                                              \
    OPERATOR(Foreach##NAME##ScalarV2, [](TensorList x, const Scalar& scalar, const Outs& out) {                                \
        each(out, [&](size_t i) { return __VA_ARGS__(x[i], scalar); }, x);                                                     \
    })
#define FOREACH_SCALAR_LIST(NAME, ...)                                                                                         \
    OPERATOR(Foreach##NAME##ScalarList, [](TensorList x, at::ArrayRef<Scalar> scalars, const Outs& out) {                      \
        each(out, [&](size_t i) { return __VA_ARGS__(x[i], scalars[i]); }, x, scalars);                                        \
    })
#define FOREACH_LIST(NAME, ...)                                                                                                \
    OPERATOR(Foreach##NAME##List, [](TensorList x, TensorList y, const Outs& out) {                                            \
        each(out, [&](size_t i) { return __VA_ARGS__(x[i], y[i]); }, x, y);                                                    \
    })
#define FOREACH_BOTH_SCALARS(NAME, ...) FOREACH_SCALAR(NAME, __VA_ARGS__) FOREACH_SCALAR_LIST(NAME, __VA_ARGS__)

namespace simnpu {
namespace {

Tensor plus(const Tensor& x, const Scalar& y) { return aten::add_Scalar::call(x, y, 1); }
Tensor minus(const Tensor& x, const Scalar& y) { return aten::sub_Scalar::call(x, y, 1); }

} // namespace
} // namespace simnpu

FOREACH_BOTH_SCALARS(Add, plus)
FOREACH_BOTH_SCALARS(Sub, minus)
FOREACH_BOTH_SCALARS(Mul, aten::mul_Scalar::call)
FOREACH_BOTH_SCALARS(Div, aten::div_Scalar::call)
FOREACH_BOTH_SCALARS(Pow, aten::pow_Tensor_Scalar::call)
FOREACH_BOTH_SCALARS(Maximum, aten::clamp_min::call)
FOREACH_BOTH_SCALARS(Minimum, aten::clamp_max::call)
FOREACH_LIST(Mul, aten::mul_Tensor::call)
FOREACH_LIST(Div, aten::div_Tensor::call)
FOREACH_LIST(Pow, aten::pow_Tensor_Tensor::call)
FOREACH_LIST(Maximum, aten::maximum::call)
FOREACH_LIST(Minimum, aten::minimum::call)
OPERATOR(ForeachAddListV2, [](TensorList x, TensorList y, const Scalar& alpha, const Outs& out) {
    each(out, [&](size_t i) { return aten::add_Tensor::call(x[i], y[i], alpha); }, x, y);
})
OPERATOR(ForeachSubListV2, [](TensorList x, TensorList y, const Scalar& alpha, const Outs& out) {
    each(out, [&](size_t i) { return aten::sub_Tensor::call(x[i], y[i], alpha); }, x, y);
})
OPERATOR(ForeachPowScalarAndTensor, [](const Scalar& base, TensorList exponents, const Outs& out) {
    each(out, [&](size_t i) { return aten::pow_Scalar::call(base, exponents[i]); }, exponents);
})
OPERATOR(ForeachLerpScalar, [](TensorList x, TensorList end, const Scalar& weight, const Outs& out) {
    each(out, [&](size_t i) { return aten::lerp_Scalar::call(x[i], end[i], weight); }, x, end);
})
OPERATOR(ForeachLerpList, [](TensorList x, TensorList end, TensorList weights, const Outs& out) {
    each(out, [&](size_t i) { return aten::lerp_Tensor::call(x[i], end[i], weights[i]); }, x, end, weights);
})
OPERATOR(ForeachAddcmulScalarV2, [](TensorList x, TensorList a, TensorList b, const Scalar& value, const Outs& out) {
    each(out, [&](size_t i) { return aten::addcmul::call(x[i], a[i], b[i], value); }, x, a, b);
})
OPERATOR(ForeachAddcdivScalarV2, [](TensorList x, TensorList a, TensorList b, const Scalar& value, const Outs& out) {
    each(out, [&](size_t i) { return aten::addcdiv::call(x[i], a[i], b[i], value); }, x, a, b);
})
OPERATOR(ForeachAddcmulScalarList, [](TensorList x, TensorList a, TensorList b, at::ArrayRef<Scalar> values, const Outs& out) {
    each(out, [&](size_t i) { return aten::addcmul::call(x[i], a[i], b[i], values[i]); }, x, a, b, values);
})
OPERATOR(ForeachAddcdivScalarList, [](TensorList x, TensorList a, TensorList b, at::ArrayRef<Scalar> values, const Outs& out) {
    each(out, [&](size_t i) { return aten::addcdiv::call(x[i], a[i], b[i], values[i]); }, x, a, b, values);
})
OPERATOR(ForeachNorm, [](TensorList x, const Scalar& order, const Outs& out) {
    each(out, [&](size_t i) { return aten::linalg_vector_norm::call(x[i], order, {}, false, {}).view_as(out[i].tensor()); }, x);
})
OPERATOR(ForeachCopy, [](TensorList src, const Outs& dst) {
    each(dst, [&](size_t i) { return src[i].to(dst[i].dtype()); }, src);
})
OPERATOR(ForeachZeroInplace, [](const Outs& self) {
    for (const auto& out : self) aten::zero_::call(const_cast<Tensor&>(out.tensor()));
})
OPERATOR(ForeachNonFiniteCheckAndUnscale, [](TensorList grads, Tensor& found_inf, const Tensor& inverse_scale) {
    aten::_amp_foreach_non_finite_check_and_unscale_::call(grads, found_inf, inverse_scale);
})
