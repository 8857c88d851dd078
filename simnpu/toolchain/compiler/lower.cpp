// Tensors to buffers to loops to the LLVM dialect.
#include "kernel.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace simnpu {

namespace {

bool run(ModuleOp module, StringRef pipeline) {
    PassManager manager(module.getContext());
    manager.enableVerifier(true);
    if (failed(parsePassPipeline(pipeline, manager, llvm::errs()))) return false;
    return succeeded(manager.run(module));
}

// Whether a buffer, or a view of it, is read as a buffer, or as more than one tensor.
bool is_read_besides(Value buffer, unsigned& tensors) {
    for (OpOperand& use : buffer.getUses()) {
        Operation* user = use.getOwner();
        if (isa<bufferization::ToTensorOp>(user)) {
            if (++tensors > 1) return true;
        } else if (auto view = dyn_cast<ViewLikeOpInterface>(user)) {
            if (is_read_besides(view->getResult(0), tensors)) return true;
        } else if (auto copy = dyn_cast<memref::CopyOp>(user)) {
            if (copy.getSource() == buffer) return true;
        } else if (auto store = dyn_cast<memref::StoreOp>(user)) {
            continue;
        } else if (auto fill = dyn_cast<linalg::FillOp>(user)) {
            continue;
        } else {
            return true;
        }
    }
    return false;
}

// The adapter says of every loaded tensor that its buffer may be written, and goes on to read the buffer itself, too.
void keep_buffers_that_are_read(ModuleOp module) {
    module.walk([](bufferization::ToTensorOp op) {
        Value base = op.getMemref();
        while (auto view = base.getDefiningOp<ViewLikeOpInterface>()) base = view.getViewSource();
        unsigned tensors = 0;
        if (op.getWritable() && is_read_besides(base, tensors)) op.setWritable(false);
    });
}

// What is read of a tensor as a buffer is a copy: bufferisation knows when the buffer was asked for, not when it is read.
void copy_tensors_that_are_buffers(ModuleOp module) {
    SmallVector<bufferization::ToMemrefOp> all;
    module.walk([&](bufferization::ToMemrefOp op) { all.push_back(op); });
    for (auto op : all) {
        OpBuilder builder(op);
        const auto type = dyn_cast<RankedTensorType>(op.getTensor().getType());
        if (!type || !type.hasStaticShape()) continue;
        const Value copy = builder.create<bufferization::AllocTensorOp>(op.getLoc(), type, ValueRange{}, op.getTensor());
        op.getTensorMutable().assign(copy);
    }
}

// Loops, which the optimiser sees through, in place of a call per copy.
void copies_to_loops(ModuleOp module) {
    SmallVector<memref::CopyOp> copies;
    module.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (auto copy : copies) {
        OpBuilder builder(copy);
        linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(), copy.getTarget());
        copy.erase();
    }
}

void register_passes() {
    arith::registerArithPasses();
    bufferization::registerBufferizationPasses();
    memref::registerMemRefPasses();
    // Those alone that are used below: the others would bring every target that MLIR knows.
    registerArithToLLVMConversionPass();
    registerConvertAffineToStandard();
    registerConvertBufferizationToMemRefPass();
    registerConvertComplexToStandard();
    registerConvertControlFlowToLLVMPass();
    registerConvertFuncToLLVMPass();
    registerConvertIndexToLLVMPass();
    registerConvertMathToLLVMPass();
    registerConvertMathToLibm();
    registerFinalizeMemRefToLLVMConversionPass();
    registerReconcileUnrealizedCasts();
    registerSCFToControlFlow();
    registerLinalgPasses();
    registerTransformsPasses();
}

// Buffers that a loop makes anew each time are made once before it: no kernel frees any before its block has ended.
constexpr const char* kToBuffers = "convert-elementwise-to-linalg,func.func(linalg-generalize-named-ops),eliminate-empty-tensors,"
                                   "func.func(empty-tensor-to-alloc-tensor),"
                                   "one-shot-bufferize{allow-return-allocs-from-loops allow-unknown-ops},"
                                   "canonicalize,cse,convert-bufferization-to-memref,func.func(buffer-loop-hoisting)";
constexpr const char* kToLlvm = "func.func(convert-linalg-to-loops),fold-memref-alias-ops,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
                                "memref-expand,arith-expand{include-bf16},convert-complex-to-standard,func.func(convert-math-to-llvm),"
                                "convert-math-to-libm,finalize-memref-to-llvm{use-generic-functions},convert-arith-to-llvm,convert-index-to-llvm,"
                                "convert-cf-to-llvm,convert-func-to-llvm,canonicalize,reconcile-unrealized-casts";

} // namespace

bool lower(ModuleOp module) {
    register_passes();
    keep_buffers_that_are_read(module);
    copy_tensors_that_are_buffers(module);
    if (!run(module, kToBuffers)) return false;
    copies_to_loops(module);
    return run(module, kToLlvm);
}

} // namespace simnpu
