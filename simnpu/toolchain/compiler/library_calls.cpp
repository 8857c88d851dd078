// The adapter leaves some operations on whole tensors to the device's library, as calls of external functions. They are expanded
// where they are called, into loops over buffers.
#include "kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace simnpu {

namespace {

// One call and what its expansion is built from.
struct Expansion {
    func::CallOp call;
    OpBuilder builder;
    Location loc;

    explicit Expansion(func::CallOp call) : call(call), builder(call), loc(call.getLoc()) {}

    RankedTensorType type(unsigned operand) { return cast<RankedTensorType>(call.getOperand(operand).getType()); }

    // The constant that an operand is; nothing, and an error, if it is known at run time only.
    std::optional<int64_t> constant(unsigned operand) {
        APInt value;
        if (matchPattern(call.getOperand(operand), m_ConstantInt(&value))) return value.getSExtValue();
        call.emitError("a dimension or direction known at run time only is not simulated");
        return std::nullopt;
    }

    Value index(int64_t value) { return builder.create<arith::ConstantIndexOp>(loc, value); }

    Value buffer_of(unsigned operand) {
        const auto shape = type(operand);
        return builder.create<bufferization::ToMemrefOp>(loc, MemRefType::get(shape.getShape(), shape.getElementType()), call.getOperand(operand),
                                                         /*read_only=*/true);
    }

    Value new_buffer() {
        const auto shape = cast<RankedTensorType>(call.getResult(0).getType());
        return builder.create<memref::AllocOp>(loc, MemRefType::get(shape.getShape(), shape.getElementType()));
    }

    // Loops over `shape` with the builder inside, from `begin` along `dimension`.
    void over(ArrayRef<int64_t> shape, llvm::function_ref<void(OpBuilder&, SmallVector<Value>)> body) {
        SmallVector<Value> lower(shape.size(), index(0)), upper, step(shape.size(), index(1));
        for (const int64_t extent : shape) upper.push_back(index(extent));
        scf::buildLoopNest(builder, loc, lower, upper, step, [&](OpBuilder& inside, Location, ValueRange at) {
            body(inside, SmallVector<Value>(at.begin(), at.end()));
        });
    }

