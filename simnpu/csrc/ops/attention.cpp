// Fused attention, forward and backward, computed step by step in float.
#include "dropout.h"
#include "operator.h"

#include <limits>

namespace simnpu {
namespace {

// What the arguments common to the forward and the backward ask for.
struct Attention {
    std::optional<Tensor> mask; // not 0: the query does not see the key
    double scale;
    int64_t before, after; // how many keys before and after the diagonal a query sees, in sparse mode 4
    int64_t heads;
    std::string_view layout;
    int64_t sparse_mode;
    std::optional<Tensor> drop_mask; // packed, for [batch, head, query, key]
    double keep;

    // What dropout does to the weights, and to their gradient.
    Tensor dropped(const Tensor& weights) const {
        if (keep == 1) return weights;
        TORCH_CHECK(drop_mask && keep > 0, "attention that keeps ", keep, " of its weights needs a mask");
        return aten::mul_Scalar::call(aten::mul_Tensor::call(weights, kept_flags(*drop_mask, weights.sizes())), 1 / keep);
    }

    // To [batch, head, sequence, element] in float.
    Tensor split(const Tensor& x, int64_t x_heads) const {
        const auto y = x.to(at::kFloat);
        if (layout == "BNSD") return y;
        if (layout == "BSND") return y.transpose(1, 2);
        if (layout == "BSH") return y.reshape({y.size(0), y.size(1), x_heads, -1}).transpose(1, 2);
        if (layout == "SBH") return y.reshape({y.size(0), y.size(1), x_heads, -1}).permute({1, 2, 0, 3});
        TORCH_CHECK(false, "attention in layout ", layout, " is not simulated");
    }
    void join(const Out& out, const Tensor& x) const {
        Tensor y = x;
        if (layout == "BSND") y = x.transpose(1, 2);
        if (layout == "BSH") y = x.transpose(1, 2).flatten(2);
        if (layout == "SBH") y = x.permute({2, 0, 1, 3}).flatten(2);
        if (out) out = y.to(out.dtype());
    }
    // Keys and values may have fewer heads than the query: each of theirs then serves a group of the query's.
    int64_t key_heads(const Tensor& query, const Tensor& key) const {
        if (layout == "BNSD") return key.size(1);
        if (layout == "BSND") return key.size(2);
        return heads * key.size(2) / query.size(2);
    }
    Tensor spread(const Tensor& x) const {
        return x.size(1) == heads ? x : aten::repeat_interleave_self_int::call(x, heads / x.size(1), 1, {});
    }
    Tensor gather(const Tensor& x, int64_t x_heads) const {
        if (x_heads == heads) return x;
        return aten::sum_dim_IntList::call(x.unflatten(1, {x_heads, heads / x_heads}), IntArrayRef({2}), false, {});
    }

    // What must not be seen, as a mask that broadcasts to `scores`; undefined if everything is seen.
    Tensor hidden(const Tensor& scores) const {
        const auto queries = scores.size(-2), keys = scores.size(-1);
        const auto ones = aten::ones_like::call(scores.select(0, 0).select(0, 0), at::kBool, {}, {}, {}, {});
        switch (sparse_mode) {
            case 0: // the mask, in full
            case 1:
                TORCH_CHECK(before >= keys && after >= (mask ? 0 : keys), "attention limited to ", before, " keys before and ",
                            after, " after in sparse mode ", sparse_mode, " is not simulated");
                return mask ? aten::ne_Scalar::call(*mask, 0) : Tensor();
            case 2: return aten::triu::call(ones, 1);                // causal from the upper left
            case 3: return aten::triu::call(ones, 1 + keys - queries); // causal from the lower right
            case 4:                                                  // a band, counted from the lower right
                return aten::logical_or::call(aten::triu::call(ones, 1 + keys - queries + after),
                                              aten::tril::call(ones, keys - queries - before - 1));
            default: TORCH_CHECK(false, "attention in sparse mode ", sparse_mode, " is not simulated");
        }
    }

