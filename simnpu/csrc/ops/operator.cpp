// The part of every operator that does not depend on its signature: argument checks, the executor, running a definition on the
// stream's worker with its exceptions turned into error codes.
#include "operator.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>

// What the first phase of an aclnn call hands to the second.
struct aclOpExecutor {
    const char* name = nullptr;
    simnpu::Body body;
    bool repeatable = false;
    // Another thread may free the arguments' memory between the phases: torch's allocator hands back a block while the operator
    // that reads it still waits in torch_npu's own queue. Not kept for a repeatable one, which may live for ever.
    std::optional<simnpu::InFlight> pending;
};

namespace simnpu {

namespace {

constexpr aclError kNullArgument = 161001;  // ACLNN_ERR_PARAM_NULLPTR
constexpr aclError kWrongArgument = 161002; // ACLNN_ERR_PARAM_INVALID
constexpr aclError kFailedRun = 361001;     // ACLNN_ERR_RUNTIME_ERROR

// The name of parameter `index` in an ATen schema ("add(Tensor self, *, Scalar alpha=1) -> …") or the text of a lambda.
std::string parameter_name(std::string_view signature, int index) {
    auto begin = signature.find('(');
    int depth = 0;
    std::string_view text;
    for (auto i = begin; begin != std::string_view::npos && i < signature.size(); ++i) {
        const char c = signature[i];
        if (c == '(' || c == '<' || c == '[') ++depth;
        if ((c == ',' && depth == 1) || (c == ')' && depth == 1)) {
            text = signature.substr(begin + 1, i - begin - 1);
            begin = i;
            if (text.find_first_not_of(" *") == std::string_view::npos) continue; // keyword-only marker
            if (index-- == 0) break;
            text = {};
            if (c == ')') break;
        }
        if (c == ')' || c == '>' || c == ']') --depth;
    }
    text = text.substr(0, text.find('='));
    auto end = text.size();
    auto start = end;
    while (start > 0 && (std::isalnum(static_cast<unsigned char>(text[start - 1])) || text[start - 1] == '_')) --start;
    return std::string(text.substr(start, end - start));
}

} // namespace

std::string validation_error(const TensorState& state) {
    if (!scalar_type(state.type)) return std::string("has type ") + type_name(state.type) + ", which is not simulated";
    if (!is_plain(state.format))
        return "has format " + std::to_string(state.format) + "; only ND, NCL, NCHW and NCDHW are simulated";
    if (state.strides.size() != state.sizes.size()) return "has strides of another rank than its shape";
    for (size_t i = 0; i < state.sizes.size(); ++i)
        if (state.sizes[i] < 0 || state.strides[i] < 0) return "has a negative size or stride";
    const size_t bytes = state.extent();
    if (bytes == 0) return {};
    if (!state.data) return "has elements but no memory";
    const auto* first = static_cast<const char*>(state.data) +
                        state.offset * static_cast<int64_t>(c10::elementSize(scalar_type(state.type).value()));
    if (!owns(first, bytes))
        return c10::str("lies at ", static_cast<const void*>(first), ", ", bytes,
                        " bytes: that is not within one live allocation of the device");
    if (const auto far = out_of_reach(first))
        return c10::str("is on device ", far->owner, ", which device ", far->here, " cannot reach: all tensors must be on one device");
    return {};
}

namespace {

// Why `body` fails, or nothing.
std::optional<std::string> failure_of(const Body& body) {
    try {
        body();
        return std::nullopt;
    } catch (const c10::Error& error) {
        return error.what_without_backtrace();
    } catch (const std::exception& error) {
        return error.what();
    }
}

// What ATen's CPU kernels say of a type that they lack, before they compute anything.
std::optional<ScalarType> lacking(const char* message) {
    constexpr std::string_view kSaid = "not implemented for '";
    const std::string_view text = message;
    const auto found = text.find(kSaid);
    if (found == std::string_view::npos) return std::nullopt;
    const auto name = text.substr(found + kSaid.size());
    for (int i = 0; i < static_cast<int>(ScalarType::NumOptions); ++i) {
        const auto type = static_cast<ScalarType>(i);
        const std::string quoted = std::string(c10::toString(type)) + "'";
        if (name.starts_with(quoted)) return type;
    }
    return std::nullopt;
}

// Where the device takes a type that ATen's CPU kernel lacks, the result is computed in a wider one.
Body in_every_documented_type(Body body) {
    return [body = std::move(body)] {
        std::optional<ScalarType> type;
        try {
            return body();
        } catch (const c10::Error& error) {
            type = lacking(error.what_without_backtrace());
            if (!type) throw;
        }
        const Widened wider({*type});
        body();
    };
}

bool is_low(const TensorState* tensor) {
    return tensor && (tensor->type == ACL_FLOAT16 || tensor->type == ACL_BF16);
}

// Whether a definition takes several steps, which round one by one: one that says so, or an ATen operator without a CPU kernel.
bool is_composite(std::string_view signature) {
    if (signature.starts_with("composite ")) return true;
    const auto name = signature.substr(0, signature.find('('));
    if (name.empty() || name.starts_with('[') || signature.find("(a!)[]") != std::string_view::npos) return false;
    const auto dot = std::min(name.find('.'), name.size());
    const auto found = c10::Dispatcher::singleton().findSchema(
        {"aten::" + std::string(name.substr(0, dot)), std::string(name.substr(std::min(dot + 1, name.size())))});
    return found && !found->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

Body rounded_once(Body body) {
    return [body = std::move(body)] {
        const Widened wider({at::kHalf, at::kBFloat16});
        body();
    };
}

aclError run(const Body& body) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto why = failure_of(body);
    return why ? fail(kFailedRun, "%s", why->c_str()) : ACL_SUCCESS;
}

// --- The first phase tries a call, so that what ATen refuses is refused there, as a device does. Only ATen's kernels know all that
// they refuse, and they say so when they run: the call runs on numbers of the simulator's own, once per operator, types and shapes.

using Tensors = std::vector<const TensorState*>;

size_t kind_of(const char* name, const Tensors& tensors) {
    size_t kind = std::hash<const void*>()(name);
    const auto add = [&](auto value) { kind = c10::hash_combine(kind, static_cast<size_t>(value)); };
    for (const auto* tensor : tensors) {
        add(tensor ? tensor->type : ACL_DT_UNDEFINED);
        if (!tensor) continue;
        add(tensor->sizes.size());
        for (const auto size : tensor->sizes) add(size);
    }
    return kind;
}

// Zero is no divisor and one no index of a single row: what is wrong with types or shapes fails with both, in the same words.
std::optional<std::string> failure_of_trial(const Body& body, const std::map<int64_t, int64_t>& sizes) {
    const auto with = [&](int number) {
        const Trial trial(number, sizes);
        return failure_of(body);
    };
    const auto why = with(0);
    return why && why == with(1) ? why : std::nullopt;
}

// Sizes of which each becomes a small one of its own: what fits together still does, and what does not still does not.
std::map<int64_t, int64_t> smaller(const Tensors& tensors) {
    constexpr int64_t kKept = 4; // windows, channels
    std::map<int64_t, int64_t> sizes;
    for (const auto* tensor : tensors)
        if (tensor)
            for (const auto size : tensor->sizes)
                if (size > kKept) sizes.emplace(size, 0);
    int64_t next = kKept;
    for (auto& [_, other] : sizes) other = ++next;
    return sizes;
}

std::optional<std::string> refusal(const char* name, const Tensors& tensors, const Body& body) {
    static std::mutex mutex;
    static std::unordered_set<size_t>& tried = *new std::unordered_set<size_t>; // threads may outlive the library's objects
    const auto kind = kind_of(name, tensors);
    {
        const std::lock_guard lock(mutex);
        if (tried.contains(kind)) return std::nullopt;
    }
    // Whatever mode the calling thread is in is not the device's, and no profiler is to see this.
    const c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set,
                                                 c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    const at::DisableRecordFunctionGuard unrecorded;
    constexpr int64_t kMany = 1 << 16;
    constexpr int64_t kTooMany = 1 << 24; // a trial would take as much memory again: their errors come with the stream
    int64_t elements = 0;
    for (const auto* tensor : tensors) elements += tensor ? tensor->numel() : 0;
    if (elements <= kMany || (failure_of_trial(body, smaller(tensors)) && elements <= kTooMany))
        if (auto why = failure_of_trial(body, {})) return why;
    const std::lock_guard lock(mutex);
    tried.insert(kind);
    return std::nullopt;
}

} // namespace

void Arguments::refuse(const std::string& why) const {
    auto name = parameter_name(signature_, index_);
    if (name.empty()) name = "output"; // returned tensors have no parameter
    throw std::invalid_argument(c10::str("argument ", index_, " (", name, ") ", why));
}

TensorHandle Arguments::tensor(const aclTensor* tensor) const {
    required(tensor);
    return optional_tensor(tensor);
}

TensorHandle Arguments::optional_tensor(const aclTensor* tensor) const {
    seen_.push_back(tensor ? tensor->state.get() : nullptr);
    if (!tensor) return nullptr;
    if (auto why = validation_error(*tensor->state); !why.empty()) refuse(why);
    const auto argument = static_cast<size_t>(index_);
    const bool placeholder = tensor->state->numel() == 0; // whatever its type
    if (!placeholder && !takes(documented_, argument, tensor->state->type))
        refuse(c10::str("has type ", type_name(tensor->state->type), ", which a device does not take; it takes ",
                        names_of((*documented_)[argument])));
    return tensor->state;
}

std::vector<TensorHandle> Arguments::tensor_list(const aclTensorList* list) const {
    std::vector<TensorHandle> handles;
    for (const auto& tensor : required(list).tensors) handles.push_back(optional_tensor(tensor.get()));
    return handles;
}

ScalarType Arguments::type(aclDataType type) const {
    auto known = scalar_type(type);
    if (!known) refuse(std::string("is type ") + type_name(type) + ", which is not simulated");
    return *known;
}

Out::Out(TensorHandle state) : state_(std::move(state)), tensor_(state_ ? state_->view() : Tensor()) {}

void Out::operator=(const Tensor& result) const {
    if (!state_) return;
    TORCH_CHECK(result.defined(), "the operator computed nothing for an output that the caller wants");
    TORCH_CHECK(result.sizes() == tensor_.sizes(), "the result has shape ", result.sizes(), " but the output tensor has ",
                tensor_.sizes());
    TORCH_CHECK(widened() || c10::canCast(result.scalar_type(), tensor_.scalar_type()), "the result has type ", result.scalar_type(),
                " which does not convert to the output tensor's type ", tensor_.scalar_type());
    aten::copy_::call(const_cast<Tensor&>(tensor_), result, false);
}

void Out::shrink_to(const Tensor& result) const {
    TORCH_CHECK(state_, "the output tensor is null");
    TORCH_CHECK(result.numel() <= tensor_.numel(), "the result has ", result.numel(), " elements, the output tensor has room for ",
                tensor_.numel());
    TORCH_CHECK(result.scalar_type() == tensor_.scalar_type(), "the result has type ", result.scalar_type(),
                " but the output tensor has ", tensor_.scalar_type());
    if (on_trial()) return;
    state_->sizes.assign(result.sizes().begin(), result.sizes().end());
    state_->strides.assign(state_->sizes.size(), 1);
    for (auto i = static_cast<int64_t>(state_->sizes.size()) - 2; i >= 0; --i)
        state_->strides[i] = state_->strides[i + 1] * state_->sizes[i + 1];
    auto view = state_->view();
    aten::copy_::call(view, result, false);
}

namespace {

bool overlap(const Tensor& a, const Tensor& b) {
    const auto* first = static_cast<const char*>(a.storage().data());
    const auto* second = static_cast<const char*>(b.storage().data());
    return first < second + b.storage().nbytes() && second < first + a.storage().nbytes();
}

bool is_same(const Tensor& a, const Tensor& b) {
    return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

} // namespace

void offer_outputs(Placement& placement, const std::vector<const Tensor*>& inputs, std::initializer_list<const Out*> outputs) {
    for (const auto* output : outputs) {
        if (!*output) continue;
        const auto& tensor = output->tensor();
        const bool is_read = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
            return input->defined() && overlap(*input, tensor);
        });
        if (!is_read && tensor.is_contiguous()) placement.offer(tensor.data_ptr(), tensor.nbytes());
    }
}

