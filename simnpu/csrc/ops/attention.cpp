// Fused attention, forward and backward, computed step by step in float.
#include "dropout.h"
#include "operator.h"

#include <ATen/core/IListRef.h>

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

struct Attended {
    Tensor values;   // [batch, head, sequence, element]
    Tensor max, sum; // of the exponents of each row
};

Attended attend(const Attention& attention, const Tensor& query, const Tensor& key, const Tensor& value) {
    const auto groups = attention.key_heads(query, key);
    const auto v = attention.spread(attention.split(value, groups));
    const auto scores = attention.scores(attention.split(query, attention.heads), attention.spread(attention.split(key, groups)));
    const auto weights = finite(aten::_softmax::call(scores, -1, false));
    const auto max = aten::amax::call(scores, IntArrayRef({-1}), true);
    const auto exponents = finite(aten::exp::call(aten::sub_Tensor::call(scores, max, 1)));
    return {aten::matmul::call(attention.dropped(weights), v), max,
            aten::sum_dim_IntList::call(exponents, IntArrayRef({-1}), true, {})};
}

struct Gradients {
    Tensor query, key, value; // [batch, head, sequence, element]
};

Gradients differentiate(const Attention& attention, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& grad_out) {
    const auto groups = attention.key_heads(query, key);
    const auto q = attention.split(query, attention.heads), grad = attention.split(grad_out, attention.heads);
    const auto k = attention.spread(attention.split(key, groups)), v = attention.spread(attention.split(value, groups));
    const auto weights = finite(aten::_softmax::call(attention.scores(q, k), -1, false));
    const auto grad_weights = attention.dropped(aten::matmul::call(grad, v.transpose(-1, -2)));
    const auto grad_scores =
        aten::mul_Scalar::call(aten::_softmax_backward_data::call(grad_weights, weights, -1, at::kFloat), attention.scale);
    return {aten::matmul::call(grad_scores, k),
            attention.gather(aten::matmul::call(grad_scores.transpose(-1, -2), q), groups),
            attention.gather(aten::matmul::call(attention.dropped(weights).transpose(-1, -2), grad), groups)};
}

// The device keeps both statistics eight times.
void attention_score(const Attention& attention, const Tensor& query, const Tensor& key, const Tensor& value, const Out& row_max,
                     const Out& row_sum, const Out& out) {
    const auto result = attend(attention, query, key, value);
    attention.join(out, result.values);
    if (row_max && row_max.tensor().numel()) row_max = result.max.expand(row_max.tensor().sizes());
    if (row_sum && row_sum.tensor().numel()) row_sum = result.sum.expand(row_sum.tensor().sizes());
}
void attention_score_grad(const Attention& attention, const Tensor& query, const Tensor& key, const Tensor& value,
                          const Tensor& grad_out, const Out& grad_query, const Out& grad_key, const Out& grad_value) {
    const auto grads = differentiate(attention, query, key, value, grad_out);
    attention.join(grad_query, grads.query);
    attention.join(grad_key, grads.key);
    attention.join(grad_value, grads.value);
}

// Sequences of different lengths one after the other, [all tokens, head, element]: calls `one` with where each one's queries and
// keys begin and how many there are. Both arrays tell where the sequences end.
template <class One>
void each_sequence(const Tensor& query, const Tensor& key, IntArrayRef query_ends, IntArrayRef key_ends, const One& one) {
    TORCH_CHECK(query_ends.size() == key_ends.size(), "queries of ", query_ends.size(), " sequences, keys of ", key_ends.size());
    int64_t from = 0, key_from = 0;
    for (size_t i = 0; i < query_ends.size(); ++i) {
        TORCH_CHECK(from <= query_ends[i] && query_ends[i] <= query.size(0) && key_from <= key_ends[i] &&
                        key_ends[i] <= key.size(0),
                    "sequence ", i, " ends at ", query_ends[i], " and ", key_ends[i], " of ", query.size(0), " and ", key.size(0));
        one(from, query_ends[i] - from, key_from, key_ends[i] - key_from);
        from = query_ends[i];
        key_from = key_ends[i];
    }
}
// What sequences of different lengths share; each of them is then attended to on its own.
Attention packed(const Optional& mask, double scale, int64_t before, int64_t after, int64_t heads, std::string_view layout,
                 int64_t sparse_mode, double keep) {
    TORCH_CHECK(layout == "TND", "attention to sequences of different lengths in layout ", layout, " is not simulated");
    TORCH_CHECK(keep == 1, "attention to sequences of different lengths with dropout is not simulated");
    TORCH_CHECK(sparse_mode >= 2 || !mask, "attention to sequences of different lengths in sparse mode ", sparse_mode,
                " with a mask is not simulated");
    return {mask, scale, before, after, heads, "BSND", sparse_mode, {}, keep};
}
Tensor sequence(const Tensor& x, int64_t from, int64_t length) { return x.narrow(0, from, length).unsqueeze(0); }
// [1, head, sequence, element] to [sequence, head, element]
Tensor tokens(const Tensor& x) { return x.squeeze(0).transpose(0, 1); }

} // namespace
} // namespace simnpu

