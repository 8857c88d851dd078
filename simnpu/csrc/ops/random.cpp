// Random numbers. The caller passes seed and offset (for captured graphs: in device memory, plus an offset within the graph):
// equal ones give equal numbers. The numbers are ATen's, not those of a real device.
#include "dropout.h"
#include "operator.h"

#include <ATen/CPUGeneratorImpl.h>

namespace simnpu {
namespace {

uint64_t mixed(uint64_t x) { // splitmix64: neighbouring seeds and offsets must not give related streams
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

at::Generator generator(int64_t seed, int64_t offset) {
    return at::make_generator<at::CPUGeneratorImpl>(mixed(mixed(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(offset)));
}

at::Generator generator(const Tensor& seed, const Tensor& offset, int64_t offset_in_graph) {
    return generator(seed.reshape(-1)[0].item().toLong(), offset.reshape(-1)[0].item().toLong() + offset_in_graph);
}

Tensor flags_for(int64_t numel) {
    const c10::SymInt shape[] = {numel};
    return aten::empty_memory_format::call(shape, at::kBool, {}, {}, {}, {});
}

// Draws a mask; it is padded with zeros to whole 128-bit words.
void write_mask(const Out& mask, int64_t numel, double drop, at::Generator random) {
    TORCH_CHECK(drop >= 0 && drop <= 1, "a dropout probability of ", drop);
    auto kept = flags_for(numel);
    aten::bernoulli__float::call(kept, 1 - drop, std::move(random));
    const auto& bytes = mask.tensor();
    TORCH_CHECK(bytes.element_size() == 1 && bytes.is_contiguous() && bytes.numel() * 8 >= numel, "a mask of ", bytes.numel(),
                " bytes cannot hold ", numel, " bits");
    auto* out = static_cast<uint8_t*>(bytes.mutable_data_ptr());
    std::fill(out, out + bytes.numel(), 0);
    const auto* flags = kept.const_data_ptr<bool>();
    for (int64_t i = 0; i < numel; ++i) out[i / 8] |= static_cast<uint8_t>(flags[i] << (i % 8));
}

int64_t product(IntArrayRef shape) {
    int64_t numel = 1;
    for (auto size : shape) numel *= size;
    return numel;
}

Tensor masked(const Tensor& self, const Tensor& mask, double drop) {
    auto result = aten::mul_Tensor::call(self, kept_flags(mask, self.sizes()));
    return drop < 1 ? aten::mul_Scalar::call(result, 1 / (1 - drop)) : result;
}

} // namespace
} // namespace simnpu

OPERATOR(InplaceNormal, [](Tensor& self, float mean, float std, int64_t seed, int64_t offset) {
    aten::normal_::call(self, mean, std, generator(seed, offset));
})
OPERATOR(InplaceNormalTensor, [](Tensor& self, float mean, float std, const Tensor& seed, const Tensor& offset, int64_t more) {
    aten::normal_::call(self, mean, std, generator(seed, offset, more));
})
OPERATOR(NormalFloatFloat, [](float mean, float std, int64_t seed, int64_t offset, Out out) {
    aten::normal_::call(const_cast<Tensor&>(out.tensor()), mean, std, generator(seed, offset));
})
OPERATOR(NormalFloatTensor, [](float mean, const Tensor& std, int64_t seed, int64_t offset) {
    return aten::normal_float_Tensor::call(mean, std, generator(seed, offset));
})
OPERATOR(NormalTensorFloat, [](const Tensor& mean, float std, int64_t seed, int64_t offset) {
    return aten::normal_Tensor_float::call(mean, std, generator(seed, offset));
})
OPERATOR(NormalTensorTensor, [](const Tensor& mean, const Tensor& std, int64_t seed, int64_t offset) {
    return aten::normal_Tensor_Tensor::call(mean, std, generator(seed, offset));
})

OPERATOR(InplaceUniform, [](Tensor& self, double from, double to, int64_t seed, int64_t offset) {
    aten::uniform_::call(self, from, to, generator(seed, offset));
})
OPERATOR(InplaceUniformTensor, [](Tensor& self, double from, double to, const Tensor& seed, const Tensor& offset, int64_t more) {
    aten::uniform_::call(self, from, to, generator(seed, offset, more));
})

OPERATOR(InplaceRandom, [](Tensor& self, int64_t from, int64_t to, int64_t seed, int64_t offset) {
    aten::random__from::call(self, from, to, generator(seed, offset));
})
OPERATOR(InplaceRandomTensor, [](Tensor& self, int64_t from, int64_t to, const Tensor& seed, const Tensor& offset, int64_t more) {
    aten::random__from::call(self, from, to, generator(seed, offset, more));
})
OPERATOR(InplaceRandomWithoutFromTo, [](Tensor& self, int64_t seed, int64_t offset) {
    aten::random_::call(self, generator(seed, offset));
})
OPERATOR(InplaceRandomWithoutFromToTensor, [](Tensor& self, const Tensor& seed, const Tensor& offset, int64_t more) {
    aten::random_::call(self, generator(seed, offset, more));
})

OPERATOR(InplaceBernoulli, [](Tensor& self, const Scalar& p, int64_t seed, int64_t offset) {
    aten::bernoulli__float::call(self, p.toDouble(), generator(seed, offset));
})
OPERATOR(InplaceBernoulliTensor, [](Tensor& self, const Tensor& p, int64_t seed, int64_t offset) {
    aten::bernoulli__Tensor::call(self, p, generator(seed, offset));
})
OPERATOR(RReluWithNoise, [](const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                            int64_t seed, int64_t offset) {
    return aten::rrelu_with_noise::call(self, noise, lower, upper, training, generator(seed, offset));
})
OPERATOR(InplaceRReluWithNoise, [](Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                                   int64_t seed, int64_t offset) {
    aten::rrelu_with_noise_::call(self, noise, lower, upper, training, generator(seed, offset));
})
OPERATOR(Randperm, [](int64_t n, int64_t seed, int64_t offset, Out out) {
    out = aten::randperm_generator::call(n, generator(seed, offset), out.dtype(), {}, {}, {});
})
OPERATOR(Multinomial, [](const Tensor& self, int64_t samples, bool replacement, int64_t seed, int64_t offset) {
    return aten::multinomial::call(self, samples, replacement, generator(seed, offset));
})
OPERATOR(MultinomialTensor, [](const Tensor& self, int64_t samples, bool replacement, const Tensor& seed, const Tensor& offset,
                               int64_t more) {
    return aten::multinomial::call(self, samples, replacement, generator(seed, offset, more));
})
OPERATOR(SimThreadExponential, [](Tensor& self, int64_t count, double lambda, int64_t seed, int64_t offset) {
    TORCH_CHECK(count == self.numel(), "exponential numbers for ", count, " of ", self.numel(), " elements are not simulated");
    aten::exponential_::call(self, lambda, generator(seed, offset));
})

OPERATOR(DropoutGenMask, [](IntArrayRef shape, double drop, int64_t seed, int64_t offset, Out mask) {
    write_mask(mask, product(shape), drop, generator(seed, offset));
})
OPERATOR(DropoutGenMaskV2, [](IntArrayRef shape, double drop, int64_t seed, int64_t offset, ScalarType, Out mask) {
    write_mask(mask, product(shape), drop, generator(seed, offset));
})
OPERATOR(DropoutGenMaskV2Tensor, [](IntArrayRef shape, double drop, const Tensor& seed, const Tensor& offset, int64_t more,
                                    ScalarType, Out mask) {
    write_mask(mask, product(shape), drop, generator(seed, offset, more));
})
OPERATOR(DropoutDoMask, [](const Tensor& self, const Tensor& mask, double drop) { return masked(self, mask, drop); })
ATEN(MaskedScale, _masked_scale)