    Tensor scores(const Tensor& q, const Tensor& k) const {
        auto all = aten::mul_Scalar::call(aten::matmul::call(q, k.transpose(-1, -2)), scale);
        auto mask = hidden(all);
        return mask.defined() ? aten::masked_fill_Scalar::call(all, mask, -std::numeric_limits<double>::infinity()) : all;
    }
};

void refuse_extras(const std::optional<Tensor>& shift, const std::optional<Tensor>& padding,
                   const at::OptionalIntArrayRef& prefix) {
    TORCH_CHECK(!shift || shift->numel() == 0, "attention with a position shift (pse) is not simulated");
    TORCH_CHECK(!padding || padding->numel() == 0, "attention with a padding mask is not simulated");
    TORCH_CHECK(!prefix.has_value() || prefix->empty(), "attention with a prefix is not simulated");
}

// A row that sees nothing gives zeros, not 0/0.
Tensor finite(const Tensor& x) { return aten::nan_to_num::call(x, 0.0, {}, {}); }

using Optional = std::optional<Tensor>;

} // namespace
} // namespace simnpu

OPERATOR(FlashAttentionScore,
         [](const Tensor& query, const Tensor& key, const Tensor& value, Optional shift, Optional drop_mask, Optional padding,
            Optional mask, at::OptionalIntArrayRef prefix, double scale, double keep, int64_t before, int64_t after, int64_t heads,
            std::string_view layout, int64_t, int64_t sparse_mode, Out row_max, Out row_sum, Out, Out out) {
             refuse_extras(shift, padding, prefix);
             const Attention attention{mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep};
             const auto groups = attention.key_heads(query, key);
             const auto v = attention.spread(attention.split(value, groups));
             const auto scores =
                 attention.scores(attention.split(query, heads), attention.spread(attention.split(key, groups)));
             attention.join(out, aten::matmul::call(attention.dropped(finite(aten::_softmax::call(scores, -1, false))), v));
             // The device keeps both statistics eight times.
             const auto max = aten::amax::call(scores, IntArrayRef({-1}), true);
             const auto exponents = finite(aten::exp::call(aten::sub_Tensor::call(scores, max, 1)));
             const auto sum = aten::sum_dim_IntList::call(exponents, IntArrayRef({-1}), true, {});
             if (row_max && row_max.tensor().numel()) row_max = max.expand(row_max.tensor().sizes());
             if (row_sum && row_sum.tensor().numel()) row_sum = sum.expand(row_sum.tensor().sizes());
         })

OPERATOR(FlashAttentionScoreGrad,
         [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& grad_out, Optional shift, Optional drop_mask,
            Optional padding, Optional mask, Optional, Optional, Optional, Optional, at::OptionalIntArrayRef prefix, double scale,
            double keep, int64_t before, int64_t after, int64_t heads, std::string_view layout, int64_t, int64_t sparse_mode,
            Out grad_query, Out grad_key, Out grad_value, Out) {
             refuse_extras(shift, padding, prefix);
             const Attention attention{mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep};
             const auto groups = attention.key_heads(query, key);
             const auto q = attention.split(query, heads), grad = attention.split(grad_out, heads);
             const auto k = attention.spread(attention.split(key, groups)), v = attention.spread(attention.split(value, groups));
             const auto weights = finite(aten::_softmax::call(attention.scores(q, k), -1, false));
             const auto grad_weights = attention.dropped(aten::matmul::call(grad, v.transpose(-1, -2)));
             const auto grad_scores = aten::mul_Scalar::call(
                 aten::_softmax_backward_data::call(grad_weights, weights, -1, at::kFloat), scale);
             attention.join(grad_query, aten::matmul::call(grad_scores, k));
             attention.join(grad_key, attention.gather(aten::matmul::call(grad_scores.transpose(-1, -2), q), groups));
             attention.join(grad_value, attention.gather(aten::matmul::call(attention.dropped(weights).transpose(-1, -2), grad), groups));
         })
