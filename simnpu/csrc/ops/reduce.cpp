// Reductions, scans and order: from many elements of a dimension to fewer, or to their order.
#include "operator.h"

namespace simnpu {
namespace {

// torch_npu makes an output of the input's type, which for complex numbers is not that of a norm or a variance.
const Tensor& real(const Tensor& self) {
    TORCH_CHECK(!self.is_complex(), "not implemented for '", self.scalar_type(), "'");
    return self;
}

} // namespace
} // namespace simnpu

ATEN(ReduceSum, sum_dim_IntList)
ATEN(ReduceNansum, nansum)
ATEN(Mean, mean_dim)
ATEN(Prod, prod)
ATEN(ProdDim, prod_dim_int)
ATEN(All, all_dims)
ATEN(Any, any_dims)
ATEN(Amax, amax)
ATEN(Amin, amin)
ATEN(Max, max)
ATEN(Min, min)
ATEN(MaxDim, max_dim)
ATEN(MinDim, min_dim)
ATEN(ArgMax, argmax)
ATEN(ArgMin, argmin)
OPERATOR(Aminmax, [](const Tensor& self, IntArrayRef dims, bool keepdim) {
    return std::tuple(aten::amin::call(self, dims, keepdim), aten::amax::call(self, dims, keepdim));
})
ATEN(AminmaxAll, _aminmax)
ATEN(AminmaxDim, _aminmax_dim)
ATEN(Median, median)
ATEN(MedianDim, median_dim)
ATEN(NanMedian, nanmedian)
ATEN(NanMedianDim, nanmedian_dim)
ATEN(Kthvalue, kthvalue)
ATEN(LogSumExp, logsumexp)
ATEN(Trace, trace)

OPERATOR(Std, [](const Tensor& self, at::OptionalIntArrayRef dims, int64_t correction, bool keepdim) {
    return aten::std_correction::call(real(self), dims, correction, keepdim);
})
OPERATOR(VarCorrection, [](const Tensor& self, at::OptionalIntArrayRef dims, int64_t correction, bool keepdim) {
    return aten::var_correction::call(real(self), dims, correction, keepdim);
})
OPERATOR(VarMean, [](const Tensor& self, at::OptionalIntArrayRef dims, int64_t correction, bool keepdim) {
    return aten::var_mean_correction::call(real(self), dims, correction, keepdim);
})
OPERATOR(StdMeanCorrection, [](const Tensor& self, at::OptionalIntArrayRef dims, int64_t correction, bool keepdim) {
    return aten::std_mean_correction::call(real(self), dims, correction, keepdim);
})
OPERATOR(Norm, [](const Tensor& self, std::optional<Scalar> order, IntArrayRef dims, bool keepdim) {
    return aten::norm_ScalarOpt_dim::call(real(self), order, dims, keepdim);
})
OPERATOR(LinalgVectorNorm, [](const Tensor& self, const Scalar& order, at::OptionalIntArrayRef dims, bool keepdim,
                              std::optional<ScalarType> dtype) {
    return aten::linalg_vector_norm::call(real(self), order, dims, keepdim, dtype);
})
ATEN(Renorm, renorm)
ATEN_INPLACE(Renorm, renorm_)

ATEN(Cumsum, cumsum)
OPERATOR(Cumprod, [](const Tensor& self, const Scalar& dim, ScalarType dtype) {
    return aten::cumprod::call(self, dim.toLong(), dtype);
})
ATEN(Cummax, cummax)
ATEN(Cummin, cummin)

ATEN(Sort, sort_stable)
ATEN(Topk, topk)
ATEN(Histc, histc)
ATEN(Bincount, bincount)
