// Tensors to buffers to loops to the LLVM dialect.
#include "kernel.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
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
    registerConversionPasses();
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
    if (!run(module, kToBuffers)) return false;
    copies_to_loops(module);
    return run(module, kToLlvm);
}

} // namespace simnpu
