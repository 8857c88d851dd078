// Activation functions and their gradients.
#include "operator.h"

#include <ATen/core/IListRef.h>

ATEN_BOTH(Celu, celu)
ATEN_BOTH(Elu, elu)
ATEN(EluBackward, elu_backward)
ATEN(Glu, glu)
ATEN(GluBackward, glu_backward)
ATEN(Hardshrink, hardshrink)
ATEN(HardshrinkBackward, hardshrink_backward)
ATEN_BOTH(Hardsigmoid, hardsigmoid)
ATEN(HardsigmoidBackward, hardsigmoid_backward)
ATEN_BOTH(Hardswish, hardswish)
ATEN(HardswishBackward, hardswish_backward)
ATEN(HardswishBackwardV2, hardswish_backward)
ATEN_BOTH(Hardtanh, hardtanh)
ATEN(HardtanhBackward, hardtanh_backward)
ATEN_BOTH(LeakyRelu, leaky_relu)
ATEN(LeakyReluBackward, leaky_relu_backward)
ATEN_BOTH(Mish, mish)
ATEN(MishBackward, mish_backward)
ATEN(Prelu, _prelu_kernel)
ATEN_BOTH(Relu, relu)
ATEN_BOTH(Sigmoid, sigmoid)
ATEN(SigmoidBackward, sigmoid_backward)
ATEN(Silu, silu)
ATEN(SiluBackward, silu_backward)
ATEN(Softplus, softplus)
ATEN(SoftplusBackward, softplus_backward)
ATEN(Softshrink, softshrink)
ATEN(SoftshrinkBackward, softshrink_backward)
ATEN_BOTH(Tanh, tanh)
ATEN(TanhBackward, tanh_backward)
ATEN_BOTH(Threshold, threshold)
ATEN(ThresholdBackward, threshold_backward)

COMPOSITE(LogSigmoid, [](const Tensor& self) { return aten::log_sigmoid::call(self); })
// The buffer is a hint of the forward for the backward. Its size is the device's business: neither reads nor writes it here.
OPERATOR(LogSigmoidForward, [](const Tensor& self, Out out, Out) { out = aten::log_sigmoid::call(self); })
COMPOSITE(LogSigmoidBackward, [](const Tensor& grad_output, const Tensor& self, std::optional<Tensor>) {
    return aten::mul_Tensor::call(grad_output, aten::sigmoid::call(aten::neg::call(self)));
})

OPERATOR(Gelu, [](const Tensor& self, Out out) { into<aten::gelu>(out, self, "none"); })
OPERATOR(GeluBackward, [](const Tensor& grad_output, const Tensor& self, Out out) {
    into<aten::gelu_backward>(out, grad_output, self, "none");
})
OPERATOR(GeluV2, [](const Tensor& self, int64_t approximate, Out out) {
    TORCH_CHECK(approximate == 0 || approximate == 1, "approximate ", approximate, " is not simulated");
    into<aten::gelu>(out, self, approximate ? "tanh" : "none");
})
ATEN(GeluBackwardV2, gelu_backward)

// x * sigmoid(1.702 x)
COMPOSITE(FastGelu, [](const Tensor& self) {
    return aten::mul_Tensor::call(self, aten::sigmoid::call(aten::mul_Scalar::call(self, 1.702)));
})
COMPOSITE(FastGeluBackward, [](const Tensor& grad, const Tensor& self) {
    auto gate = aten::sigmoid::call(aten::mul_Scalar::call(self, 1.702));
    auto slope = aten::mul_Scalar::call(aten::mul_Tensor::call(self, aten::rsub_Scalar::call(gate, 1, 1)), 1.702);
    return aten::mul_Tensor::call(grad, aten::mul_Tensor::call(gate, aten::add_Scalar::call(slope, 1, 1)));
})

// The weight is one number or one for each channel (dimension 1).
OPERATOR(PreluBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& weight, Out grad_input, Out grad_weight) {
    std::vector<int64_t> shape(self.dim(), 1);
    if (weight.numel() > 1) shape.at(1) = weight.numel();
    const c10::SymIntArrayRef channels = c10::fromIntArrayRefSlow(shape);
    auto [input, each] = aten::_prelu_kernel_backward::call(grad_output, self, aten::view::call(weight, channels));
    grad_input = input;
    grad_weight = aten::sum_to_size::call(each, channels).view_as(grad_weight.tensor());
})

// gelu(a) * b for the two halves a, b of the last dimension.
COMPOSITE(GeluMul, [](const Tensor& self, std::string_view approximate) {
    const auto half = self.size(-1) / 2;
    return aten::mul_Tensor::call(aten::gelu::call(self.narrow(-1, 0, half), approximate), self.narrow(-1, half, half));
})

// silu(a) * b for the two halves a, b of `self` along `dim`.
COMPOSITE(SwiGlu, [](const Tensor& self, int64_t dim) {
    const auto half = self.size(dim) / 2;
    return aten::mul_Tensor::call(aten::silu::call(self.narrow(dim, 0, half)), self.narrow(dim, half, half));
})
COMPOSITE(SwiGluGrad, [](const Tensor& grad_output, const Tensor& self, int64_t dim) {
    const auto half = self.size(dim) / 2;
    const auto a = self.narrow(dim, 0, half), b = self.narrow(dim, half, half);
    const std::array<Tensor, 2> grads{aten::silu_backward::call(aten::mul_Tensor::call(grad_output, b), a),
                                      aten::mul_Tensor::call(grad_output, aten::silu::call(a))};
    return aten::cat::call(TensorList(grads), dim);
})