OPERATOR(FlashAttentionScore,
         [](const Tensor& query, const Tensor& key, const Tensor& value, Optional shift, Optional drop_mask, Optional padding,
            Optional mask, at::OptionalIntArrayRef prefix, double scale, double keep, int64_t before, int64_t after, int64_t heads,
            std::string_view layout, int64_t, int64_t sparse_mode, Out row_max, Out row_sum, Out, Out out) {
             refuse_extras(shift, padding, prefix);
             attention_score({mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep}, query, key, value, row_max,
                             row_sum, out);
         })
// The starts and the type are those of the position shift, which there is none of.
OPERATOR(FlashAttentionScoreV2,
         [](const Tensor& query, const Tensor& key, const Tensor& value, Optional shift, Optional drop_mask, Optional padding,
            Optional mask, at::OptionalIntArrayRef prefix, at::OptionalIntArrayRef, at::OptionalIntArrayRef, double scale,
            double keep, int64_t before, int64_t after, int64_t heads, std::string_view layout, int64_t, int64_t sparse_mode,
            int64_t, Out row_max, Out row_sum, Out, Out out) {
             refuse_extras(shift, padding, prefix);
             attention_score({mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep}, query, key, value, row_max,
                             row_sum, out);
         })
OPERATOR(FlashAttentionScoreGrad,
         [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& grad_out, Optional shift, Optional drop_mask,
            Optional padding, Optional mask, Optional, Optional, Optional, Optional, at::OptionalIntArrayRef prefix, double scale,
            double keep, int64_t before, int64_t after, int64_t heads, std::string_view layout, int64_t, int64_t sparse_mode,
            Out grad_query, Out grad_key, Out grad_value, Out) {
             refuse_extras(shift, padding, prefix);
             attention_score_grad({mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep}, query, key, value,
                                  grad_out, grad_query, grad_key, grad_value);
         })
OPERATOR(FlashAttentionScoreGradV2,
         [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& grad_out, Optional shift, Optional drop_mask,
            Optional padding, Optional mask, Optional, Optional, Optional, Optional, at::OptionalIntArrayRef prefix,
            at::OptionalIntArrayRef, at::OptionalIntArrayRef, double scale, double keep, int64_t before, int64_t after,
            int64_t heads, std::string_view layout, int64_t, int64_t sparse_mode, int64_t, Out grad_query, Out grad_key,
            Out grad_value, Out) {
             refuse_extras(shift, padding, prefix);
             attention_score_grad({mask, scale, before, after, heads, layout, sparse_mode, drop_mask, keep}, query, key, value,
                                  grad_out, grad_query, grad_key, grad_value);
         })
OPERATOR(FlashAttentionVarLenScore,
         [](const Tensor& query, const Tensor& key, const Tensor& value, Optional shift, Optional, Optional padding, Optional mask,
            at::OptionalIntArrayRef prefix, IntArrayRef query_ends, IntArrayRef key_ends, double scale, double keep, int64_t before,
            int64_t after, int64_t heads, std::string_view layout, int64_t, int64_t sparse_mode, Out row_max, Out row_sum, Out,
            Out out) {
             refuse_extras(shift, padding, prefix);
             const auto attention = packed(mask, scale, before, after, heads, layout, sparse_mode, keep);
             std::vector<Tensor> values, max, sum;
             each_sequence(query, key, query_ends, key_ends, [&](int64_t from, int64_t length, int64_t key_from, int64_t keys) {
                 const auto result = attend(attention, sequence(query, from, length), sequence(key, key_from, keys),
                                            sequence(value, key_from, keys));
                 values.push_back(tokens(result.values));
                 max.push_back(tokens(result.max));
                 sum.push_back(tokens(result.sum));
             });
             const auto joined = [](const std::vector<Tensor>& parts) { return aten::cat::call(TensorList(parts), 0); };
             if (out) out = joined(values).to(out.dtype());
             if (row_max) row_max = joined(max).expand(row_max.tensor().sizes());
             if (row_sum) row_sum = joined(sum).expand(row_sum.tensor().sizes());
         })
OPERATOR(FlashAttentionUnpaddingScoreGrad,
         [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& grad_out, Optional shift, Optional,
            Optional padding, Optional mask, Optional, Optional, Optional, Optional, at::OptionalIntArrayRef prefix,
            IntArrayRef query_ends, IntArrayRef key_ends, double scale, double keep, int64_t before, int64_t after, int64_t heads,
            std::string_view layout, int64_t, int64_t sparse_mode, Out grad_query, Out grad_key, Out grad_value, Out) {
             refuse_extras(shift, padding, prefix);
             const auto attention = packed(mask, scale, before, after, heads, layout, sparse_mode, keep);
             std::vector<Tensor> queries, keys_, values;
             each_sequence(query, key, query_ends, key_ends, [&](int64_t from, int64_t length, int64_t key_from, int64_t keys) {
                 const auto grads = differentiate(attention, sequence(query, from, length), sequence(key, key_from, keys),
                                                  sequence(value, key_from, keys), sequence(grad_out, from, length));
                 queries.push_back(tokens(grads.query));
                 keys_.push_back(tokens(grads.key));
                 values.push_back(tokens(grads.value));
             });
             const auto store = [](const Out& out, const std::vector<Tensor>& parts) {
                 if (out) out = aten::cat::call(TensorList(parts), 0).to(out.dtype());
             };
             store(grad_query, queries);
             store(grad_key, keys_);
             store(grad_value, values);
         })
