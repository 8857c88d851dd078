// Operations of the device's own dialects, which the adapter writes among upstream's: enough of their syntax to read them, and what they
// mean in upstream MLIR. The rest is refused by name in prepare.cpp.
#include "kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace simnpu {

namespace {

constexpr StringRef kLiterals = "literals"; // whole numbers that stand among the operands

// `{attributes} %a, %b, 16 ins(%c : T) outs(%d : T) : T, T -> T`, each part optional: what the operations of all these dialects look like.
ParseResult parse_any(OpAsmParser& parser, OperationState& state) {
    SmallVector<OpAsmParser::UnresolvedOperand> bare, grouped;
    SmallVector<Type> bare_types, grouped_types;
    SmallVector<int64_t> literals;
    for (;;) {
        if (succeeded(parser.parseOptionalKeyword("ins")) || succeeded(parser.parseOptionalKeyword("outs"))) {
            if (parser.parseLParen() || parser.parseOperandList(grouped) || parser.parseColonTypeList(grouped_types) || parser.parseRParen())
                return failure();
            continue;
        }
        OpAsmParser::UnresolvedOperand operand;
        if (const auto found = parser.parseOptionalOperand(operand); found.has_value()) {
            if (failed(*found)) return failure();
            bare.push_back(operand);
            (void)parser.parseOptionalComma();
            continue;
        }
        int64_t literal = 0;
        if (const auto found = parser.parseOptionalInteger(literal); found.has_value()) {
            if (failed(*found)) return failure();
            literals.push_back(literal);
            (void)parser.parseOptionalComma();
            continue;
        }
        const size_t before = state.attributes.getAttrs().size();
        if (parser.parseOptionalAttrDict(state.attributes)) return failure();
        if (state.attributes.getAttrs().size() == before) break;
    }
    if (succeeded(parser.parseOptionalColon()) && parser.parseTypeList(bare_types)) return failure();
    if (parser.parseOptionalArrowTypeList(state.types)) return failure();
    if (!literals.empty()) state.addAttribute(kLiterals, parser.getBuilder().getDenseI64ArrayAttr(literals));
    const SMLoc where = parser.getNameLoc();
    return failure(parser.resolveOperands(bare, bare_types, where, state.operands) ||
                   parser.resolveOperands(grouped, grouped_types, where, state.operands));
}

// `[<CUBE>, <PIPE>, 1 : i16] flag = 5 pipe = <PIPE>`: synchronisation. Only what stands first is kept.
ParseResult parse_sync(OpAsmParser& parser, OperationState& state) {
    const auto word = [&](StringRef& into) -> ParseResult { return failure(parser.parseKeyword(&into) || parser.parseGreater()); };
    const auto one = [&]() -> ParseResult {
        StringRef name;
        int64_t number = 0;
        Type type;
        if (succeeded(parser.parseOptionalLess())) {
            if (failed(word(name))) return failure();
            if (!state.attributes.get("what")) state.addAttribute("what", parser.getBuilder().getStringAttr(name));
            return success();
        }
        return failure(parser.parseInteger(number) || (succeeded(parser.parseOptionalColon()) && parser.parseType(type)));
    };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, one)) return failure();
    for (const StringRef key : {"flag", "tcube_pipe", "tvector_pipe", "tsync_instr_mode"})
        if (succeeded(parser.parseOptionalKeyword(key)) && (failed(parser.parseEqual()) || failed(one()))) return failure();
    return success();
}

ParseResult parse_operation(OpAsmParser& parser, OperationState& state) {
    const bool sync = state.name.getStringRef().starts_with("hivm.hir.sync_block");
    if (succeeded(sync ? parse_sync(parser, state) : parse_any(parser, state))) return success();
    return parser.emitError(parser.getNameLoc()) << "operation " << state.name << " is not simulated";
}

// Any operation, any attribute: as a string without the dialect's name.
class ForeignDialect : public Dialect {
public:
    ForeignDialect(StringRef name, MLIRContext* context, TypeID id) : Dialect(name, context, id) {
        allowUnknownOperations();
    }
    Attribute parseAttribute(DialectAsmParser& parser, Type) const override {
        return StringAttr::get(getContext(), parser.getFullSymbolSpec());
    }
    std::optional<ParseOpHook> getParseOperationHook(StringRef) const override {
        return ParseOpHook(parse_operation); // a reference: it must outlive this call
    }
};

} // namespace

#define FOREIGN_DIALECT(type, name)                                                              \
    struct type : ForeignDialect {                                                               \
        explicit type(MLIRContext* context) : ForeignDialect(name, context, TypeID::get<type>()) {} \
        static StringRef getDialectNamespace() { return name; }                                  \
    }
FOREIGN_DIALECT(AnnotationDialect, "annotation");
// Upstream's, of which only the barrier is used.
FOREIGN_DIALECT(GpuDialect, "gpu");
FOREIGN_DIALECT(HFusionDialect, "hfusion");
FOREIGN_DIALECT(HivmDialect, "hivm");
// What the adapter left as it was.
FOREIGN_DIALECT(TritonDialect, "tt");

