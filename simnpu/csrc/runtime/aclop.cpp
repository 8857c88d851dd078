// The legacy operator path: descriptions of tensors and attributes, compile options, and execution by operator type.
#include "simnpu/aclop.h"

#include "errors.h"
#include "graphs.h"
#include "simnpu/core.h"

#include <acl/acl_op_compiler.h>
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_set>

using namespace simnpu;

namespace {

// Live objects by address: what the caller hands back may have been destroyed, or be somebody else's.
template <typename T>
class LiveSet {
public:
    T* add(T* object) {
        std::lock_guard lock(mutex_);
        live_.insert(object);
        return object;
    }
    bool has(const T* object) {
        std::lock_guard lock(mutex_);
        return live_.count(object) != 0;
    }
    bool remove(const T* object) {
        std::lock_guard lock(mutex_);
        return live_.erase(object) != 0;
    }

private:
    std::mutex mutex_;
    std::unordered_set<const T*> live_;
};

LiveSet<aclTensorDesc>& descs() {
    static auto& instance = *new LiveSet<aclTensorDesc>;
    return instance;
}
LiveSet<aclDataBuffer>& buffers() {
    static auto& instance = *new LiveSet<aclDataBuffer>;
    return instance;
}
LiveSet<aclopAttr>& attrs() {
    static auto& instance = *new LiveSet<aclopAttr>;
    return instance;
}

bool live(const aclTensorDesc* desc) {
    if (desc && descs().has(desc)) return true;
    fail(ACL_ERROR_INVALID_PARAM, "%p is no live tensor description", static_cast<const void*>(desc));
    return false;
}

template <typename T>
aclError set_attr(aclopAttr* attr, const char* name, T value) {
    if (!attr || !attrs().has(attr)) return fail(ACL_ERROR_INVALID_PARAM, "%p is no live attribute set", static_cast<void*>(attr));
    if (!name) return is_null("the attribute's name", ACL_ERROR_INVALID_PARAM);
    attr->values[name] = std::move(value);
    return ACL_SUCCESS;
}

template <typename Element, typename Source>
aclError set_list(aclopAttr* attr, const char* name, int count, const Source* values) {
    if (count < 0 || (count > 0 && !values)) return fail(ACL_ERROR_INVALID_PARAM, "a negative count or a null list");
    std::vector<Element> list;
    for (int i = 0; i < count; ++i) list.push_back(static_cast<Element>(values[i]));
    return set_attr(attr, name, std::move(list));
}

} // namespace

SIMNPU_EXPORT aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims, aclFormat format) {
    SIMNPU_CALL_OR(nullptr, "aclCreateTensorDesc", "type=%d dims=%d format=%d", dataType, numDims, format);
    if (numDims < 0 || (numDims > 0 && !dims)) {
        fail(ACL_ERROR_INVALID_PARAM, "%d dimensions, list %p", numDims, static_cast<const void*>(dims));
        return nullptr;
    }
    auto* desc = new aclTensorDesc;
    desc->type = dataType;
    desc->format = format;
    desc->dims.assign(dims, dims + numDims);
    return descs().add(desc);
}

SIMNPU_EXPORT void aclDestroyTensorDesc(const aclTensorDesc* desc) {
    SIMNPU_CALL_OR(, "aclDestroyTensorDesc", "desc=%p", static_cast<const void*>(desc));
    if (!desc) return;
    if (descs().remove(desc)) delete desc;
    else fail(ACL_ERROR_INVALID_PARAM, "%p is no live tensor description", static_cast<const void*>(desc));
}

SIMNPU_EXPORT aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
    SIMNPU_CALL_OR(ACL_DT_UNDEFINED, "aclGetTensorDescType");
    return live(desc) ? desc->type : ACL_DT_UNDEFINED;
}

SIMNPU_EXPORT aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
    SIMNPU_CALL_OR(ACL_FORMAT_UNDEFINED, "aclGetTensorDescFormat");
    return live(desc) ? desc->format : ACL_FORMAT_UNDEFINED;
}

SIMNPU_EXPORT size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
    SIMNPU_CALL_OR(0, "aclGetTensorDescNumDims");
    return live(desc) ? desc->dims.size() : 0;
}

SIMNPU_EXPORT aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
    SIMNPU_CALL("aclGetTensorDescDimV2", "index=%zu", index);
    if (!live(desc)) return thread_errors().last;
    if (!dimSize || index >= desc->dims.size())
        return fail(ACL_ERROR_INVALID_PARAM, "dimension %zu of %zu, or null pointer", index, desc->dims.size());
    *dimSize = desc->dims[index];
    return ACL_SUCCESS;
}

SIMNPU_EXPORT void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
    SIMNPU_CALL_OR(, "aclSetTensorDescName", "name=%s", name ? name : "(null)");
    if (live(desc)) desc->name = name ? name : "";
}

