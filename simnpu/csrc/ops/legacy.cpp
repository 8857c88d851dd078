// Operators of the legacy path (aclopCompileAndExecute), which the wheel takes where it knows no aclnn form. The runtime
// looks simnpu_aclop_execute up; a type that is not in the table is an error by name there.
#include "legacy.h"

#include <cmath>
#include <limits>

namespace simnpu {
namespace {

// The order of a norm; the infinite ones may come as the limits of int32.
double order_of(const Legacy& call) {
    const double order = call.attribute<float>("p");
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return order >= 2147483647.0 ? kInfinity : order <= -2147483648.0 ? -kInfinity : order;
}

// A vector norm comes in two steps: the sum of powers (largest, smallest, number of non-zero elements), then its root.
void norm_reduce(const Legacy& call) {
    const double order = order_of(call);
    auto norm = aten::linalg_vector_norm::call(call.input(0), order,
                                               IntArrayRef(call.attribute<std::vector<int64_t>>("axes")),
                                               call.attribute<bool>("keepdim"), {});
    call.output(0) = std::isinf(order) || order == 0 ? norm : aten::pow_Tensor_Scalar::call(norm, order);
}

void norm_update(const Legacy& call) {
    const double order = order_of(call);
    const auto powers = call.input(0);
    call.output(0) = std::isinf(order) || order == 0 ? powers : aten::pow_Tensor_Scalar::call(powers, 1 / order);
}

void cast(const Legacy& call) {
    const auto type = static_cast<aclDataType>(call.attribute<int64_t>("dst_type"));
    const auto out = call.output(0);
    TORCH_CHECK(scalar_type(type) == out.dtype(), "asked to cast to ", type_name(type), " into an output of type ", out.dtype());
    out = call.input(0).to(out.dtype());
}

// All inputs are spread to [..., points of x1, points of x2, elements]. The order -1 stands for infinity.
void cdist_grad(const Legacy& call) {
    const auto out = call.output(0);
    if (call.input(0).numel() == 0) return out = aten::zeros_like::call(out.tensor(), {}, {}, {}, {}, {});
    const double order = call.attribute<float>("p") < 0 ? std::numeric_limits<double>::infinity() : call.attribute<float>("p");
    const auto grad = call.input(0).select(-1, 0), x1 = call.input(1).select(-2, 0), x2 = call.input(2).select(-3, 0);
    const auto result = aten::_cdist_backward::call(grad.contiguous(), x1.contiguous(), x2.contiguous(), order,
                                                    call.input(3).select(-1, 0).contiguous());
    out = result.sum_to_size(out.tensor().sizes()); // x1 may have been spread over batches, too
}

// Softmax of what the mask does not hide. A row that is hidden altogether has equal weights, hence no infinity.
void scaled_masked_softmax(const Legacy& call) {
    TORCH_CHECK(!call.attribute<bool>("fixed_triu_mask"), "a fixed triangular mask is not simulated");
    const auto out = call.output(0);
    const auto scores = call.input(0).to(at::kFloat).mul(call.attribute<float>("scale")).masked_fill(call.input(1), -10000);
    out = aten::_softmax::call(scores, -1, false).to(out.dtype());
}

void scaled_masked_softmax_grad(const Legacy& call) {
    TORCH_CHECK(!call.attribute<bool>("fixed_triu_mask"), "a fixed triangular mask is not simulated");
    const auto out = call.output(0);
    const auto grad = call.input(0).to(at::kFloat), y = call.input(1).to(at::kFloat);
    const auto grad_scores = aten::_softmax_backward_data::call(grad, y, -1, at::kFloat);
    out = grad_scores.mul(call.attribute<float>("scale")).masked_fill(call.input(2), 0).to(out.dtype());
}

// x * sigmoid(scale x). Not given, the scale is 1.
float swish_scale(const Legacy& call) { return call.attributes.contains("scale") ? call.attribute<float>("scale") : 1; }

void swish(const Legacy& call) {
    const auto out = call.output(0);
    const auto x = call.input(0).to(at::kFloat);
    out = x.mul(x.mul(swish_scale(call)).sigmoid()).to(out.dtype());
}

void swish_grad(const Legacy& call) {
    const auto out = call.output(0);
    const auto scaled = call.input(1).to(at::kFloat).mul(swish_scale(call));
    const auto gate = scaled.sigmoid();
    out = call.input(0).to(at::kFloat).mul(gate.add(scaled.mul(gate).mul(gate.neg().add(1)))).to(out.dtype());
}

// What a copy between devices is made of where a side is a view. All but Identity take their sizes from host memory. The
// view may reach beyond the shape of the tensor that was handed over, as long as it stays in its allocation.
Tensor view_of(const TensorHandle& memory, const Legacy& call, size_t sizes) {
    TORCH_CHECK(memory, "the tensor of the view is missing");
    TensorState view = *memory;
    const auto &shape = call.numbers_of(sizes), &strides = call.numbers_of(sizes + 1);
    TORCH_CHECK(shape.size() == strides.size(), "a view has ", shape.size(), " sizes and ", strides.size(), " strides");
    view.sizes.assign(shape.begin(), shape.end());
    view.strides.assign(strides.begin(), strides.end());
    view.offset = call.number(sizes + 2);
    if (auto why = validation_error(view); !why.empty()) TORCH_CHECK(false, "a view ", why);
    return view.view();
}

void view_copy(const Legacy& call) { view_of(call.outputs.at(0), call, 1).copy_(view_of(call.inputs.at(4), call, 5)); }

void as_strided(const Legacy& call) { call.output(0) = view_of(call.inputs.at(0), call, 1); }

void slice(const Legacy& call) {
    auto part = call.input(0);
    const auto &begins = call.numbers_of(1), &sizes = call.numbers_of(2);
    for (int64_t dim = 0; dim < part.dim(); ++dim) part = part.narrow(dim, begins.at(dim), sizes.at(dim));
    call.output(0) = part;
}

void strided_slice(const Legacy& call) {
    for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
        TORCH_CHECK(call.attribute<int64_t>(mask) == 0, mask, " is not simulated");
    const auto from_start = call.attribute<int64_t>("begin_mask"), to_end = call.attribute<int64_t>("end_mask");
    auto part = call.input(0);
    const auto &begins = call.numbers_of(1), &ends = call.numbers_of(2), &strides = call.numbers_of(3);
    for (int64_t dim = 0; dim < part.dim(); ++dim) {
        TORCH_CHECK(strides.at(dim) > 0, "a stride of ", strides[dim], " is not simulated");
        part = part.slice(dim, from_start >> dim & 1 ? 0 : begins.at(dim), to_end >> dim & 1 ? part.size(dim) : ends.at(dim),
                          strides[dim]);
    }
    call.output(0) = part;
}

void identity(const Legacy& call) { call.output(0) = call.input(0); }

const std::map<std::string_view, void (*)(const Legacy&)> kTable{
    {"AsStrided", as_strided},
    {"Cast", cast},
    {"CdistGrad", cdist_grad},
    {"DynamicGRUV2", gru},
    {"DynamicGRUV2Grad", gru_grad},
    {"DynamicRNN", lstm},
    {"DynamicRNNGrad", lstm_grad},
    {"DynamicRNNV2", lstm_cell},
    {"DynamicRNNV2Grad", lstm_cell_grad},
    {"Identity", identity},
    {"LpNormReduceV2", norm_reduce},
    {"LpNormUpdateV2", norm_update},
    {"ScaledMaskedSoftmax", scaled_masked_softmax},
    {"ScaledMaskedSoftmaxGrad", scaled_masked_softmax_grad},
    {"Slice", slice},
    {"StridedSlice", strided_slice},
    {"Swish", swish},
    {"SwishGrad", swish_grad},
    {"ViewCopy", view_copy},
};

// Whole numbers in host memory, which is the caller's again after the call.
std::vector<int64_t> host_numbers(const Arguments& arguments, const aclTensorDesc& desc, const aclDataBuffer& buffer) {
    const bool wide = desc.type == ACL_INT64;
    if (!buffer.data || (!wide && desc.type != ACL_INT32)) arguments.refuse("is in host memory, which is not simulated for its type");
    std::vector<int64_t> numbers(buffer.size / (wide ? sizeof(int64_t) : sizeof(int32_t)));
    for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = wide ? static_cast<const int64_t*>(buffer.data)[i] : static_cast<const int32_t*>(buffer.data)[i];
    return numbers;
}

TensorHandle handle(const aclTensorDesc& desc, const aclDataBuffer& buffer) {
    auto state = std::make_shared<TensorState>();
    state->sizes = desc.dims;
    state->strides.assign(desc.dims.size(), 1);
    for (auto i = static_cast<int64_t>(desc.dims.size()) - 2; i >= 0; --i)
        state->strides[i] = state->strides[i + 1] * desc.dims[i + 1];
    state->type = desc.type;
    state->format = desc.storage_format == ACL_FORMAT_UNDEFINED ? desc.format : desc.storage_format;
    state->data = buffer.data;
    return state;
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclError simnpu_aclop_execute(const char* type, int num_inputs, const aclTensorDesc* const input_descs[],
                                            const aclDataBuffer* const inputs[], int num_outputs,
                                            const aclTensorDesc* const output_descs[], aclDataBuffer* const outputs[],
                                            const aclopAttr* attr, aclrtStream stream) {
    const auto found = kTable.find(type);
    if (found == kTable.end()) return ACL_ERROR_OP_NOT_FOUND;
    const char* name = found->first.data();
    aclOpExecutor* executor = nullptr;
    uint64_t workspace = 0;
    const auto code = prepare(name, "", &workspace, &executor, [&](Arguments& arguments) -> Body {
        Legacy call;
        if (attr) call.attributes = attr->values;
        auto take = [&](std::vector<TensorHandle>& into, const aclTensorDesc& desc, const aclDataBuffer& buffer) {
            arguments.next();
            const aclTensor tensor{handle(desc, buffer)};
            if (desc.type == ACL_DT_UNDEFINED || (!buffer.data && tensor.state->numel())) return into.push_back(nullptr); // not given
            if (desc.placement != ACL_MEMTYPE_DEVICE) {
                if (&into == &call.outputs) arguments.refuse("is in host memory, which is not simulated here");
                call.numbers[into.size()] = host_numbers(arguments, desc, buffer);
                return into.push_back(nullptr);
            }
            into.push_back(arguments.tensor(&tensor));
        };
        for (int i = 0; i < num_inputs; ++i) take(call.inputs, *input_descs[i], *inputs[i]);
        for (int i = 0; i < num_outputs; ++i) take(call.outputs, *output_descs[i], *outputs[i]);
        return [definition = found->second, call = std::move(call)] { definition(call); };
    });
    return code == ACL_SUCCESS ? launch(executor, stream) : code;
}