void register_foreign_dialects(DialectRegistry& registry) {
    registry.insert<AnnotationDialect, GpuDialect, HFusionDialect, HivmDialect, TritonDialect>();
}

namespace {

StringRef text(Operation* op, StringRef name) {
    const auto attribute = op->getAttrOfType<StringAttr>(name);
    return attribute ? attribute.getValue() : StringRef();
}

bool refuse(Operation* op, const Twine& what) {
    op->emitError("operation ") << op->getName() << what << " is not simulated";
    return false;
}

void replace(Operation* op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
}

Type with_element(Type type, Type element) {
    return cast<ShapedType>(type).clone(element);
}

Value splat(OpBuilder& builder, Location loc, Type type, TypedAttr value) {
    if (auto shaped = dyn_cast<ShapedType>(type)) return builder.create<arith::ConstantOp>(loc, DenseElementsAttr::get(shaped, value));
    return builder.create<arith::ConstantOp>(loc, value);
}

// hfusion.elemwise_binary {fun = binary_fn<mod>}: of the functions only the remainder has no operation upstream that the adapter uses.
bool expand_elementwise(Operation* op) {
    if (text(op, "fun") != "binary_fn<mod>" || op->getNumOperands() != 3 || !isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
        return refuse(op, " with " + text(op, "fun"));
    OpBuilder b(op);
    const Location loc = op->getLoc();
    const Type type = op->getResult(0).getType();
    Value left = op->getOperand(0), right = op->getOperand(1);
    const Type element = getElementTypeOrSelf(type);
    // Exact in the wider type, and so in the narrower one.
    if (element.getIntOrFloatBitWidth() < 32) {
        const Type wide = with_element(type, b.getF32Type());
        left = b.create<arith::ExtFOp>(loc, wide, left);
        right = b.create<arith::ExtFOp>(loc, wide, right);
        return replace(op, b.create<arith::TruncFOp>(loc, type, b.create<arith::RemFOp>(loc, left, right))), true;
    }
    return replace(op, b.create<arith::RemFOp>(loc, left, right)), true;
}

// hfusion.cast {mode = round_mode<…>} from one float to a narrower one.
bool expand_cast(Operation* op) {
    const StringRef mode = text(op, op->hasAttr("mode") ? "mode" : "round_mode");
    OpBuilder b(op);
    const Location loc = op->getLoc();
    const Value from = op->getOperand(0);
    const Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type), source = getElementTypeOrSelf(from.getType());
    if (!isa<FloatType>(element) || !isa<FloatType>(source) || element.getIntOrFloatBitWidth() >= source.getIntOrFloatBitWidth() ||
        (mode != "round_mode<trunc>" && mode != "round_mode<rint>"))
        return refuse(op, " with " + mode);
    const Value near = b.create<arith::TruncFOp>(loc, type, from);
    if (mode == "round_mode<rint>") return replace(op, near), true;
    // Toward zero: one step back where rounding went away from it. Bits of floats are ordered as their sizes are.
    const Value back = b.create<arith::ExtFOp>(loc, from.getType(), near);
    const auto size_of = [&](Value value) -> Value {
        const Type bits = with_element(value.getType(), b.getIntegerType(source.getIntOrFloatBitWidth()));
        const Value all = b.create<arith::BitcastOp>(loc, bits, value);
        const auto mask = b.getIntegerAttr(getElementTypeOrSelf(bits), APInt::getSignedMaxValue(source.getIntOrFloatBitWidth()));
        return b.create<arith::AndIOp>(loc, all, splat(b, loc, bits, mask));
    };
    const Value away = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ugt, size_of(back), size_of(from));
    const Type narrow = with_element(type, b.getIntegerType(element.getIntOrFloatBitWidth()));
    const Value step = b.create<arith::ExtUIOp>(loc, narrow, away);
    const Value bits = b.create<arith::SubIOp>(loc, b.create<arith::BitcastOp>(loc, narrow, near), step);
    return replace(op, b.create<arith::BitcastOp>(loc, type, bits)), true;
}