SIMNPU_EXPORT aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
    SIMNPU_CALL("aclSetTensorFormat", "format=%d", format);
    if (!live(desc)) return thread_errors().last;
    desc->storage_format = format;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
    SIMNPU_CALL("aclSetTensorShape", "dims=%d", numDims);
    if (!live(desc)) return thread_errors().last;
    if (numDims < 0 || (numDims > 0 && !dims)) return fail(ACL_ERROR_INVALID_PARAM, "%d dimensions", numDims);
    desc->storage_dims.assign(dims, dims + numDims);
    desc->has_storage_dims = true;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
    SIMNPU_CALL("aclSetTensorPlaceMent", "place=%d", memType);
    if (!live(desc)) return thread_errors().last;
    desc->placement = memType;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclSetTensorConst(aclTensorDesc* desc, void* data, size_t length) {
    SIMNPU_CALL("aclSetTensorConst", "bytes=%zu", length);
    if (!live(desc)) return thread_errors().last;
    desc->const_data = data;
    desc->const_bytes = length;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
    SIMNPU_CALL_OR(nullptr, "aclCreateDataBuffer", "data=%p size=%zu", data, size);
    return buffers().add(new aclDataBuffer{data, size});
}

SIMNPU_EXPORT aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
    SIMNPU_CALL("aclDestroyDataBuffer", "buffer=%p", static_cast<const void*>(buffer));
    if (!buffer || !buffers().remove(buffer))
        return fail(ACL_ERROR_INVALID_PARAM, "%p is no live data buffer", static_cast<const void*>(buffer));
    delete buffer;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclopAttr* aclopCreateAttr() {
    SIMNPU_CALL_OR(nullptr, "aclopCreateAttr");
    return attrs().add(new aclopAttr);
}

SIMNPU_EXPORT void aclopDestroyAttr(const aclopAttr* attr) {
    SIMNPU_CALL_OR(, "aclopDestroyAttr", "attr=%p", static_cast<const void*>(attr));
    if (!attr) return;
    if (attrs().remove(attr)) delete attr;
    else fail(ACL_ERROR_INVALID_PARAM, "%p is no live attribute set", static_cast<const void*>(attr));
}

SIMNPU_EXPORT aclError aclopSetAttrBool(aclopAttr* attr, const char* name, uint8_t value) {
    SIMNPU_CALL("aclopSetAttrBool", "name=%s", name ? name : "(null)");
    return set_attr(attr, name, value != 0);
}

SIMNPU_EXPORT aclError aclopSetAttrInt(aclopAttr* attr, const char* name, int64_t value) {
    SIMNPU_CALL("aclopSetAttrInt", "name=%s", name ? name : "(null)");
    return set_attr(attr, name, value);
}

SIMNPU_EXPORT aclError aclopSetAttrFloat(aclopAttr* attr, const char* name, float value) {
    SIMNPU_CALL("aclopSetAttrFloat", "name=%s", name ? name : "(null)");
    return set_attr(attr, name, value);
}

SIMNPU_EXPORT aclError aclopSetAttrString(aclopAttr* attr, const char* name, const char* value) {
    SIMNPU_CALL("aclopSetAttrString", "name=%s", name ? name : "(null)");
    if (!value) return is_null("the value", ACL_ERROR_INVALID_PARAM);
    return set_attr(attr, name, std::string(value));
}

SIMNPU_EXPORT aclError aclopSetAttrDataType(aclopAttr* attr, const char* name, aclDataType value) {
    SIMNPU_CALL("aclopSetAttrDataType", "name=%s", name ? name : "(null)");
    return set_attr(attr, name, value);
}

SIMNPU_EXPORT aclError aclopSetAttrListBool(aclopAttr* attr, const char* name, int count, const uint8_t* values) {
    SIMNPU_CALL("aclopSetAttrListBool", "name=%s", name ? name : "(null)");
    return set_list<bool>(attr, name, count, values);
}

SIMNPU_EXPORT aclError aclopSetAttrListInt(aclopAttr* attr, const char* name, int count, const int64_t* values) {
    SIMNPU_CALL("aclopSetAttrListInt", "name=%s", name ? name : "(null)");
    return set_list<int64_t>(attr, name, count, values);
}

SIMNPU_EXPORT aclError aclopSetAttrListFloat(aclopAttr* attr, const char* name, int count, const float* values) {
    SIMNPU_CALL("aclopSetAttrListFloat", "name=%s", name ? name : "(null)");
    return set_list<float>(attr, name, count, values);
}

