// The opaque objects of the aclnn interface (aclTensor, aclScalar, lists): plain descriptions of arguments. A tensor's
// description is shared, because an operator in the queue outlives the aclTensor that its caller destroys.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>
#include <acl/acl_base.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace simnpu {

struct TensorState {
    // With room for the usual ranks inside: one is made for every argument, and freed by another thread, which is slow.
    c10::DimVector sizes;
    c10::DimVector strides; // in elements
    int64_t offset = 0; // in elements
    aclDataType type = ACL_DT_UNDEFINED;
    aclFormat format = ACL_FORMAT_ND;
    void* data = nullptr;

    int64_t numel() const;
    // Bytes from the first to the last element that the view reaches; 0 for an empty tensor.
    size_t extent() const;
    // A tensor on the device's memory, without a copy; while this thread tries a call, one of its own. Throws if the type is not
    // simulated.
    at::Tensor view() const;
    // The same as an operator reads it: in the type in which this thread computes (Widened).
    at::Tensor read() const;
};

using TensorHandle = std::shared_ptr<TensorState>;

// While it lives, what this thread views is not the device's memory but tensors of one number, in the same types and, unless `sizes`
// replaces them, in the same shapes: a call can be tried before its memory holds anything.
class Trial {
public:
    Trial(int number, std::map<int64_t, int64_t> sizes);
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    at::Tensor stand_in(const TensorState& state) const;

private:
    int number_;
    std::map<int64_t, int64_t> sizes_;
};
bool on_trial();

// While it lives, this thread reads tensors of these types in a wider one: floats in float, integers and bool in double.
class Widened {
public:
    explicit Widened(std::initializer_list<at::ScalarType> types);
    ~Widened();
    Widened(const Widened&) = delete;
    Widened& operator=(const Widened&) = delete;
};
bool widened();

// nullopt for the types that have no counterpart on the CPU (int4, float8 variants of the NPU, …).
std::optional<at::ScalarType> scalar_type(aclDataType type);
const char* type_name(aclDataType type);
// True for the formats whose memory is described by sizes and strides alone.
bool is_plain(aclFormat format);

} // namespace simnpu

struct aclTensor {
    simnpu::TensorHandle state;
};

struct aclScalar {
    at::Scalar value;
    aclDataType type;
};

struct aclIntArray {
    std::vector<int64_t> values;
};

struct aclFloatArray {
    std::vector<float> values;
};

struct aclBoolArray {
    c10::SmallVector<bool, 4> values;
};

// Owns its elements; an element may be null (an undefined tensor).
struct aclTensorList {
    std::vector<std::unique_ptr<const aclTensor>> tensors;
};

struct aclScalarList {
    std::vector<std::unique_ptr<const aclScalar>> scalars;
};
