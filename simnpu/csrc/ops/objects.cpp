// C entry points that make, read and destroy the opaque argument objects.
#include "objects.h"

#include <simnpu/core.h>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <cstring>

namespace simnpu {

std::optional<at::ScalarType> scalar_type(aclDataType type) {
    switch (type) {
        case ACL_FLOAT: return at::kFloat;
        case ACL_FLOAT16: return at::kHalf;
        case ACL_INT8: return at::kChar;
        case ACL_INT32: return at::kInt;
        case ACL_UINT8: return at::kByte;
        case ACL_INT16: return at::kShort;
        case ACL_UINT16: return at::kUInt16;
        case ACL_UINT32: return at::kUInt32;
        case ACL_INT64: return at::kLong;
        case ACL_UINT64: return at::kUInt64;
        case ACL_DOUBLE: return at::kDouble;
        case ACL_BOOL: return at::kBool;
        case ACL_COMPLEX32: return at::kComplexHalf;
        case ACL_COMPLEX64: return at::kComplexFloat;
        case ACL_COMPLEX128: return at::kComplexDouble;
        case ACL_BF16: return at::kBFloat16;
        default: return std::nullopt;
    }
}

const char* type_name(aclDataType type) {
    if (auto known = scalar_type(type)) return c10::toString(*known);
    switch (type) {
        case ACL_DT_UNDEFINED: return "undefined";
        case ACL_STRING: return "string";
        case ACL_INT4: return "int4";
        case ACL_UINT1: return "uint1";
        case ACL_HIFLOAT8: return "hifloat8";
        case ACL_FLOAT8_E5M2: return "float8_e5m2";
        case ACL_FLOAT8_E4M3FN: return "float8_e4m3fn";
        case ACL_FLOAT8_E8M0: return "float8_e8m0";
        case ACL_FLOAT4_E2M1: return "float4_e2m1";
        case ACL_FLOAT4_E1M2: return "float4_e1m2";
        default: return "of an unknown code";
    }
}

bool is_plain(aclFormat format) {
    return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCDHW || format == ACL_FORMAT_NCL ||
           format == ACL_FORMAT_NC;
}

int64_t TensorState::numel() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
}

size_t TensorState::extent() const {
    if (numel() == 0) return 0;
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    return static_cast<size_t>(last + 1) * c10::elementSize(scalar_type(type).value());
}

namespace {

thread_local const Trial* t_trial = nullptr;
thread_local uint64_t t_widened = 0;

at::ScalarType wide(at::ScalarType type) {
    if (!(t_widened >> static_cast<int>(type) & 1)) return type;
    if (type == at::kHalf || type == at::kBFloat16) return at::kFloat;
    if (type == at::kComplexHalf) return at::kComplexFloat;
    return c10::isIntegralType(type, true) ? at::kDouble : type;
}

} // namespace

Trial::Trial(int number, std::map<int64_t, int64_t> sizes) : number_(number), sizes_(std::move(sizes)) {
    t_trial = this;
}

Trial::~Trial() {
    t_trial = nullptr;
}

at::Tensor Trial::stand_in(const TensorState& state) const {
    auto shape = state.sizes;
    for (auto& size : shape)
        if (const auto other = sizes_.find(size); other != sizes_.end()) size = other->second;
    return at::full(shape, number_, at::TensorOptions().dtype(scalar_type(state.type).value()));
}

bool on_trial() {
    return t_trial != nullptr;
}

Widened::Widened(std::initializer_list<at::ScalarType> types) {
    for (const auto type : types) t_widened |= uint64_t{1} << static_cast<int>(type);
}

Widened::~Widened() {
    t_widened = 0;
}

bool widened() {
    return t_widened != 0;
}

at::Tensor TensorState::read() const {
    auto tensor = view();
    const auto type = wide(tensor.scalar_type());
    return type == tensor.scalar_type() ? tensor : tensor.to(type);
}

at::Tensor TensorState::view() const {
    if (t_trial) return t_trial->stand_in(*this);
    const auto dtype = scalar_type(type).value();
    auto* first = static_cast<char*>(data) + (data ? offset * static_cast<int64_t>(c10::elementSize(dtype)) : 0);
    return at::from_blob(first, sizes, strides, at::TensorOptions().dtype(dtype));
}

namespace {

template <class T>
T read(const void* value) {
    T result;
    std::memcpy(&result, value, sizeof(T));
    return result;
}

std::optional<at::Scalar> scalar_from(const void* value, aclDataType type) {
    switch (type) {
        case ACL_FLOAT: return read<float>(value);
        case ACL_FLOAT16: return static_cast<float>(read<at::Half>(value));
        case ACL_BF16: return static_cast<float>(read<at::BFloat16>(value));
        case ACL_DOUBLE: return read<double>(value);
        case ACL_INT8: return read<int8_t>(value);
        case ACL_UINT8: return read<uint8_t>(value);
        case ACL_INT16: return read<int16_t>(value);
        case ACL_UINT16: return static_cast<int64_t>(read<uint16_t>(value));
        case ACL_INT32: return read<int32_t>(value);
        case ACL_UINT32: return static_cast<int64_t>(read<uint32_t>(value));
        case ACL_INT64: return read<int64_t>(value);
        case ACL_UINT64: return at::Scalar(read<uint64_t>(value));
        case ACL_BOOL: return at::Scalar(read<uint8_t>(value) != 0);
        case ACL_COMPLEX64: return read<c10::complex<float>>(value);
        case ACL_COMPLEX128: return read<c10::complex<double>>(value);
        default: return std::nullopt;
    }
}

template <class Array, class T>
Array* make_array(const T* values, uint64_t size) {
    auto* array = new Array;
    array->values.assign(values, values + size);
    return array;
}

template <class T>
aclError destroy(const T* object) {
    delete object;
    return ACL_SUCCESS;
}

} // namespace
} // namespace simnpu

