// How an operator is defined. One line gives both C entry points of an aclnn operator; the C signature follows from the C++ one:
//
//     ATEN(Abs, abs)                  aclnnAbs = at::abs: the schema's arguments in order, one output per returned tensor
//     ATEN_INPLACE(Abs, abs_)         aclnnInplaceAbs = at::abs_: the first argument is written
//     ATEN_BOTH(Abs, abs)             the two lines above
//     OPERATOR(Mm, [](const Tensor& a, const Tensor& b, Out out, int8_t) { into<aten::mm>(out, a, b); })
//     COMPOSITE(L1LossBackward, [](…) { … })    an OPERATOR of several steps
//
// In a lambda, parameters stand for C arguments: Tensor, Scalar, IntArrayRef, TensorList, std::array<bool, N>, ScalarType,
// std::string_view and numbers; std::optional<…> where the caller may pass null; Out for a tensor that is written. Tensors that
// the lambda returns are further outputs after its last parameter. A definition runs on the stream's worker, below autograd.
// What takes several steps, here or in ATen, reads half and bfloat16 in float and rounds once, as a device's kernel does.
// It throws (TORCH_CHECK) for a combination of arguments that it does not cover: never a silently wrong number.
#pragma once

#include "objects.h"
#include "placement.h"
#include "types.h"

#include <simnpu/core.h>

#include <ATen/Operators.h>
#include <ATen/core/IListRef.h>

#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

struct aclOpExecutor;

