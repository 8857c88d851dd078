// Convolution, pooling, padding, grids.
#include "operator.h"

namespace simnpu {
namespace {

// Callers pass 0 for a divisor that was not given.
std::optional<int64_t> given_divisor(int64_t divisor) { return divisor ? std::optional(divisor) : std::nullopt; }

} // namespace
} // namespace simnpu

OPERATOR(Convolution, [](const Tensor& input, const Tensor& weight, std::optional<Tensor> bias, c10::SymIntArrayRef stride,
                         c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                         c10::SymIntArrayRef output_padding, int64_t groups, Out out, int8_t) {
    out = aten::convolution::call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
})
// The output of a gradient that is not wanted exists all the same.
OPERATOR(ConvolutionBackward,
         [](const Tensor& grad_output, const Tensor& input, const Tensor& weight, at::OptionalSymIntArrayRef bias_sizes,
            c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
            c10::SymIntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask, int8_t, Out grad_input, Out grad_weight,
            Out grad_bias) {
             auto grads = aten::convolution_backward::call(grad_output, input, weight, bias_sizes, stride, padding, dilation,
                                                           transposed, output_padding, groups, {mask[0], mask[1], false});
             if (mask[0]) grad_input = std::get<0>(grads);
             if (mask[1]) grad_weight = std::get<1>(grads);
             if (!mask[2]) return;
             std::vector<int64_t> all_but_channel{0};
             for (int64_t i = 2; i < grad_output.dim(); ++i) all_but_channel.push_back(i);
             grad_bias = aten::sum_dim_IntList::call(grad_output, IntArrayRef(all_but_channel), false, {});
         })

OPERATOR(AvgPool2d, [](const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil, bool count_pad,
                       int64_t divisor, int8_t) {
    return aten::avg_pool2d::call(self, kernel, stride, padding, ceil, count_pad, given_divisor(divisor));
})
OPERATOR(AvgPool2dBackward, [](const Tensor& grad_output, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                               IntArrayRef padding, bool ceil, bool count_pad, int64_t divisor, int8_t) {
    return aten::avg_pool2d_backward::call(grad_output, self, kernel, stride, padding, ceil, count_pad, given_divisor(divisor));
})
ATEN(AdaptiveAvgPool2d, _adaptive_avg_pool2d)
ATEN(AdaptiveAvgPool2dBackward, _adaptive_avg_pool2d_backward)
ATEN(AdaptiveMaxPool2d, adaptive_max_pool2d)
ATEN(AdaptiveMaxPool2dBackward, adaptive_max_pool2d_backward)
ATEN(MaxPool2dWithIndices, max_pool2d_with_indices)
OPERATOR(MaxPool2dWithIndicesBackward,
         [](const Tensor& grad_output, const Tensor& self, const Tensor& indices, IntArrayRef kernel, IntArrayRef stride,
            IntArrayRef padding, IntArrayRef dilation, bool ceil) {
             return aten::max_pool2d_with_indices_backward::call(grad_output, self, kernel, stride, padding, dilation, ceil,
                                                                 indices.to(at::kLong));
         })
// The mask is a buffer in the device's own layout, meant only for the backward, which computes it anew from `self`.
OPERATOR(MaxPool2dWithMask, [](const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                               IntArrayRef dilation, bool ceil, Out out, Out mask) {
    out = std::get<0>(aten::max_pool2d_with_indices::call(self, kernel, stride, padding, dilation, ceil));
    aten::zero_::call(const_cast<Tensor&>(mask.tensor()));
})
OPERATOR(MaxPool2dWithMaskBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor&, IntArrayRef kernel,
                                       IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil) {
    auto indices = std::get<1>(aten::max_pool2d_with_indices::call(self, kernel, stride, padding, dilation, ceil));
    return aten::max_pool2d_with_indices_backward::call(grad_output, self, kernel, stride, padding, dilation, ceil, indices);
})

ATEN(ReflectionPad1d, reflection_pad1d)
ATEN(ReflectionPad1dBackward, reflection_pad1d_backward)
ATEN(ReflectionPad2d, reflection_pad2d)
ATEN(ReflectionPad2dBackward, reflection_pad2d_backward)
ATEN(ReplicationPad1d, replication_pad1d)
ATEN(ReplicationPad1dBackward, replication_pad1d_backward)
ATEN(ReplicationPad2d, replication_pad2d)
ATEN(ReplicationPad2dBackward, replication_pad2d_backward)
ATEN(ReflectionPad3d, reflection_pad3d)
ATEN(ReflectionPad3dBackward, reflection_pad3d_backward)
ATEN(ReplicationPad3d, replication_pad3d)
ATEN(ReplicationPad3dBackward, replication_pad3d_backward)
ATEN(Im2col, im2col)
ATEN(Im2colBackward, col2im)
ATEN(GridSampler2D, grid_sampler_2d)
ATEN(GridSampler2DBackward, grid_sampler_2d_backward)
ATEN(GridSampler3D, grid_sampler_3d)
ATEN(GridSampler3DBackward, grid_sampler_3d_backward)
ATEN(AffineGrid, affine_grid_generator)

OPERATOR(AvgPool3d, [](const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil, bool count_pad,
                       int64_t divisor) {
    return aten::avg_pool3d::call(self, kernel, stride, padding, ceil, count_pad, given_divisor(divisor));
})
OPERATOR(AvgPool3dBackward, [](const Tensor& grad_output, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                               IntArrayRef padding, bool ceil, bool count_pad, int64_t divisor) {
    return aten::avg_pool3d_backward::call(grad_output, self, kernel, stride, padding, ceil, count_pad, given_divisor(divisor));
})
ATEN(AdaptiveAvgPool3d, _adaptive_avg_pool3d)
ATEN(AdaptiveAvgPool3dBackward, _adaptive_avg_pool3d_backward)
ATEN(MaxPool3dWithArgmax, max_pool3d_with_indices)
OPERATOR(MaxPool3dWithArgmaxBackward,
         [](const Tensor& grad_output, const Tensor& self, const Tensor& indices, IntArrayRef kernel, IntArrayRef stride,
            IntArrayRef padding, IntArrayRef dilation, bool ceil) {
             return aten::max_pool3d_with_indices_backward::call(grad_output, self, kernel, stride, padding, dilation, ceil,
                                                                 indices.to(at::kLong));
         })
OPERATOR(AdaptiveMaxPool3d, [](const Tensor& self, IntArrayRef size, Out out, Out indices) {
    auto [values, positions] = aten::adaptive_max_pool3d::call(self, size);
    out = values;
    indices = positions;
})
OPERATOR(AdaptiveMaxPool3dBackward, [](const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
    return aten::adaptive_max_pool3d_backward::call(grad_output, self, indices.to(at::kLong));
})
OPERATOR(MaxUnpool2d, [](const Tensor& self, const Tensor& indices, c10::SymIntArrayRef size) {
    return aten::max_unpool2d::call(self, indices.to(at::kLong), size);
})
OPERATOR(MaxUnpool3d, [](const Tensor& self, const Tensor& indices, c10::SymIntArrayRef size, IntArrayRef stride, IntArrayRef padding) {
    return aten::max_unpool3d::call(self, indices.to(at::kLong), size, stride, padding);
})
