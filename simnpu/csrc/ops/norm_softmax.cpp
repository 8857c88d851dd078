// Softmax and normalisation, forward and backward.
#include "operator.h"

namespace simnpu {
namespace {

// The CPU kernels want the statistics in a type that follows from the other arguments, the device keeps them in float: lower
// precision is computed in float throughout.
bool is_low(const Tensor& tensor) { return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16; }
Tensor raised(const Tensor& tensor) { return is_low(tensor) ? tensor.to(at::kFloat) : tensor; }
std::optional<Tensor> raised(const std::optional<Tensor>& tensor) { return tensor ? std::optional(raised(*tensor)) : tensor; }

// A weight or bias has the input's type, or float beside a lower one.
Tensor raised_beside(const Tensor& input, const Tensor& parameter) {
    const auto type = parameter.scalar_type();
    TORCH_CHECK(type == input.scalar_type() || (type == at::kFloat && is_low(input)), "mixed types: the weight or bias has ", type,
                ", the input ", input.scalar_type());
    return raised(parameter);
}
std::optional<Tensor> raised_beside(const Tensor& input, const std::optional<Tensor>& parameter) {
    return parameter ? std::optional(raised_beside(input, *parameter)) : parameter;
}

// Rounds what was computed in float to the output's type. The statistics of nothing may have any shape.
void store(const Out& out, const Tensor& result) {
    if (!out || (result.defined() && result.numel() == 0 && out.tensor().numel() == 0)) return;
    out = result.defined() ? result.to(out.dtype()) : result;
}

} // namespace
} // namespace simnpu

OPERATOR(Softmax, [](const Tensor& self, int64_t dim, Out out) { into<aten::_softmax>(out, self.to(out.dtype()), dim, false); })
OPERATOR(LogSoftmax, [](const Tensor& self, int64_t dim, Out out) {
    into<aten::_log_softmax>(out, self.to(out.dtype()), dim, false);
})
OPERATOR(SoftmaxBackward, [](const Tensor& grad_output, const Tensor& output, int64_t dim, Out grad_input) {
    store(grad_input, aten::_softmax_backward_data::call(grad_output, output, dim, output.scalar_type()));
})
OPERATOR(LogSoftmaxBackward, [](const Tensor& grad_output, const Tensor& output, int64_t dim, Out grad_input) {
    store(grad_input, aten::_log_softmax_backward_data::call(grad_output, output, dim, output.scalar_type()));
})

