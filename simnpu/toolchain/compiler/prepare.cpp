// From the adapter's MLIR to upstream MLIR without holes: what the adapter means differently is rewritten.
#include "kernel.h"

#include "simnpu/kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace simnpu {

namespace {

constexpr unsigned kGridArguments = 3;
constexpr unsigned kProgramIds = 3;

func::FuncOp kernel_of(ModuleOp module) {
    func::FuncOp found;
    for (auto function : module.getOps<func::FuncOp>()) {
        if (function.isDeclaration()) continue;
        if (found) return nullptr;
        found = function;
    }
    return found;
}

bool is_without_value(Value tensor) {
    Operation* source = tensor.getDefiningOp();
    if (auto made = dyn_cast_or_null<bufferization::AllocTensorOp>(source)) return !made.getCopy();
    return isa_and_nonnull<tensor::EmptyOp>(source);
}

// Part of a tensor along one dimension, from `begin` for `length`; without that dimension if `drop`.
Value slice(OpBuilder& builder, Location loc, Value tensor, int64_t dimension, int64_t begin, int64_t length, bool drop) {
    const auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), strides(type.getRank(), builder.getIndexAttr(1)), sizes;
    SmallVector<int64_t> shape;
    for (int64_t i = 0; i < type.getRank(); ++i) {
        const int64_t extent = i == dimension ? length : type.getDimSize(i);
        sizes.push_back(builder.getIndexAttr(extent));
        if (i != dimension || !drop) shape.push_back(extent);
    }
    offsets[dimension] = builder.getIndexAttr(begin);
    const auto result = RankedTensorType::get(shape, type.getElementType());
    return builder.create<tensor::ExtractSliceOp>(loc, result, tensor, offsets, sizes, strides);
}

// The start of a maximum with its index is a value that no element may have; the adapter's is the smallest number and index -1, which
// stands if no element is larger. The device takes the first element.
bool starts_anyhow(linalg::ReduceOp reduce) {
    const auto mode = reduce->getAttrOfType<StringAttr>("reduce_mode");
    return mode && mode.getValue().ends_with("_with_index");
}

// For combiners of its own making a kernel has no neutral element, and the adapter gives a tensor without value as the start: it
// means that the first element is the start. It also names the operands of the combiner the wrong way round.
bool start_from_first(linalg::ReduceOp reduce) {
    const bool custom = llvm::any_of(reduce.getInits(), is_without_value);
    if (!custom && !starts_anyhow(reduce)) return true;
    if (custom && !llvm::all_of(reduce.getInits(), is_without_value))
        return reduce.emitError("some starts have a value and some have none, which is not simulated"), false;
    if (reduce.getDimensions().size() != 1)
        return reduce.emitError("a combiner without neutral element over several dimensions is not simulated"), false;
    const int64_t dimension = reduce.getDimensions()[0];
    for (Value input : reduce.getInputs())
        if (!cast<ShapedType>(input.getType()).hasStaticShape()) return reduce.emitError("a shape known at run time only is not simulated"), false;
    const int64_t extent = cast<ShapedType>(reduce.getInputs()[0].getType()).getDimSize(dimension);
    OpBuilder builder(reduce);
    SmallVector<Value> first, rest;
    for (Value input : reduce.getInputs()) {
        first.push_back(slice(builder, reduce.getLoc(), input, dimension, 0, 1, true));
        if (extent > 1) rest.push_back(slice(builder, reduce.getLoc(), input, dimension, 1, extent - 1, false));
    }
    if (extent == 1) {
        reduce->replaceAllUsesWith(first);
        reduce.erase();
        return true;
    }
    reduce.getInputsMutable().assign(rest);
    reduce.getInitsMutable().assign(first);
    if (!custom) return true;
    // (new, so far) becomes (so far, new): what the kernel wrote, which may be associative without being commutative.
    Block& combiner = reduce.getCombiner().front();
    const unsigned count = reduce.getInputs().size();
    for (unsigned i = 0; i < count; ++i) {
        BlockArgument in = combiner.getArgument(i), so_far = combiner.getArgument(count + i);
        SmallVector<OpOperand*> uses_of_in;
        for (OpOperand& use : in.getUses()) uses_of_in.push_back(&use);
        so_far.replaceAllUsesWith(in);
        for (OpOperand* use : uses_of_in) use->set(so_far);
    }
    return true;
}

