// What the legacy operator path (aclopCompileAndExecute) passes around. The runtime owns creation and destruction; the operator
// library may run such operators by exporting simnpu_aclop_execute. Without it every legacy operator is an error by name.
#pragma once

#include <acl/acl_op.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

struct aclTensorDesc {
    aclDataType type = ACL_DT_UNDEFINED;
    aclFormat format = ACL_FORMAT_UNDEFINED;
    std::vector<int64_t> dims;
    aclFormat storage_format = ACL_FORMAT_UNDEFINED; // ACL_FORMAT_UNDEFINED: as `format`
    std::vector<int64_t> storage_dims;
    bool has_storage_dims = false;
    std::string name;
    aclMemType placement = ACL_MEMTYPE_DEVICE;
    const void* const_data = nullptr;
    size_t const_bytes = 0;
};

struct aclDataBuffer {
    void* data = nullptr;
    uint64_t size = 0;
};

struct aclopAttr {
    using Value = std::variant<bool, int64_t, float, std::string, aclDataType, std::vector<bool>, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::vector<int64_t>>>;
    std::map<std::string, Value> values;
};

// Optional, exported by libopapi.so with C linkage. Returns ACL_ERROR_OP_NOT_FOUND for a type it does not know.
using simnpu_aclop_execute_t = aclError (*)(const char* type, int num_inputs, const aclTensorDesc* const input_descs[],
                                            const aclDataBuffer* const inputs[], int num_outputs,
                                            const aclTensorDesc* const output_descs[], aclDataBuffer* const outputs[],
                                            const aclopAttr* attr, aclrtStream stream);