void settle(std::initializer_list<const Out*> outputs, std::initializer_list<Tensor*> results) {
    const auto settled = [](const Out& output, const Tensor& result) {
        return output && result.defined() && is_same(output.tensor(), result);
    };
    auto output = outputs.begin();
    for (auto* result : results) {
        const auto& own = **output++;
        if (!result->defined() || settled(own, *result)) continue;
        // Before any output is written: it may be the memory of another result.
        for (const auto* each : outputs)
            if (*each && overlap(*result, each->tensor())) *result = result->clone();
    }
    output = outputs.begin();
    for (auto* result : results) {
        const auto& own = **output++;
        if (!settled(own, *result)) own = *result;
    }
}

aclError prepare(const char* name, const char* signature, uint64_t* workspace, aclOpExecutor** executor,
                 const std::function<Body(Arguments&)>& build) {
    const Named named(name);
    if (!workspace || !executor) return fail(kNullArgument, "workspace size and executor must not be null");
    try {
        Arguments call(name, signature);
        auto made = std::make_unique<aclOpExecutor>();
        made->name = name;
        made->pending.emplace(); // before the arguments are checked
        made->body = build(call);
        const auto& tensors = call.tensors();
        if (std::any_of(tensors.begin(), tensors.end(), is_low) && is_composite(signature)) {
            made->body = rounded_once(std::move(made->body));
        } else if (call.documented()) {
            made->body = in_every_documented_type(std::move(made->body));
        }
        if (const auto why = refusal(name, tensors, made->body)) return fail(kWrongArgument, "%s", why->c_str());
        *executor = made.release();
        *workspace = 0;
        return ACL_SUCCESS;
    } catch (const c10::Error& error) {
        return fail(kWrongArgument, "%s", error.what_without_backtrace());
    } catch (const std::exception& error) {
        return fail(kWrongArgument, "%s", error.what());
    }
}

aclError launch(aclOpExecutor* executor, aclrtStream stream) {
    if (!executor) return fail(kNullArgument, "an operator was launched without an executor");
    const Named named(executor->name); // of the legacy path: the operator's, not the entry point's
    const std::unique_ptr<aclOpExecutor> ours(executor->repeatable ? nullptr : executor); // goes when the task is queued
    return enqueue(stream, [body = ours ? std::move(executor->body) : executor->body] { return run(body); });
}

} // namespace simnpu

using namespace simnpu;

// A repeatable executor may be launched several times; its owner destroys it.
SIMNPU_EXPORT aclError aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
    SIMNPU_CALL("aclSetAclOpExecutorRepeatable");
    if (!executor) return is_null("the executor", kNullArgument);
    executor->repeatable = true;
    executor->pending.reset();
    return ACL_SUCCESS;
}

SIMNPU_EXPORT aclError aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    SIMNPU_CALL("aclDestroyAclOpExecutor");
    delete executor;
    return ACL_SUCCESS;
}