// hfusion.histogram VALUES, BINS: how often each number from 0 to BINS - 1 is there; others count for nothing.
bool expand_histogram(Operation* op) {
    const auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    const auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (op->getNumOperands() > 2 || !from || !type || from.getRank() != 1 || type.getRank() != 1 || !from.hasStaticShape() || !type.hasStaticShape())
        return refuse(op, " of this shape");
    OpBuilder b(op);
    const Location loc = op->getLoc();
    const auto buffer = [&](Value tensor) -> Value {
        const auto of = cast<RankedTensorType>(tensor.getType());
        return b.create<bufferization::ToMemrefOp>(loc, MemRefType::get(of.getShape(), of.getElementType()), tensor, /*read_only=*/true);
    };
    const Value values = buffer(op->getOperand(0));
    const Value mask = op->getNumOperands() == 2 ? buffer(op->getOperand(1)) : Value();
    const Value bins = b.create<memref::AllocOp>(loc, MemRefType::get(type.getShape(), type.getElementType()));
    const auto index = [&](OpBuilder& inside, int64_t value) -> Value { return inside.create<arith::ConstantIndexOp>(loc, value); };
    const auto over = [&](int64_t count, llvm::function_ref<void(OpBuilder&, Value)> body) {
        b.create<scf::ForOp>(loc, index(b, 0), index(b, count), index(b, 1), ValueRange{}, [&](OpBuilder& inside, Location, Value at, ValueRange) {
            body(inside, at);
            inside.create<scf::YieldOp>(loc);
        });
    };
    over(type.getDimSize(0), [&](OpBuilder& inside, Value at) {
        const Value zero = inside.create<arith::ConstantOp>(loc, inside.getIntegerAttr(type.getElementType(), 0));
        inside.create<memref::StoreOp>(loc, zero, bins, at);
    });
    over(from.getDimSize(0), [&](OpBuilder& inside, Value at) {
        const Value value = inside.create<memref::LoadOp>(loc, values, at);
        const Value bin = inside.create<arith::IndexCastOp>(loc, inside.getIndexType(), value);
        Value counts = inside.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, bin, index(inside, type.getDimSize(0)));
        if (mask) counts = inside.create<arith::AndIOp>(loc, counts, inside.create<memref::LoadOp>(loc, mask, at));
        inside.create<scf::IfOp>(loc, counts, [&](OpBuilder& then, Location) {
            const Value one = then.create<arith::ConstantOp>(loc, then.getIntegerAttr(type.getElementType(), 1));
            const Value so_far = then.create<memref::LoadOp>(loc, bins, bin);
            then.create<memref::StoreOp>(loc, then.create<arith::AddIOp>(loc, so_far, one), bins, bin);
            then.create<scf::YieldOp>(loc);
        });
    });
    return replace(op, b.create<bufferization::ToTensorOp>(loc, bins, /*restrict=*/true, /*writable=*/true)), true;
}

// annotation.mark: hints for a device, but for what a cast does with numbers that do not fit. Casts from floats keep to the limits anyway.
bool expand_mark(Operation* op) {
    if (text(op, "overflow_mode") == "saturate" && op->getNumOperands() == 1) {
        if (auto cut = op->getOperand(0).getDefiningOp<arith::TruncIOp>()) {
            OpBuilder b(cut);
            const Type wide = getElementTypeOrSelf(cut.getIn().getType());
            const unsigned from = wide.getIntOrFloatBitWidth(), to = getElementTypeOrSelf(cut.getType()).getIntOrFloatBitWidth();
            const auto limit = [&](const APInt& value) { return splat(b, cut.getLoc(), cut.getIn().getType(), b.getIntegerAttr(wide, value.sext(from))); };
            const Value low = b.create<arith::MaxSIOp>(cut.getLoc(), cut.getIn(), limit(APInt::getSignedMinValue(to)));
            cut.getInMutable().assign(b.create<arith::MinSIOp>(cut.getLoc(), low, limit(APInt::getSignedMaxValue(to))));
        }
    }
    op->erase();
    return true;
}

// A block is one thread here, so what orders its parts has nothing to do. Blocks run one after the other and cannot wait for each other.
bool expand_sync(Operation* op) {
    const StringRef name = op->getName().getStringRef();
    if (name == "hivm.hir.sync_block" && text(op, "what") != "ALL_SUB_VECTOR") {
        op->emitError("operation ") << name << " is not simulated: blocks run one after the other and cannot wait for each other";
        return false;
    }
    op->erase();
    return true;
}

// By the operation's name.
const llvm::StringMap<bool (*)(Operation*)>& expansions() {
    static const llvm::StringMap<bool (*)(Operation*)> all{
        {"annotation.mark", expand_mark},
        {"gpu.barrier", expand_sync},
        {"hfusion.cast", expand_cast},
        {"hfusion.elemwise_binary", expand_elementwise},
        {"hfusion.histogram", expand_histogram},
        {"hivm.hir.sync_block", expand_sync},
        {"hivm.hir.sync_block_set", expand_sync},
        {"hivm.hir.sync_block_wait", expand_sync},
    };
    return all;
}

} // namespace

bool expand_foreign(ModuleOp module) {
    SmallVector<Operation*> all;
    module.walk([&](Operation* op) {
        if (!op->isRegistered()) all.push_back(op);
    });
    bool good = true;
    module.walk([&](LLVM::InlineAsmOp op) { good = (op.emitError("operation llvm.inline_asm is not simulated: it is in a device's own language"), false); });
    for (Operation* op : all) {
        const StringRef name = op->getName().getStringRef();
        if (const auto known = expansions().find(name); known != expansions().end())
            good = known->second(op) && good;
        else if (name.starts_with("tt."))
            good = (op->emitError("operation ") << name << " is not simulated: triton-ascend's adapter left it as it was", false);
        else
            good = refuse(op, "");
    }
    return good;
}

} // namespace simnpu