namespace simnpu {

namespace aten = at::_ops;
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using at::TensorList;

// Why a tensor cannot be used, or nothing.
std::string validation_error(const TensorState& state);

// A tensor that an operator writes. Absent (null) outputs swallow what is assigned: callers mask outputs that way.
class Out {
public:
    explicit Out(TensorHandle state);
    // Copies `result`, which must have the output's shape and a type that converts to the output's without loss of kind.
    void operator=(const Tensor& result) const;
    // For outputs whose shape depends on the data: the memory is an upper bound, the caller reads the shape afterwards.
    void shrink_to(const Tensor& result) const;
    // The memory itself; undefined when absent.
    const Tensor& tensor() const { return tensor_; }
    ScalarType dtype() const { return tensor_.scalar_type(); }
    explicit operator bool() const { return tensor_.defined(); }

private:
    TensorHandle state_;
    Tensor tensor_;
};

// Reads the arguments of one call in order; knows what to call them in messages.
class Arguments {
public:
    Arguments(const char* name, const char* signature) : signature_(signature), documented_(documented_types(name)) {}
    void next() { ++index_; }
    TensorHandle tensor(const aclTensor* tensor) const; // throws if null
    TensorHandle optional_tensor(const aclTensor* tensor) const;
    std::vector<TensorHandle> tensor_list(const aclTensorList* list) const;
    ScalarType type(aclDataType type) const;
    // What distinguishes kinds of calls of one operator: types and shapes.
    const std::vector<const TensorState*>& tensors() const { return seen_; }
    bool documented() const { return documented_ != nullptr; }
    template <class T>
    const T& required(const T* pointer) const {
        if (!pointer) refuse("is null");
        return *pointer;
    }
    [[noreturn]] void refuse(const std::string& why) const;

private:
    const char* signature_;
    const DocumentedTypes* documented_;
    int index_ = -1;
    mutable std::vector<const TensorState*> seen_; // null: absent
};

// How parameter type P is passed in C (C), what the queued operator keeps of it (hold) and what the definition gets (give).
template <class P>
struct Argument;

template <class P>
    requires std::is_arithmetic_v<P>
struct Argument<P> {
    using C = P;
    static P hold(Arguments&, P value) { return value; }
    static P give(P value) { return value; }
};

// Numbers are never null in C: the schema's optional number is always given.
template <class P>
    requires std::is_arithmetic_v<P>
struct Argument<std::optional<P>> : Argument<P> {};

template <>
struct Argument<Tensor> {
    using C = const aclTensor*;
    static TensorHandle hold(Arguments& call, C value) { return call.tensor(value); }
    static Tensor give(const TensorHandle& held) { return held->read(); }
};

template <>
struct Argument<std::optional<Tensor>> {
    using C = const aclTensor*;
    static TensorHandle hold(Arguments& call, C value) { return call.optional_tensor(value); }
    static std::optional<Tensor> give(const TensorHandle& held) { return held ? std::optional(held->read()) : std::nullopt; }
};

template <>
struct Argument<Out> {
    using C = const aclTensor*;
    static TensorHandle hold(Arguments& call, C value) { return call.optional_tensor(value); }
    static Out give(const TensorHandle& held) { return Out(held); }
};

template <>
struct Argument<Scalar> {
    using C = const aclScalar*;
    static Scalar hold(Arguments& call, C value) { return call.required(value).value; }
    static const Scalar& give(const Scalar& held) { return held; }
};

template <>
struct Argument<std::optional<Scalar>> {
    using C = const aclScalar*;
    static std::optional<Scalar> hold(Arguments&, C value) { return value ? std::optional(value->value) : std::nullopt; }
    static std::optional<Scalar> give(const std::optional<Scalar>& held) { return held; }
};

template <>
struct Argument<IntArrayRef> {
    using C = const aclIntArray*;
    static std::vector<int64_t> hold(Arguments& call, C value) { return call.required(value).values; }
    static IntArrayRef give(const std::vector<int64_t>& held) { return held; }
};

template <>
struct Argument<c10::SymIntArrayRef> : Argument<IntArrayRef> {
    static c10::SymIntArrayRef give(const std::vector<int64_t>& held) { return c10::fromIntArrayRefSlow(held); }
};

template <>
struct Argument<at::OptionalIntArrayRef> {
    using C = const aclIntArray*;
    using Held = std::optional<std::vector<int64_t>>;
    static Held hold(Arguments&, C value) { return value ? Held(value->values) : Held(); }
    static at::OptionalIntArrayRef give(const Held& held) {
        return held ? at::OptionalIntArrayRef(*held) : at::OptionalIntArrayRef();
    }
};

template <>
struct Argument<at::OptionalSymIntArrayRef> : Argument<at::OptionalIntArrayRef> {
    static at::OptionalSymIntArrayRef give(const Held& held) {
        return held ? at::OptionalSymIntArrayRef(c10::fromIntArrayRefSlow(*held)) : at::OptionalSymIntArrayRef();
    }
};

template <>
struct Argument<at::ArrayRef<double>> {
    using C = const aclFloatArray*;
    static std::vector<double> hold(Arguments& call, C value) {
        const auto& values = call.required(value).values;
        return {values.begin(), values.end()};
    }
    static at::ArrayRef<double> give(const std::vector<double>& held) { return held; }
};

template <size_t N>
struct Argument<std::array<bool, N>> {
    using C = const aclBoolArray*;
    static std::array<bool, N> hold(Arguments& call, C value) {
        const auto& values = call.required(value).values;
        if (values.size() != N) call.refuse("must hold " + std::to_string(N) + " flags");
        std::array<bool, N> flags;
        std::copy(values.begin(), values.end(), flags.begin());
        return flags;
    }
    static std::array<bool, N> give(const std::array<bool, N>& held) { return held; }
};

template <>
struct Argument<TensorList> {
    using C = const aclTensorList*;
    static std::vector<TensorHandle> hold(Arguments& call, C value) { return call.tensor_list(value); }
    static std::vector<Tensor> give(const std::vector<TensorHandle>& held) {
        std::vector<Tensor> tensors;
        for (const auto& handle : held) tensors.push_back(handle ? handle->read() : Tensor());
        return tensors;
    }
};

template <>
struct Argument<at::ITensorListRef> : Argument<TensorList> {};

template <>
struct Argument<std::vector<Out>> : Argument<TensorList> {
    static std::vector<Out> give(const std::vector<TensorHandle>& held) { return {held.begin(), held.end()}; }
};

template <>
struct Argument<at::ArrayRef<Scalar>> {
    using C = const aclScalarList*;
    static std::vector<Scalar> hold(Arguments& call, C value) {
        std::vector<Scalar> scalars;
        for (const auto& scalar : call.required(value).scalars) scalars.push_back(call.required(scalar.get()).value);
        return scalars;
    }
    static at::ArrayRef<Scalar> give(const std::vector<Scalar>& held) { return held; }
};

template <>
struct Argument<c10::SymInt> {
    using C = int64_t;
    static int64_t hold(Arguments&, C value) { return value; }
    static c10::SymInt give(int64_t held) { return held; }
};

template <>
struct Argument<ScalarType> {
    using C = aclDataType;
    static ScalarType hold(Arguments& call, C value) { return call.type(value); }
    static ScalarType give(ScalarType held) { return held; }
};

template <>
struct Argument<std::optional<ScalarType>> : Argument<ScalarType> {};

template <>
struct Argument<std::string_view> {
    using C = const char*;
    static std::string hold(Arguments& call, C value) { return &call.required(value); }
    static std::string_view give(const std::string& held) { return held; }
};

// The part of an entry point that is the same for all operators: runs `build` to read the arguments, makes the executor.
using Body = std::function<void()>;
aclError prepare(const char* name, const char* signature, uint64_t* workspace, aclOpExecutor** executor,
                 const std::function<Body(Arguments&)>& build);
aclError launch(aclOpExecutor* executor, aclrtStream stream);

// Lets ATen make its results in the memory of the outputs, of those at least that are not read as well.
void offer_outputs(Placement& placement, const std::vector<const Tensor*>& inputs, std::initializer_list<const Out*> outputs);

// Copies each result to its output, unless it was made there.
void settle(std::initializer_list<const Out*> outputs, std::initializer_list<Tensor*> results);

inline void collect(std::vector<const Tensor*>& found, const Tensor& tensor) { found.push_back(&tensor); }
inline void collect(std::vector<const Tensor*>& found, const std::optional<Tensor>& tensor) {
    if (tensor) found.push_back(&*tensor);
}
inline void collect(std::vector<const Tensor*>& found, const std::vector<Tensor>& tensors) {
    for (const auto& tensor : tensors) found.push_back(&tensor);
}
template <class T>
void collect(std::vector<const Tensor*>&, const T&) {}

// out = aten::mm::call(a, b), mostly without the copy: into<aten::mm>(out, a, b).
template <class Operator, class... A>
void into(const Out& out, const A&... arguments) {
    Placement placement;
    std::vector<const Tensor*> inputs;
    (collect(inputs, arguments), ...);
    offer_outputs(placement, inputs, {&out});
    auto result = Operator::call(arguments...);
    settle({&out}, {&result});
}

template <class R>
struct Returned { // void, or a reference to an argument that was written in place
    static_assert(std::is_void_v<R> || std::is_reference_v<R>);
    static constexpr size_t count = 0;
};
template <>
struct Returned<Tensor> {
    static constexpr size_t count = 1;
};
template <class... T>
    requires(std::is_same_v<T, Tensor> && ...)
struct Returned<std::tuple<T...>> {
    static constexpr size_t count = sizeof...(T);
};

template <class Function>
struct Signature : Signature<decltype(&Function::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
    static constexpr std::array<bool, sizeof...(P)> writes{std::is_same_v<P, Tensor&>...}; // in place
    using Parameters = std::tuple<std::decay_t<P>...>;
    using Outputs = std::make_index_sequence<Returned<R>::count>;
};
template <class F, class R, class... P>
struct Signature<R (F::*)(P...) const> : Signature<R (*)(P...)> {};

// What depends on the type of the definition's function alone: operators of one ATen signature share it.
template <class Function, class Parameters = typename Signature<Function>::Parameters,
          class Outputs = typename Signature<Function>::Outputs>
struct Invocation;

template <class Function, class... P, size_t... I>
struct Invocation<Function, std::tuple<P...>, std::index_sequence<I...>> {
    template <size_t>
    using Output = const aclTensor*;
    using Results = std::array<TensorHandle, sizeof...(I)>;