OPERATOR(LayerNorm, [](const Tensor& input, c10::SymIntArrayRef shape, std::optional<Tensor> weight, std::optional<Tensor> bias,
                       double eps, Out out, Out mean, Out rstd) {
    std::vector<const Tensor*> inputs;
    collect(inputs, input);
    collect(inputs, weight);
    collect(inputs, bias);
    Placement placement;
    offer_outputs(placement, inputs, {&out});
    auto result = aten::native_layer_norm::call(raised(input), shape, raised_beside(input, weight), raised_beside(input, bias), eps);
    auto& normalized = std::get<0>(result);
    if (out && out.dtype() == normalized.scalar_type()) {
        settle({&out}, {&normalized});
    } else {
        store(out, normalized);
    }
    store(mean, std::get<1>(result));
    store(rstd, std::get<2>(result));
})
OPERATOR(LayerNormBackward, [](const Tensor& grad_out, const Tensor& input, c10::SymIntArrayRef shape, const Tensor& mean,
                               const Tensor& rstd, std::optional<Tensor> weight, std::optional<Tensor> bias,
                               std::array<bool, 3> mask, Out grad_input, Out grad_weight, Out grad_bias) {
    auto result = aten::native_layer_norm_backward::call(raised(grad_out), raised(input), shape, raised(mean), raised(rstd),
                                                         raised_beside(input, weight), raised_beside(input, bias), mask);
    if (mask[0]) store(grad_input, std::get<0>(result));
    if (mask[1]) store(grad_weight, std::get<1>(result));
    if (mask[2]) store(grad_bias, std::get<2>(result));
})
OPERATOR(GroupNorm, [](const Tensor& input, std::optional<Tensor> weight, std::optional<Tensor> bias, int64_t n, int64_t c,
                       int64_t hxw, int64_t group, double eps, Out out, Out mean, Out rstd) {
    auto result =
        aten::native_group_norm::call(raised(input).contiguous(), raised_beside(input, weight), raised_beside(input, bias), n, c, hxw, group, eps);
    store(out, std::get<0>(result));
    store(mean, std::get<1>(result));
    store(rstd, std::get<2>(result));
})
OPERATOR(GroupNormBackward, [](const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                               std::optional<Tensor> weight, int64_t n, int64_t c, int64_t hxw, int64_t group,
                               std::array<bool, 3> mask, Out grad_input, Out grad_weight, Out grad_bias) {
    auto result = aten::native_group_norm_backward::call(raised(grad_out).contiguous(), raised(input).contiguous(), raised(mean),
                                                         raised(rstd), raised_beside(input, weight), n, c, hxw, group, mask);
    if (mask[0]) store(grad_input, std::get<0>(result));
    if (mask[1]) store(grad_weight, std::get<1>(result));
    if (mask[2]) store(grad_bias, std::get<2>(result));
})
OPERATOR(BatchNorm, [](const Tensor& input, std::optional<Tensor> weight, std::optional<Tensor> bias,
                       std::optional<Tensor> running_mean, std::optional<Tensor> running_var, bool training, double momentum,
                       double eps, Out out, Out save_mean, Out save_invstd) {
    const auto mean = raised(running_mean), var = raised(running_var);
    auto result =
        aten::native_batch_norm::call(raised(input), raised_beside(input, weight), raised_beside(input, bias), mean, var, training, momentum, eps);
    if (training && running_mean && is_low(*running_mean)) aten::copy_::call(*running_mean, *mean, false);
    if (training && running_var && is_low(*running_var)) aten::copy_::call(*running_var, *var, false);
    store(out, std::get<0>(result));
    if (!training) return; // the saved statistics are those of the batch
    store(save_mean, std::get<1>(result));
    store(save_invstd, std::get<2>(result));
})
OPERATOR(BatchNormBackward, [](const Tensor& grad_out, const Tensor& input, std::optional<Tensor> weight,
                               std::optional<Tensor> running_mean, std::optional<Tensor> running_var,
                               std::optional<Tensor> save_mean, std::optional<Tensor> save_invstd, bool train, double eps,
                               std::array<bool, 3> mask, Out grad_input, Out grad_weight, Out grad_bias) {
    auto result = aten::native_batch_norm_backward::call(raised(grad_out), raised(input), raised_beside(input, weight), raised(running_mean),
                                                         raised(running_var), raised(save_mean), raised(save_invstd), train, eps,
                                                         mask);
    if (mask[0]) store(grad_input, std::get<0>(result));
    if (mask[1]) store(grad_weight, std::get<1>(result));
    if (mask[2]) store(grad_bias, std::get<2>(result));
})

// x / sqrt(mean(x^2) + eps) * gamma over the dimensions of gamma; rstd keeps the reduced dimensions as 1.
OPERATOR(RmsNorm, [](const Tensor& self, const Tensor& gamma, double epsilon, Out y, Out rstd) {
    const auto x = raised(self);
    std::vector<int64_t> dims;
    for (int64_t i = 1; i <= gamma.dim(); ++i) dims.push_back(-i);
    auto mean = aten::mean_dim::call(aten::mul_Tensor::call(x, x), IntArrayRef(dims), true, {});
    auto scale = aten::rsqrt::call(aten::add_Scalar::call(mean, epsilon, 1));
    store(y, aten::mul_Tensor::call(aten::mul_Tensor::call(x, scale), raised_beside(self, gamma)));
    store(rstd, scale);
})
OPERATOR(RmsNormGrad, [](const Tensor& dy, const Tensor& self, const Tensor& rstd, const Tensor& gamma, Out dx, Out dgamma) {
    const auto x = raised(self), grad = raised(dy), scale = raised(rstd);
    std::vector<int64_t> dims, outer;
    for (int64_t i = 1; i <= gamma.dim(); ++i) dims.push_back(-i);
    for (int64_t i = 0; i < x.dim() - gamma.dim(); ++i) outer.push_back(i);
    const auto normal = aten::mul_Tensor::call(x, scale);
    const auto weighted = aten::mul_Tensor::call(grad, raised_beside(self, gamma));
    const auto along = aten::mean_dim::call(aten::mul_Tensor::call(weighted, normal), IntArrayRef(dims), true, {});
    store(dx, aten::mul_Tensor::call(aten::sub_Tensor::call(weighted, aten::mul_Tensor::call(normal, along), 1), scale));
    const auto each = aten::mul_Tensor::call(grad, normal);
    store(dgamma, outer.empty() ? each : aten::sum_dim_IntList::call(each, IntArrayRef(outer), false, {}));
})