    void replace(Value buffer) {
        call.replaceAllUsesWith(ValueRange{builder.create<bufferization::ToTensorOp>(loc, buffer, /*restrict=*/true, /*writable=*/true)});
        call.erase();
    }
};

bool check_dimension(Expansion& expand, int64_t dimension) {
    if (!expand.type(0).hasStaticShape()) return expand.call.emitError("a shape known at run time only is not simulated"), false;
    if (dimension >= 0 && dimension < expand.type(0).getRank()) return true;
    return expand.call.emitError("dimension ") << dimension << " is none of the tensor's", false;
}

// triton_cumsum(tensor, dimension, reverse), triton_cumprod: each element combined with what came before it.
bool expand_scan(func::CallOp call, bool product) {
    Expansion expand(call);
    const auto dimension = expand.constant(1), reverse = expand.constant(2);
    if (!dimension || !reverse || !check_dimension(expand, *dimension)) return false;
    const Value input = expand.buffer_of(0), output = expand.new_buffer();
    const auto shape = expand.type(0).getShape();
    const int64_t extent = shape[*dimension];
    SmallVector<int64_t> first(shape), rest(shape);
    first[*dimension] = 1;
    rest[*dimension] = extent - 1;
    const Location loc = expand.loc;
    expand.over(first, [&](OpBuilder& b, SmallVector<Value> at) {
        at[*dimension] = b.create<arith::ConstantIndexOp>(loc, *reverse ? extent - 1 : 0);
        b.create<memref::StoreOp>(loc, b.create<memref::LoadOp>(loc, input, at), output, at);
    });
    // The scanned dimension outermost: each step needs the whole step before.
    std::rotate(rest.begin(), rest.begin() + *dimension, rest.begin() + *dimension + 1);
    expand.over(rest, [&](OpBuilder& b, SmallVector<Value> at) {
        std::rotate(at.begin(), at.begin() + 1, at.begin() + *dimension + 1);
        const Value step = at[*dimension];
        const Value one = b.create<arith::ConstantIndexOp>(loc, 1);
        SmallVector<Value> before(at);
        if (*reverse) {
            const Value last = b.create<arith::ConstantIndexOp>(loc, extent - 1);
            before[*dimension] = b.create<arith::SubIOp>(loc, last, step);
            at[*dimension] = b.create<arith::SubIOp>(loc, before[*dimension], one);
        } else {
            at[*dimension] = b.create<arith::AddIOp>(loc, step, one);
        }
        const Value so_far = b.create<memref::LoadOp>(loc, output, before), next = b.create<memref::LoadOp>(loc, input, at);
        const bool real = isa<FloatType>(next.getType());
        Value combined;
        if (product)
            combined = real ? b.create<arith::MulFOp>(loc, so_far, next).getResult() : b.create<arith::MulIOp>(loc, so_far, next).getResult();
        else
            combined = real ? b.create<arith::AddFOp>(loc, so_far, next).getResult() : b.create<arith::AddIOp>(loc, so_far, next).getResult();
        b.create<memref::StoreOp>(loc, combined, output, at);
    });
    expand.replace(output);
    return true;
}

// triton_flip(tensor, dimension)
bool expand_flip(func::CallOp call) {
    Expansion expand(call);
    const auto dimension = expand.constant(1);
    if (!dimension || !check_dimension(expand, *dimension)) return false;
    const Value input = expand.buffer_of(0), output = expand.new_buffer();
    const auto shape = expand.type(0).getShape();
    expand.over(shape, [&](OpBuilder& b, SmallVector<Value> at) {
        SmallVector<Value> from(at);
        from[*dimension] = b.create<arith::SubIOp>(expand.loc, b.create<arith::ConstantIndexOp>(expand.loc, shape[*dimension] - 1), at[*dimension]);
        b.create<memref::StoreOp>(expand.loc, b.create<memref::LoadOp>(expand.loc, input, from), output, at);
    });
    expand.replace(output);
    return true;
}

// triton_gather(source, index, dimension)
bool expand_gather(func::CallOp call) {
    Expansion expand(call);
    const auto dimension = expand.constant(2);
    if (!dimension || !check_dimension(expand, *dimension)) return false;
    const Value source = expand.buffer_of(0), index = expand.buffer_of(1), output = expand.new_buffer();
    expand.over(expand.type(1).getShape(), [&](OpBuilder& b, SmallVector<Value> at) {
        SmallVector<Value> from(at);
        from[*dimension] = b.create<arith::IndexCastOp>(expand.loc, b.getIndexType(), b.create<memref::LoadOp>(expand.loc, index, at));
        b.create<memref::StoreOp>(expand.loc, b.create<memref::LoadOp>(expand.loc, source, from), output, at);
    });
    expand.replace(output);
    return true;
}

// triton_sort(tensor, dimension, descending): each row by support.cpp.
bool expand_sort(func::CallOp call) {
    Expansion expand(call);
    const auto dimension = expand.constant(1), descending = expand.constant(2);
    if (!dimension || !descending || !check_dimension(expand, *dimension)) return false;
    const auto type = expand.type(0);
    std::string suffix;
    llvm::raw_string_ostream(suffix) << type.getElementType();
    const Value input = expand.buffer_of(0), output = expand.new_buffer();
    OpBuilder& builder = expand.builder;
    const Location loc = expand.loc;
    builder.create<memref::CopyOp>(loc, input, output);
    const auto row = MemRefType::get({type.getDimSize(*dimension)}, type.getElementType(),
                                     StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {ShapedType::kDynamic}));
    const std::string name = "simnpu_sort_" + suffix;
    auto module = call->getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(name)) {
        auto function = OpBuilder::atBlockBegin(module.getBody())
                            .create<func::FuncOp>(loc, name, builder.getFunctionType({row, builder.getI32Type()}, {}));
        function.setPrivate();
    }
    SmallVector<int64_t> others(type.getShape());
    others[*dimension] = 1;
    expand.over(others, [&](OpBuilder& b, SmallVector<Value> at) {
        SmallVector<OpFoldResult> offsets(at.begin(), at.end()), sizes(at.size(), b.getIndexAttr(1)), strides(at.size(), b.getIndexAttr(1));
        sizes[*dimension] = b.getIndexAttr(type.getDimSize(*dimension));
        auto part = cast<MemRefType>(
            memref::SubViewOp::inferRankReducedResultType({type.getDimSize(*dimension)}, cast<MemRefType>(output.getType()), offsets, sizes, strides));
        Value view = b.create<memref::SubViewOp>(loc, part, output, offsets, sizes, strides);
        view = b.create<memref::CastOp>(loc, row, view);
        const Value direction = b.create<arith::ConstantIntOp>(loc, *descending ? 1 : 0, 32);
        b.create<func::CallOp>(loc, name, TypeRange{}, ValueRange{view, direction});
    });
    expand.replace(output);
    return true;
}

// --- functions of one element ---

// A function of support.cpp that takes and gives `type`, for narrower numbers too.
Value call_support(OpBuilder& b, func::CallOp call, StringRef name, Type type) {
    auto module = call->getParentOfType<ModuleOp>();
    SmallVector<Type> types(call.getNumOperands(), type);
    if (!module.lookupSymbol(name))
        OpBuilder::atBlockBegin(module.getBody()).create<func::FuncOp>(call.getLoc(), name, b.getFunctionType(types, {type})).setPrivate();
    SmallVector<Value> wide;
    for (Value operand : call.getOperands()) {
        if (operand.getType() == type)
            wide.push_back(operand);
        else if (isa<FloatType>(type))
            wide.push_back(b.create<arith::ExtFOp>(call.getLoc(), type, operand));
        else
            wide.push_back(b.create<arith::ExtSIOp>(call.getLoc(), type, operand));
    }
    const Value result = b.create<func::CallOp>(call.getLoc(), name, type, wide).getResult(0);
    const Type wanted = call.getResult(0).getType();
    if (wanted == type) return result;
    if (isa<FloatType>(type)) return b.create<arith::TruncFOp>(call.getLoc(), wanted, result);
    return b.create<arith::TruncIOp>(call.getLoc(), wanted, result);
}

