// What language models call as one operator: normalisation of a sum, rotary positions, gated activations, routing to experts.
// Computed step by step in float, rounded once at the end.
#include "operator.h"

#include <ATen/core/IListRef.h>

#include <algorithm>

namespace simnpu {
namespace {

using Optional = std::optional<Tensor>;

Tensor precise(const Tensor& x) { return x.to(at::kFloat); }
Optional precise(const Optional& x) { return x ? Optional(precise(*x)) : x; }
void store(const Out& out, const Tensor& result) {
    if (out && out.tensor().numel()) out = result.to(out.dtype());
}

// Over the dimensions of gamma; rstd keeps them as 1.
std::pair<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& gamma, double epsilon) {
    std::vector<int64_t> dims;
    for (int64_t i = 1; i <= gamma.dim(); ++i) dims.push_back(-i);
    const auto rstd = x.mul(x).mean(IntArrayRef(dims), true).add(epsilon).rsqrt();
    return {x.mul(rstd).mul(gamma), rstd};
}

// How the elements of the last dimension are paired for a rotation.
enum class Pairs : int64_t { halves = 0, neighbours = 1 };
Pairs pairs(int64_t mode) {
    TORCH_CHECK(mode == 0 || mode == 1, "rotary mode ", mode, " is not simulated");
    return static_cast<Pairs>(mode);
}
// (a, b) -> (-b, a) of each pair, or with `back` its inverse (b, -a).
Tensor quarter_turn(const Tensor& x, Pairs how, bool back = false) {
    const auto half = x.size(-1) / 2;
    TORCH_CHECK(half * 2 == x.size(-1), "a rotation of ", x.size(-1), " elements, which is odd");
    const auto [split, dim] = how == Pairs::halves ? std::pair(x.unflatten(-1, {2, half}), -2) : std::pair(x.unflatten(-1, {half, 2}), -1);
    const auto a = split.select(dim, 0), b = split.select(dim, 1);
    const std::array<Tensor, 2> turned{back ? b : b.neg(), back ? a.neg() : a};
    return aten::stack::call(TensorList(turned), dim).flatten(-2);
}

std::pair<Tensor, Tensor> halves(const Tensor& x, int64_t dim) {
    const auto half = x.size(dim) / 2;
    return {x.narrow(dim, 0, half), x.narrow(dim, half, half)};
}

} // namespace
} // namespace simnpu

OPERATOR(AddRmsNorm, [](const Tensor& x1, const Tensor& x2, const Tensor& gamma, double epsilon, Out y, Out rstd, Out x) {
    const auto sum = precise(x1).add(precise(x2));
    const auto [normal, scale] = rms_norm(sum, precise(gamma), epsilon);
    store(y, normal);
    store(rstd, scale);
    store(x, sum);
})
OPERATOR(AddRmsNormCast, [](const Tensor& x1, const Tensor& x2, const Tensor& gamma, double epsilon, Out y_float, Out y, Out rstd, Out x) {
    const auto sum = precise(x1).add(precise(x2));
    const auto [normal, scale] = rms_norm(sum, precise(gamma), epsilon);
    store(y_float, normal);
    store(y, normal);
    store(rstd, scale);
    store(x, sum);
})
OPERATOR(GemmaRmsNorm, [](const Tensor& self, const Tensor& gamma, double epsilon, Out y, Out rstd) {
    const auto [normal, scale] = rms_norm(precise(self), precise(gamma).add(1), epsilon);
    store(y, normal);
    store(rstd, scale);
})

OPERATOR(RotaryPositionEmbedding, [](const Tensor& self, const Tensor& cos, const Tensor& sin, int64_t mode, Out out) {
    const auto x = precise(self);
    store(out, x.mul(precise(cos)).add(quarter_turn(x, pairs(mode)).mul(precise(sin))));
})
OPERATOR(RotaryPositionEmbeddingGrad, [](const Tensor& grad, const Tensor& cos, const Tensor& sin, Optional self, int64_t mode,
                                         Out grad_x, Out grad_cos, Out grad_sin) {
    const auto dy = precise(grad);
    const auto how = pairs(mode);
    store(grad_x, dy.mul(precise(cos)).add(quarter_turn(dy.mul(precise(sin)), how, true)));
    if (!self) return; // the angles need no gradient
    const auto x = precise(*self);
    store(grad_cos, dy.mul(x).sum_to_size(cos.sizes()));
    store(grad_sin, dy.mul(quarter_turn(x, how)).sum_to_size(sin.sizes()));
})

OPERATOR(GroupNormSilu, [](const Tensor& input, Optional weight, Optional bias, int64_t groups, double eps, Out out, Out mean, Out rstd) {
    const auto n = input.size(0), c = input.size(1);
    auto result = aten::native_group_norm::call(precise(input).contiguous(), precise(weight), precise(bias), n, c,
                                                input.numel() / std::max<int64_t>(n * c, 1), groups, eps);
    store(out, aten::silu::call(std::get<0>(result)));
    store(mean, std::get<1>(result));
    store(rstd, std::get<2>(result));
})

// One half along `dim` goes through gelu and gates the other.
OPERATOR(GeGluV3, [](const Tensor& self, int64_t dim, int64_t approximate, bool activate_left, Out out, Out out_gelu) {
    const auto [left, right] = halves(precise(self), dim);
    const auto gelu = aten::gelu::call(activate_left ? left : right, approximate ? "tanh" : "none");
    store(out, gelu.mul(activate_left ? right : left));
    store(out_gelu, gelu);
})
OPERATOR(GeGluV3Backward, [](const Tensor& grad_output, const Tensor& self, const Tensor&, int64_t dim, int64_t approximate,
                             bool activate_left, Out grad_input) {
    const auto [left, right] = halves(precise(self), dim);
    const auto& gate = activate_left ? left : right;
    const auto& value = activate_left ? right : left;
    const std::string_view kind = approximate ? "tanh" : "none";
    const auto grad = precise(grad_output);
    const auto grad_gate = aten::gelu_backward::call(grad.mul(value), gate, kind), grad_value = grad.mul(aten::gelu::call(gate, kind));
    const std::array<Tensor, 2> grads{activate_left ? grad_gate : grad_value, activate_left ? grad_value : grad_gate};
    store(grad_input, aten::cat::call(TensorList(grads), dim));
})
