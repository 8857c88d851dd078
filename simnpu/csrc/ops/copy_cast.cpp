// Copies between layouts and types, and operators that only rearrange elements.
#include "operator.h"

#include <ATen/core/IListRef.h>

// Any strides, any types; `src` may be expanded.
OPERATOR(InplaceCopy, [](Tensor& self, const Tensor& src) { aten::copy_::call(self, src, false); })
OPERATOR(Cast, [](const Tensor& self, ScalarType dtype, Out out) {
    TORCH_CHECK(out.dtype() == dtype, "asked to cast to ", dtype, " into an output tensor of type ", out.dtype());
    out = self.to(dtype);
})

ATEN(Cat, cat)
ATEN(Stack, stack)
ATEN(ChunkCat, _chunk_cat)
OPERATOR(SplitWithSize, [](const Tensor& self, IntArrayRef sizes, int64_t dim, const std::vector<Out>& out) {
    TORCH_CHECK(sizes.size() == out.size(), sizes.size(), " pieces wanted but ", out.size(), " output tensors given");
    auto pieces = aten::split_with_sizes::call(self, c10::fromIntArrayRefSlow(sizes), dim);
    for (size_t i = 0; i < pieces.size(); ++i) out[i] = pieces[i];
})
ATEN(Flip, flip)
ATEN(Roll, roll)
ATEN(Repeat, repeat)
ATEN(ConstantPadNd, constant_pad_nd)
ATEN(ChannelShuffle, channel_shuffle)
namespace simnpu {
namespace {

// A trial's numbers do not add up to the result's size, which is known from the real ones: there these stand for them.
Tensor adding_up(const Tensor& repeats, int64_t size, int64_t output_size) {
    if (!on_trial() || repeats.numel() == 0) return repeats;
    auto other = aten::zeros_like::call(repeats, {}, {}, {}, {}, {});
    other.view(-1).select(0, 0).fill_(repeats.numel() == 1 && size > 0 ? output_size / size : output_size);
    return other;
}

} // namespace
} // namespace simnpu

OPERATOR(RepeatInterleaveTensor, [](const Tensor& repeats, int64_t output_size) {
    return aten::repeat_interleave_Tensor::call(adding_up(repeats, 1, output_size), output_size);
})
OPERATOR(RepeatInterleave, [](const Tensor& self, const Tensor& repeats, int64_t output_size) {
    return aten::repeat_interleave_self_Tensor::call(self, adding_up(repeats, self.numel(), output_size), {}, output_size);
})
OPERATOR(RepeatInterleaveWithDim, [](const Tensor& self, const Tensor& repeats, int64_t dim, int64_t output_size) {
    return aten::repeat_interleave_self_Tensor::call(self, adding_up(repeats, self.dim() ? self.size(dim) : 1, output_size), dim, output_size);
})
OPERATOR(RepeatInterleaveInt, [](const Tensor& self, int64_t repeats, int64_t output_size) {
    return aten::repeat_interleave_self_int::call(self, repeats, {}, output_size);
})
OPERATOR(RepeatInterleaveIntWithDim, [](const Tensor& self, int64_t repeats, int64_t dim, int64_t output_size) {
    return aten::repeat_interleave_self_int::call(self, repeats, dim, output_size);
})