    static aclError prepare(const char* name, const char* signature, Function function, typename Argument<P>::C... arguments,
                            Output<I>... outputs, uint64_t* workspace, aclOpExecutor** executor) {
        return simnpu::prepare(name, signature, workspace, executor, [&](Arguments& call) -> Body {
            // Braces: initialisers run from left to right, which is how `call` knows the argument's name.
            std::tuple held{(call.next(), Argument<P>::hold(call, arguments))...};
            Results results{(call.next(), call.optional_tensor(outputs))...};
            return [function, held = std::move(held), results = std::move(results)] { run(function, held, results); };
        });
    }

private:
    // What was written in place in another type than the memory's.
    template <size_t... N>
    static void write_back(const auto& held, const auto& given, std::index_sequence<N...>) {
        if (!widened() || on_trial()) return;
        const auto each = [](const auto& handle, const auto& tensor) {
            if constexpr (std::is_same_v<std::decay_t<decltype(tensor)>, Tensor>) {
                auto own = handle->view();
                if (own.scalar_type() != tensor.scalar_type()) aten::copy_::call(own, tensor, false);
            }
        };
        ((Signature<Function>::writes[N] ? each(std::get<N>(held), std::get<N>(given)) : void()), ...);
    }

    static void run(Function function, const auto& held, const Results& results) {
        auto given = std::apply([](const auto&... h) { return std::tuple{Argument<P>::give(h)...}; }, held);
        if constexpr (sizeof...(I) == 0) {
            std::apply(function, given);
            write_back(held, given, std::index_sequence_for<P...>());
        } else {
            const std::array<Out, sizeof...(I)> outputs{Out{results[I]}...};
            Placement placement;
            std::vector<const Tensor*> inputs;
            std::apply([&](const auto&... g) { (collect(inputs, g), ...); }, given);
            offer_outputs(placement, inputs, {&outputs[I]...});
            if constexpr (sizeof...(I) == 1) {
                auto returned = std::apply(function, given);
                settle({&outputs[0]}, {&returned});
            } else {
                auto returned = std::apply(function, given);
                settle({&outputs[I]...}, {&std::get<I>(returned)...});
            }
        }
    }
};

template <class Definition, class Function = std::decay_t<decltype(Definition::function)>,
          class Parameters = typename Signature<Function>::Parameters, class Outputs = typename Signature<Function>::Outputs>
struct EntryPoints;

template <class Definition, class Function, class... P, size_t... I>
struct EntryPoints<Definition, Function, std::tuple<P...>, std::index_sequence<I...>> {
    template <size_t>
    using Output = const aclTensor*;

