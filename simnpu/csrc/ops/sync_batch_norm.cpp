// Batch normalisation over several processes, in steps: between them the processes exchange their statistics.
#include "operator.h"

#include <numeric>

namespace simnpu {
namespace {

using Optional = std::optional<Tensor>;

// Everything is per channel (dimension 1) and computed in float.
Tensor precise(const Tensor& x) { return x.to(at::kFloat); }
std::vector<int64_t> but_channels(const Tensor& x) {
    TORCH_CHECK(x.dim() >= 2, "batch normalisation of a tensor with ", x.dim(), " dimensions");
    std::vector<int64_t> dims(x.dim() - 1);
    std::iota(dims.begin() + 1, dims.end(), 2);
    return dims;
}
Tensor channel_sum(const Tensor& x) { return x.sum(IntArrayRef(but_channels(x))); }
Tensor spread(const Tensor& per_channel, const Tensor& x) {
    std::vector<int64_t> shape(x.dim(), 1);
    shape.at(1) = x.size(1);
    return precise(per_channel).reshape(shape);
}
void store(const Out& out, const Tensor& result) {
    if (out) out = result.to(out.dtype());
}

// Mixes the statistics of `count` values per channel into the running ones, where there are any.
void update(const Optional& running_mean, const Optional& running_var, const Tensor& mean, const Tensor& var, const Tensor& count,
            double momentum) {
    const auto mix = [&](const Optional& running, const Tensor& now) {
        if (running) running->copy_(precise(*running).mul(1 - momentum).add(now.mul(momentum)));
    };
    mix(running_mean, mean);
    mix(running_var, var.mul(count).div(count.sub(1)));
}

} // namespace
} // namespace simnpu

OPERATOR(BatchNormReduce, [](const Tensor& input, Out sum, Out square_sum) {
    const auto x = precise(input);
    store(sum, channel_sum(x));
    store(square_sum, channel_sum(x.mul(x)));
})
OPERATOR(BatchNormStats, [](const Tensor& input, double eps, Out mean, Out invstd) {
    const auto [var, average] = aten::var_mean_correction::call(precise(input), IntArrayRef(but_channels(input)), 0, false);
    store(mean, average);
    store(invstd, var.add(eps).rsqrt());
})
// Rows of `sum`, `square_sum` and `counts` are the processes'.
OPERATOR(SyncBatchNormGatherStats, [](const Tensor& sum, const Tensor& square_sum, const Tensor& counts, Optional running_mean,
                                      Optional running_var, float momentum, float eps, Out mean, Out invstd) {
    const auto count = precise(counts).sum();
    const auto average = precise(sum).sum(0).div(count);
    const auto var = precise(square_sum).sum(0).div(count).sub(average.mul(average));
    update(running_mean, running_var, average, var, count, momentum);
    store(mean, average);
    store(invstd, var.add(eps).rsqrt());
})
OPERATOR(BatchNormGatherStatsWithCounts, [](const Tensor&, const Tensor& means, const Tensor& invstds, Optional running_mean,
                                            Optional running_var, double momentum, double eps, const Tensor& counts, Out mean,
                                            Out invstd) {
    const auto weights = precise(counts).reshape({-1, 1}), count = weights.sum();
    const auto average = precise(means).mul(weights).sum(0).div(count);
    const auto away = precise(means).sub(average);
    const auto var = precise(invstds).pow(-2).sub(eps).add(away.mul(away)).mul(weights).sum(0).div(count);
    update(running_mean, running_var, average, var, count, momentum);
    store(mean, average);
    store(invstd, var.add(eps).rsqrt());
})
OPERATOR(BatchNormElemt, [](const Tensor& input, Optional weight, Optional bias, const Tensor& mean, const Tensor& invstd, double,
                            Out out) {
    auto result = precise(input).sub(spread(mean, input)).mul(spread(invstd, input));
    if (weight) result = result.mul(spread(*weight, input));
    if (bias) result = result.add(spread(*bias, input));
    store(out, result);
})
OPERATOR(BatchNormReduceBackward, [](const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd, Optional,
                                     bool, bool, bool, Out sum_dy, Out sum_dy_xmu, Out grad_weight, Out grad_bias) {
    const auto dy = precise(grad_out);
    const auto sum = channel_sum(dy), with_input = channel_sum(dy.mul(precise(input).sub(spread(mean, input))));
    store(sum_dy, sum);
    store(sum_dy_xmu, with_input);
    store(grad_weight, with_input.mul(precise(invstd)));
    store(grad_bias, sum);
})
OPERATOR(BatchNormElemtBackward, [](const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                    Optional weight, const Tensor& sum_dy, const Tensor& sum_dy_xmu, const Tensor& counts, Out out) {
    const auto count = precise(counts).sum(), scale = spread(invstd, input);
    const auto along = precise(input).sub(spread(mean, input)).mul(scale.mul(scale)).mul(spread(sum_dy_xmu, input).div(count));
    auto result = precise(grad_out).sub(spread(sum_dy, input).div(count)).sub(along).mul(scale);
    if (weight) result = result.mul(spread(*weight, input));
    store(out, result);
})