SIMNPU_EXPORT aclError aclopSetAttrListListInt(aclopAttr* attr, const char* name, int numLists, const int* numValues,
                                               const int64_t* const values[]) {
    SIMNPU_CALL("aclopSetAttrListListInt", "name=%s", name ? name : "(null)");
    if (numLists < 0 || (numLists > 0 && (!numValues || !values)))
        return fail(ACL_ERROR_INVALID_PARAM, "a negative count or a null list");
    std::vector<std::vector<int64_t>> lists;
    for (int i = 0; i < numLists; ++i) lists.emplace_back(values[i], values[i] + numValues[i]);
    return set_attr(attr, name, std::move(lists));
}

namespace {

aclError execute(const char* type, int num_inputs, const aclTensorDesc* const input_descs[],
                 const aclDataBuffer* const inputs[], int num_outputs, const aclTensorDesc* const output_descs[],
                 aclDataBuffer* const outputs[], const aclopAttr* attr, aclrtStream stream) {
    if (!type) return is_null("the operator type", ACL_ERROR_INVALID_PARAM);
    if (auto result = refuse_legacy_while_capturing(type, stream)) return result;
    // The operator library is optional here; it is loaded only when an operator of this path is really asked for.
    static const auto run = [] {
        void* library = ::dlopen("libopapi.so", RTLD_NOW | RTLD_LOCAL);
        return reinterpret_cast<simnpu_aclop_execute_t>(library ? ::dlsym(library, "simnpu_aclop_execute") : nullptr);
    }();
    if (run) {
        const aclError result = run(type, num_inputs, input_descs, inputs, num_outputs, output_descs, outputs, attr, stream);
        if (result != ACL_ERROR_OP_NOT_FOUND) return result;
    }
    return fail(ACL_ERROR_OP_NOT_FOUND, "operator %s of the legacy path is not simulated", type);
}

} // namespace

SIMNPU_EXPORT aclError aclopCompileAndExecute(const char* opType, int numInputs, const aclTensorDesc* const inputDesc[],
                                              const aclDataBuffer* const inputs[], int numOutputs,
                                              const aclTensorDesc* const outputDesc[], aclDataBuffer* const outputs[],
                                              const aclopAttr* attr, aclopEngineType, aclopCompileType, const char*,
                                              aclrtStream stream) {
    SIMNPU_CALL("aclopCompileAndExecute", "operator=%s inputs=%d outputs=%d", opType ? opType : "(null)", numInputs, numOutputs);
    return execute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, attr, stream);
}

SIMNPU_EXPORT aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                                int numOutputs, aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                                aclopAttr* attr, aclopEngineType, aclopCompileType, const char*, aclrtStream stream) {
    SIMNPU_CALL("aclopCompileAndExecuteV2", "operator=%s inputs=%d outputs=%d", opType ? opType : "(null)", numInputs, numOutputs);
    return execute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc, outputs, attr, stream);
}

// Compile options are kept and read back; nothing is compiled.
namespace {

struct CompileOptions {
    std::mutex mutex;
    std::map<int, std::string> values;
};

CompileOptions& compile_options() {
    static CompileOptions& instance = *new CompileOptions{{}, {{ACL_OP_JIT_COMPILE, "disable"}, {ACL_PRECISION_MODE, "allow_fp32_to_fp16"}}};
    return instance;
}

} // namespace

SIMNPU_EXPORT aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
    SIMNPU_CALL("aclSetCompileopt", "option=%d value=%s", static_cast<int>(opt), value ? value : "(null)");
    if (!value) return is_null("the value", ACL_ERROR_INVALID_PARAM);
    auto& options = compile_options();
    std::lock_guard lock(options.mutex);
    options.values[static_cast<int>(opt)] = value;
    return ACL_SUCCESS;
}

SIMNPU_EXPORT size_t aclGetCompileoptSize(aclCompileOpt opt) {
    SIMNPU_CALL_OR(0, "aclGetCompileoptSize", "option=%d", static_cast<int>(opt));
    auto& options = compile_options();
    std::lock_guard lock(options.mutex);
    auto at = options.values.find(static_cast<int>(opt));
    return at == options.values.end() ? 0 : at->second.size() + 1;
}

SIMNPU_EXPORT aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
    SIMNPU_CALL("aclGetCompileopt", "option=%d room=%zu", static_cast<int>(opt), length);
    auto& options = compile_options();
    std::lock_guard lock(options.mutex);
    auto at = options.values.find(static_cast<int>(opt));
    if (at == options.values.end()) return fail(ACL_ERROR_API_NOT_SUPPORT, "option %d was never set", static_cast<int>(opt));
    if (!value || length <= at->second.size())
        return fail(ACL_ERROR_INVALID_PARAM, "the buffer is null or shorter than %zu", at->second.size() + 1);
    std::memcpy(value, at->second.c_str(), at->second.size() + 1);
    return ACL_SUCCESS;
}