// An atomic compare-and-swap whose old value the kernel wants is followed by a copy of the place, which would read the new one. A load of
// the same place right behind a swap looks no different; such a kernel gets the old value.
void read_before_swap(linalg::GenericOp swap) {
    auto buffer = dyn_cast_or_null<memref::AllocOp>(swap->getNextNode());
    auto copy = buffer ? dyn_cast_or_null<memref::CopyOp>(buffer->getNextNode()) : nullptr;
    if (!copy || copy.getTarget() != buffer.getMemref() || copy.getSource() != swap.getDpsInits()[0]) return;
    buffer->moveBefore(swap);
    copy->moveBefore(swap);
}

// Integer division by zero (in lanes that a mask leaves out, most often) and of the smallest number by -1 stop a host's process; the
// device goes on with some number.
template <typename Op> void make_total(Op op) {
    OpBuilder builder(op);
    const Location loc = op.getLoc();
    const Type type = op.getType();
    const auto constant = [&](const APInt& value) -> Value {
        TypedAttr attribute;
        if (auto shaped = dyn_cast<ShapedType>(type))
            attribute = DenseElementsAttr::get(shaped, value);
        else
            attribute = IntegerAttr::get(type, value);
        return builder.create<arith::ConstantOp>(loc, attribute);
    };
    const Type element = getElementTypeOrSelf(type);
    if (element.isIndex()) return; // sizes, not data
    const unsigned bits = element.getIntOrFloatBitWidth();
    const auto is = [&](Value value, const APInt& number) -> Value {
        return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, value, constant(number));
    };
    Value bad = is(op.getRhs(), APInt::getZero(bits));
    if constexpr (std::is_same_v<Op, arith::DivSIOp> || std::is_same_v<Op, arith::RemSIOp> || std::is_same_v<Op, arith::FloorDivSIOp> ||
                  std::is_same_v<Op, arith::CeilDivSIOp>) {
        const Value overflows = builder.create<arith::AndIOp>(loc, is(op.getLhs(), APInt::getSignedMinValue(bits)),
                                                              is(op.getRhs(), APInt::getAllOnes(bits)));
        bad = builder.create<arith::OrIOp>(loc, bad, overflows);
    }
    op.getRhsMutable().assign(builder.create<arith::SelectOp>(loc, bad, constant(APInt(bits, 1)), op.getRhs()));
}

template <typename... Ops> void make_total_all(ModuleOp module) {
    (module.walk([](Ops op) {
        APInt divisor;
        if (!matchPattern(op.getRhs(), m_ConstantInt(&divisor)) || divisor.isZero() || divisor.isAllOnes()) make_total(op);
    }), ...);
}

// The select that takes what a nest of loops has gathered into `gathered` where a mask says so; nothing if there is another use.
arith::SelectOp masked_by(Value gathered, Operation*& outermost) {
    while (gathered.hasOneUse()) {
        OpOperand& use = *gathered.use_begin();
        if (auto select = dyn_cast<arith::SelectOp>(use.getOwner()))
            return select.getTrueValue() == gathered && isa<ShapedType>(select.getCondition().getType()) ? select : nullptr;
        auto loop = dyn_cast<scf::ForOp>(use.getOwner()->getParentOp());
        if (!isa<scf::YieldOp>(use.getOwner()) || !loop) return nullptr;
        outermost = loop;
        gathered = loop.getResult(use.getOperandNumber());
    }
    return nullptr;
}

// A masked load of scattered places reads them all and drops what the mask leaves out, which the device survives and a host does not:
// such places may lie anywhere.
void read_where_asked(memref::LoadOp load, DominanceInfo& dominance) {
    if (!load->hasOneUse()) return;
    auto insert = dyn_cast<tensor::InsertOp>(*load->user_begin());
    Operation* outermost = nullptr;
    auto select = insert ? masked_by(insert.getResult(), outermost) : nullptr;
    if (!select || !outermost || !dominance.properlyDominates(select.getCondition(), outermost)) return;
    if (!llvm::all_of(insert.getIndices(), [&](Value index) { return dominance.properlyDominates(index, load); })) return;
    OpBuilder builder(load);
    const Location loc = load.getLoc();
    const Value asked = builder.create<tensor::ExtractOp>(loc, select.getCondition(), insert.getIndices());
    auto branch = builder.create<scf::IfOp>(
        loc, asked,
        [&](OpBuilder& b, Location) {
            b.create<scf::YieldOp>(loc, b.create<memref::LoadOp>(loc, load.getMemRef(), load.getIndices()).getResult());
        },
        [&](OpBuilder& b, Location) {
            b.create<scf::YieldOp>(loc, b.create<arith::ConstantOp>(loc, b.getZeroAttr(load.getType())).getResult());
        });
    load.replaceAllUsesWith(branch.getResult(0));
    load.erase();
}