using namespace simnpu;

SIMNPU_EXPORT aclTensor* aclCreateTensor(const int64_t* view_dims, uint64_t view_dims_num, aclDataType data_type,
                                         const int64_t* stride, int64_t offset, aclFormat format, const int64_t*,
                                         uint64_t, void* tensor_data) {
    SIMNPU_CALL_OR(nullptr, "aclCreateTensor", "type=%s dims=%lu data=%p", type_name(data_type), view_dims_num, tensor_data);
    auto state = std::make_shared<TensorState>();
    state->sizes.assign(view_dims, view_dims + view_dims_num);
    if (stride) {
        state->strides.assign(stride, stride + view_dims_num);
    } else { // documented: without strides the view is contiguous
        state->strides.assign(view_dims_num, 1);
        for (auto i = static_cast<int64_t>(view_dims_num) - 2; i >= 0; --i)
            state->strides[i] = state->strides[i + 1] * state->sizes[i + 1];
    }
    state->offset = offset;
    state->type = data_type;
    state->format = format;
    state->data = tensor_data;
    return new aclTensor{std::move(state)};
}

SIMNPU_EXPORT aclScalar* aclCreateScalar(void* value, aclDataType data_type) {
    SIMNPU_CALL_OR(nullptr, "aclCreateScalar", "type=%s", type_name(data_type));
    auto scalar = value ? scalar_from(value, data_type) : std::nullopt;
    if (!scalar) {
        fail(ACL_ERROR_INVALID_PARAM, "a scalar of type %s (aclDataType %d) is not simulated", type_name(data_type), data_type);
        return nullptr;
    }
    return new aclScalar{*scalar, data_type};
}

SIMNPU_EXPORT aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateIntArray", "size=%lu", size);
    return make_array<aclIntArray>(value, size);
}

SIMNPU_EXPORT aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateFloatArray", "size=%lu", size);
    return make_array<aclFloatArray>(value, size);
}

SIMNPU_EXPORT aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateBoolArray", "size=%lu", size);
    return make_array<aclBoolArray>(value, size);
}

SIMNPU_EXPORT aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateTensorList", "size=%lu", size);
    auto* list = new aclTensorList;
    for (uint64_t i = 0; i < size; ++i) list->tensors.emplace_back(value[i]);
    return list;
}

SIMNPU_EXPORT aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateScalarList", "size=%lu", size);
    auto* list = new aclScalarList;
    for (uint64_t i = 0; i < size; ++i) list->scalars.emplace_back(value[i]);
    return list;
}

SIMNPU_EXPORT aclError aclDestroyTensor(const aclTensor* tensor) { return destroy(tensor); }
SIMNPU_EXPORT aclError aclDestroyScalar(const aclScalar* scalar) { return destroy(scalar); }
SIMNPU_EXPORT aclError aclDestroyIntArray(const aclIntArray* array) { return destroy(array); }
SIMNPU_EXPORT aclError aclDestroyFloatArray(const aclFloatArray* array) { return destroy(array); }
SIMNPU_EXPORT aclError aclDestroyBoolArray(const aclBoolArray* array) { return destroy(array); }
SIMNPU_EXPORT aclError aclDestroyTensorList(const aclTensorList* list) { return destroy(list); }
SIMNPU_EXPORT aclError aclDestroyScalarList(const aclScalarList* list) { return destroy(list); }

// The caller frees the returned array with delete[].
SIMNPU_EXPORT aclError aclGetViewShape(const aclTensor* tensor, int64_t** view_dims, uint64_t* view_dims_num) {
    SIMNPU_CALL("aclGetViewShape");
    if (!tensor || !view_dims || !view_dims_num) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    const auto& sizes = tensor->state->sizes;
    *view_dims = new int64_t[sizes.size()];
    std::copy(sizes.begin(), sizes.end(), *view_dims);
    *view_dims_num = sizes.size();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* strides_num) {
    SIMNPU_CALL("aclGetViewStrides");
    if (!tensor || !strides || !strides_num) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    const auto& values = tensor->state->strides;
    *strides = new int64_t[values.size()];
    std::copy(values.begin(), values.end(), *strides);
    *strides_num = values.size();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetDataType(const aclTensor* tensor, aclDataType* data_type) {
    SIMNPU_CALL("aclGetDataType");
    if (!tensor || !data_type) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    *data_type = tensor->state->type;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetFormat(const aclTensor* tensor, aclFormat* format) {
    SIMNPU_CALL("aclGetFormat");
    if (!tensor || !format) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    *format = tensor->state->format;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
    SIMNPU_CALL("aclGetTensorListSize");
    if (!list || !size) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    *size = list->tensors.size();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    SIMNPU_CALL("aclGetIntArraySize");
    if (!array || !size) return fail(ACL_ERROR_INVALID_PARAM, "null argument");
    *size = array->values.size();
    return ACL_SUCCESS;
}
