// Reading and writing through indices and masks; outputs whose shape depends on the data.
#include "operator.h"

#include <ATen/core/List.h>
#include <ATen/ops/tensor.h>

namespace simnpu {
namespace {

std::optional<std::string_view> scatter_mode(int64_t reduction) {
    TORCH_CHECK(reduction >= 0 && reduction <= 2, "scatter reduction ", reduction, " is not simulated");
    constexpr std::optional<std::string_view> modes[] = {std::nullopt, "add", "multiply"};
    return modes[reduction];
}

Tensor scattered(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, int64_t reduction) {
    auto mode = scatter_mode(reduction);
    return mode ? aten::scatter_reduce::call(self, dim, index, src, *mode) : aten::scatter_src::call(self, dim, index, src);
}

Tensor scattered(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, int64_t reduction) {
    auto mode = scatter_mode(reduction);
    return mode ? aten::scatter_value_reduce::call(self, dim, index, value, *mode)
                : aten::scatter_value::call(self, dim, index, value);
}

void overwrite(Tensor& self, const Tensor& result) { aten::copy_::call(self, result, false); }

Tensor positions(IntArrayRef index) { return at::tensor(index, at::kLong); }

// The caller puts an empty one-dimensional tensor where x[:, i] has a full slice. Where *every* index is empty, it is a real one:
// an advanced index of nothing but full slices does not occur.
c10::List<std::optional<Tensor>> indices_of(TensorList tensors) {
    c10::List<std::optional<Tensor>> indices;
    for (const auto& tensor : tensors) {
        const bool slice = !tensor.defined() || (tensor.dim() == 1 && tensor.numel() == 0);
        indices.push_back(slice ? std::nullopt : std::optional(tensor));
    }
    return indices;
}

bool nothing_selected(TensorList tensors) {
    for (const auto& tensor : tensors)
        if (tensor.defined() && tensor.numel() != 0) return false;
    return true;
}

} // namespace
} // namespace simnpu

OPERATOR(Index, [](const Tensor& self, TensorList indices, Out out) {
    if (out.tensor().numel() == 0) return;
    TORCH_CHECK(!nothing_selected(indices), "an index that selects nothing, but the output tensor has elements");
    out = aten::index_Tensor::call(self, indices_of(indices));
})
OPERATOR(IndexPutImpl, [](Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool unsafe) {
    if (values.numel() == 0 || nothing_selected(indices)) return;
    aten::_index_put_impl_::call(self, indices_of(indices), values, accumulate, unsafe);
})
ATEN(IndexSelect, index_select)
OPERATOR(IndexAdd, [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
    return aten::index_add::call(self, dim, index, source, alpha);
})
ATEN_BOTH(IndexCopy, index_copy)
OPERATOR(IndexFill, [](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
    return aten::index_fill_int_Scalar::call(self, dim, index, value);
})
OPERATOR(InplaceIndexFill, [](Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
    aten::index_fill__int_Scalar::call(self, dim, index, value);
})
ATEN(Take, take)
ATEN(InplacePut, put_)

OPERATOR(Gather, [](const Tensor& self, int64_t dim, const Tensor& index) {
    return aten::gather::call(self, dim, index.to(at::kLong), false);
})
OPERATOR(Scatter, [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, int64_t reduction) {
    return scattered(self, dim, index, src, reduction);
})
OPERATOR(ScatterValue, [](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, int64_t reduction) {
    return scattered(self, dim, index, value, reduction);
})
OPERATOR(InplaceScatter, [](Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, int64_t reduction) {
    overwrite(self, scattered(self, dim, index, src, reduction));
})
OPERATOR(InplaceScatterValue, [](Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, int64_t reduction) {
    overwrite(self, scattered(self, dim, index, value, reduction));
})
ATEN(ScatterAdd, scatter_add)
OPERATOR(IndexFillTensor, [](const Tensor& self, int64_t dim, IntArrayRef index, const Scalar& value) {
    return aten::index_fill_int_Scalar::call(self, dim, positions(index), value);
})
OPERATOR(InplaceIndexFillTensor, [](Tensor& self, int64_t dim, IntArrayRef index, const Scalar& value) {
    aten::index_fill__int_Scalar::call(self, dim, positions(index), value);
})