// The same of a load of adjacent places: the adapter copies the block, then drops what the mask leaves out.
void copy_where_asked(memref::CopyOp copy, DominanceInfo& dominance) {
    auto buffer = copy.getTarget().getDefiningOp<memref::AllocOp>();
    if (!buffer || !buffer.getType().hasStaticShape()) return;
    bufferization::ToTensorOp loaded;
    for (Operation* user : buffer->getUsers()) {
        if (user == copy) continue;
        if (loaded || !(loaded = dyn_cast<bufferization::ToTensorOp>(user))) return;
    }
    Operation* loop = nullptr;
    auto select = loaded ? masked_by(loaded.getResult(), loop) : nullptr;
    if (!select || loop || !dominance.properlyDominates(select.getCondition(), copy)) return;
    OpBuilder builder(copy);
    const Location loc = copy.getLoc();
    const auto index = [&](int64_t number) -> Value { return builder.create<arith::ConstantIndexOp>(loc, number); };
    const SmallVector<Value> begins(buffer.getType().getRank(), index(0)), steps(buffer.getType().getRank(), index(1));
    SmallVector<Value> ends;
    for (const int64_t extent : buffer.getType().getShape()) ends.push_back(index(extent));
    scf::buildLoopNest(builder, loc, begins, ends, steps, [&](OpBuilder& inner, Location, ValueRange at) {
        const Value asked = inner.create<tensor::ExtractOp>(loc, select.getCondition(), at);
        inner.create<scf::IfOp>(loc, asked, [&](OpBuilder& b, Location) {
            b.create<memref::StoreOp>(loc, b.create<memref::LoadOp>(loc, copy.getSource(), at), buffer, at);
            b.create<scf::YieldOp>(loc);
        });
    });
    copy.erase();
}

} // namespace

bool describe(ModuleOp module, Kernel& kernel) {
    func::FuncOp function = kernel_of(module);
    if (!function) return module.emitError("expected one kernel in the module"), false;
    kernel.name = function.getName().str();
    const auto types = function.getArgumentTypes();
    if (function->hasAttr("SyncBlockLockArgIdx") != true || function->hasAttr("WorkspaceArgIdx") != true || types.size() < 2 + kGridArguments + kProgramIds ||
        function.getNumResults() != 0)
        return function.emitError("not a kernel of triton-ascend: it lacks the arguments for lock, workspace, grid and program ids"), false;
    uint32_t offset = 8; // behind the FFTS address
    for (const Type type : types.drop_back(kProgramIds)) {
        Argument argument{};
        if (isa<BaseMemRefType>(type))
            argument = {Argument::pointer, 64, 0};
        else if (type.isIntOrFloat())
            argument = {type.isInteger() ? Argument::integer : Argument::real, type.getIntOrFloatBitWidth(), 0};
        else
            return function.emitError("an argument of type ") << type << " is not simulated", false;
        const uint32_t alignment = argument.bits == 64 ? 8 : 4;
        const uint32_t size = argument.bits == 64 ? 8 : argument.kind == Argument::integer && argument.bits > 1 ? argument.bits / 8 : 4;
        offset = (offset + alignment - 1) / alignment * alignment;
        argument.offset = offset;
        offset += size;
        kernel.arguments.push_back(argument);
    }
    kernel.args_size = (offset + 7) / 8 * 8;
    return true;
}

bool prepare(ModuleOp module, Kernel& kernel) {
    bool good = true;
    SmallVector<linalg::ReduceOp> reductions;
    module.walk([&](linalg::ReduceOp reduce) { reductions.push_back(reduce); });
    for (auto reduce : reductions) good = start_from_first(reduce) && good;

    // Blocks of a launch run one after the other, so only another launch can come between.
    module.walk([&](linalg::GenericOp op) {
        const auto kind = op->getAttrOfType<StringAttr>("GenericAtomicRMW");
        if (!kind) return;
        kernel.flags |= SIMNPU_KERNEL_ATOMIC;
        if (kind == "cas") read_before_swap(op);
    });
    DominanceInfo dominance(module);
    SmallVector<memref::LoadOp> loads;
    module.walk([&](memref::LoadOp load) { loads.push_back(load); });
    for (auto load : loads) read_where_asked(load, dominance);
    SmallVector<memref::CopyOp> copies;
    module.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (auto copy : copies) copy_where_asked(copy, dominance);
    make_total_all<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
                   arith::CeilDivUIOp>(module);
    return good;
}

} // namespace simnpu