    static aclError get_workspace_size(typename Argument<P>::C... arguments, Output<I>... outputs, uint64_t* workspace,
                                       aclOpExecutor** executor) {
        SIMNPU_CALL(Definition::first_name);
        return Invocation<Function>::prepare(Definition::name, Definition::signature, Definition::function, arguments...,
                                             outputs..., workspace, executor);
    }

    static aclError execute(void*, uint64_t, aclOpExecutor* executor, aclrtStream stream) {
        SIMNPU_CALL(Definition::name, "stream=%p", stream);
        return launch(executor, stream);
    }
};

} // namespace simnpu

// The entry points' C signatures are deduced, so they cannot be written down as declarations: each exported symbol is an
// indirect function, which the loader resolves to the deduced one.
#define SIMNPU_SYMBOL(symbol, function)                                                                                        \
    extern "C" [[gnu::visibility("hidden")]] auto simnpu_resolve_##symbol()->void (*)() {                                      \
        return reinterpret_cast<void (*)()>(&function);                                                                        \
    }                                                                                                                          \
    extern "C" [[gnu::visibility("default"), gnu::ifunc("simnpu_resolve_" #symbol)]] void symbol();

#define SIMNPU_ENTRY_POINTS(SYMBOL, SIGNATURE, ...)                                                                            \
    namespace simnpu {                                                                                                         \
    namespace {                                                                                                                \
    struct SYMBOL##Definition {                                                                                                \
        static constexpr const char* name = #SYMBOL;                                                                           \
        static constexpr const char* first_name = #SYMBOL "GetWorkspaceSize";                                                  \
        static constexpr const char* signature = SIGNATURE;                                                                    \
        static constexpr auto function = __VA_ARGS__;                                                                          \
    };                                                                                                                         \
    }                                                                                                                          \
    }                                                                                                                          \
    SIMNPU_SYMBOL(SYMBOL##GetWorkspaceSize, simnpu::EntryPoints<simnpu::SYMBOL##Definition>::get_workspace_size)               \
    SIMNPU_SYMBOL(SYMBOL, simnpu::EntryPoints<simnpu::SYMBOL##Definition>::execute)

#define SIMNPU_OPERATOR(NAME, SIGNATURE, ...) SIMNPU_ENTRY_POINTS(aclnn##NAME, SIGNATURE, __VA_ARGS__)
#define OPERATOR(NAME, ...) SIMNPU_OPERATOR(NAME, #__VA_ARGS__, __VA_ARGS__)
#define COMPOSITE(NAME, ...) SIMNPU_OPERATOR(NAME, "composite " #__VA_ARGS__, __VA_ARGS__)
#define ATEN(NAME, ATEN_NAME) SIMNPU_OPERATOR(NAME, at::_ops::ATEN_NAME::schema_str, &at::_ops::ATEN_NAME::call)
#define ATEN_INPLACE(NAME, ATEN_NAME) ATEN(Inplace##NAME, ATEN_NAME)
#define ATEN_BOTH(NAME, ATEN_NAME) ATEN(NAME, ATEN_NAME) ATEN_INPLACE(NAME, ATEN_NAME##_)