// One call of such a function.
struct Math {
    func::CallOp call;
    OpBuilder b;
    Location loc;
    Value x, y; // y is null where there is but one operand

    explicit Math(func::CallOp call)
        : call(call), b(call), loc(call.getLoc()), x(call.getOperand(0)), y(call.getNumOperands() > 1 ? call.getOperand(1) : Value()) {}

    Value constant(double value) { return b.create<arith::ConstantOp>(loc, b.getFloatAttr(x.getType(), value)); }
};

template <typename Op> Value of_x(Math& m) {
    return m.b.create<Op>(m.loc, m.x);
}

Value is_nan(Math& m) {
    return m.b.create<arith::CmpFOp>(m.loc, arith::CmpFPredicate::UNO, m.x, m.x);
}

Value is_infinite(Math& m) {
    const Value size = m.b.create<math::AbsFOp>(m.loc, m.x);
    return m.b.create<arith::CmpFOp>(m.loc, arith::CmpFPredicate::OEQ, size, m.constant(INFINITY));
}

using Function = Value (*)(Math&);

// By name, without prefix and suffix.
const llvm::StringMap<Function>& functions() {
    static const llvm::StringMap<Function> all{
        {"atan", of_x<math::AtanOp>},
        {"ilogb", [](Math& m) { return call_support(m.b, m.call, "simnpu_ilogb", m.b.getF32Type()); }},
        {"isinf", is_infinite},
        {"isnan", is_nan},
        {"ldexp", [](Math& m) { return call_support(m.b, m.call, "simnpu_ldexp", m.b.getF32Type()); }},
        // Upstream's expansion log(1 + x) loses small x.
        {"log1p", [](Math& m) { return call_support(m.b, m.call, "simnpu_log1p", m.b.getF32Type()); }},
        {"pow", [](Math& m) -> Value { return m.b.create<math::PowFOp>(m.loc, m.x, m.y); }},
        {"powi", [](Math& m) { return call_support(m.b, m.call, "simnpu_powi", m.b.getI64Type()); }},
        {"recip", [](Math& m) -> Value { return m.b.create<arith::DivFOp>(m.loc, m.constant(1), m.x); }},
        {"relu", [](Math& m) -> Value { return m.b.create<arith::MaximumFOp>(m.loc, m.x, m.constant(0)); }},
        {"round", of_x<math::RoundOp>},
        {"tan", of_x<math::TanOp>},
        {"tanh", of_x<math::TanhOp>},
    };
    return all;
}

bool refuse_call(func::CallOp call, const Twine& what = "") {
    return call.emitError("the library function ") << call.getCallee() << what << " is not simulated", false;
}

// __hmf_NAME with a suffix for the type: f, Dh, or none.
bool expand_math(func::CallOp call) {
    StringRef name = call.getCallee().drop_front(StringRef("__hmf_").size());
    // isinf ends in f by itself.
    if (!name.consume_back("Dh") && name != "isinf") name.consume_back("f");
    const auto known = functions().find(name);
    if (known == functions().end()) return refuse_call(call);
    Math m(call);
    const Value result = known->second(m);
    if (result.getType() != call.getResult(0).getType()) return refuse_call(call, " of these types");
    call.replaceAllUsesWith(ValueRange{result});
    call.erase();
    return true;
}

// triton_print: a device prints only where its launcher collects it, which needs a part of CANN that is not simulated.
bool expand_print(func::CallOp call) {
    call.erase();
    return true;
}

using Call = bool (*)(func::CallOp);

// By name, without the prefix triton_ and what follows the first _ or digit behind it.
const llvm::StringMap<Call>& tensor_calls() {
    static const llvm::StringMap<Call> all{
        {"cumprod", [](func::CallOp call) { return expand_scan(call, /*product=*/true); }},
        {"cumsum", [](func::CallOp call) { return expand_scan(call, /*product=*/false); }},
        {"flip", expand_flip},
        {"gather", expand_gather},
        {"print", expand_print},
        {"sort", expand_sort},
    };
    return all;
}

Call expansion_of(StringRef callee) {
    if (callee.starts_with("__hmf_")) return expand_math;
    if (!callee.consume_front("triton_")) return nullptr;
    return tensor_calls().lookup(callee.take_until([](char c) { return c == '_' || llvm::isDigit(c); }));
}

} // namespace

bool expand_library_calls(ModuleOp module) {
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) { calls.push_back(call); });
    bool good = true;
    for (auto call : calls) {
        const Call expand = expansion_of(call.getCallee());
        good = (expand ? expand(call) : refuse_call(call)) && good;
    }
    if (!good) return false;
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
        if (function.isDeclaration() && !function.getName().starts_with("simnpu_")) function.erase();
    return true;
}

} // namespace simnpu