OPERATOR(MaskedSelect, [](const Tensor& self, const Tensor& mask, Out out) {
    out.shrink_to(aten::masked_select::call(self, mask));
})
OPERATOR(Nonzero, [](const Tensor& self, Out out) { out.shrink_to(aten::nonzero::call(self)); })
// Transposed: one row per dimension of `self`.
OPERATOR(NonzeroV2, [](const Tensor& self, Out out) { out.shrink_to(aten::nonzero::call(self).t()); })
OPERATOR(Unique, [](const Tensor& self, bool sorted, bool return_inverse, Out values, Out inverse) {
    auto [unique, positions] = aten::_unique::call(self, sorted, return_inverse);
    values.shrink_to(unique);
    if (return_inverse) inverse = positions;
})
OPERATOR(Unique2, [](const Tensor& self, bool sorted, bool return_inverse, bool return_counts, Out values, Out inverse, Out counts) {
    auto [unique, positions, numbers] = aten::_unique2::call(self, sorted, return_inverse, return_counts);
    values.shrink_to(unique);
    if (return_inverse) inverse = positions;
    if (return_counts) counts.shrink_to(numbers);
})
OPERATOR(UniqueDim, [](const Tensor& self, bool sorted, bool return_inverse, int64_t dim, Out values, Out inverse, Out counts) {
    auto [unique, positions, numbers] = aten::unique_dim::call(self, dim, sorted, true, true);
    values.shrink_to(unique);
    if (return_inverse) inverse = positions;
    if (counts) counts.shrink_to(numbers);
})
OPERATOR(UniqueConsecutive,
         [](const Tensor& self, bool return_inverse, bool return_counts, int64_t dim, Out values, Out inverse, Out counts) {
             constexpr int64_t kFlattened = 1000; // the caller's word for "no dimension"
             auto [unique, positions, numbers] = aten::unique_consecutive::call(
                 self, return_inverse, return_counts, dim == kFlattened ? std::nullopt : std::optional(dim));
             values.shrink_to(unique);
             if (return_inverse) inverse = positions;
             if (return_counts) counts.shrink_to(numbers);
         })

OPERATOR(Embedding, [](const Tensor& weight, const Tensor& indices) {
    return aten::embedding::call(weight, indices, -1, false, false);
})
ATEN(EmbeddingDenseBackward, embedding_dense_backward)
ATEN(EmbeddingRenorm, embedding_renorm_)

OPERATOR(SearchSorted, [](const Tensor& sorted, const Tensor& self, bool out_int32, bool right, std::optional<Tensor> sorter) {
    return aten::searchsorted_Tensor::call(sorted, self, out_int32, right, {}, sorter);
})
OPERATOR(SearchSorteds, [](const Tensor& sorted, const Scalar& self, bool out_int32, bool right, std::optional<Tensor> sorter) {
    return aten::searchsorted_Scalar::call(sorted, self, out_int32, right, {}, sorter);
})
ATEN(Bucketize, bucketize_Tensor)
OPERATOR(OneHot, [](const Tensor& self, int64_t depth, const Tensor& on, const Tensor& off, int64_t axis) {
    TORCH_CHECK(axis == -1, "one-hot along axis ", axis, " is not simulated");
    return aten::where_self::call(aten::one_hot::call(self.to(at::kLong), depth).to(at::kBool), on, off);
})
OPERATOR(EmbeddingBag,
         [](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode, bool sparse,
            std::optional<Tensor> per_sample_weights, bool include_last_offset, int64_t padding_idx, Out out, Out offset2bag,
            Out bag_size, Out max_indices) {
             auto [bags, where, sizes, largest] = aten::_embedding_bag::call(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                                                                             per_sample_weights, include_last_offset, padding_idx);
             out = bags;
             offset2bag = where;
             bag_size = sizes;
             max_indices = largest;
         })
OPERATOR(RepeatInterleaveGrad, [](const Tensor& grad, const Tensor& repeats, int64_t dim) {
    auto size = grad.sizes().vec();
    size.at(dim) = repeats.numel();
    const auto rows = aten::repeat_interleave_Tensor::call(repeats, grad.size(dim));
    const auto zeros = aten::new_zeros::call(grad, c10::fromIntArrayRefSlow(size), {}, {}, {}, {});
    return aten::index_add::call(zeros, dim, rows, grad, 1);
})
ATEN(UnfoldGrad, unfold_backward)

// Elements of a sparse tensor that have the same indices become one: `places` tells for each element where it goes.
OPERATOR(CoalesceSparse, [](const Tensor&, const Tensor& places, const Tensor& indices, const Tensor& values, Out new_indices,
                            Out new_values) {
    const auto to = places.to(at::kLong);
    new_indices = new_indices.tensor().clone().index_copy(0, to, indices);
    new_values = aten::zeros_like::call(new_values.tensor(), {}, {}, {}, {}, {}).index_add(0, to, values);
})
