// Compiles one kernel: compile-kernel INPUT.mlir OUTPUT.o. bishengir-compile starts it, and only for that: it takes longer to start than
// most of what triton-ascend asks.
#include "kernel.h"
#include "name.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

using namespace mlir;

namespace {

int refuse(const llvm::Twine& what) {
    llvm::errs() << "bishengir-compile (simulated NPU): " << what << "\n";
    return 1;
}

void load_dialects(MLIRContext& context) {
    DialectRegistry registry;
    registry.insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect, cf::ControlFlowDialect,
                    complex::ComplexDialect, func::FuncDialect, index::IndexDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect>();
    arith::registerBufferizableOpInterfaceExternalModels(registry);
    bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
    cf::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerBufferizableOpInterfaceExternalModels(registry);
    scf::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerInferTypeOpInterfaceExternalModels(registry);
    tensor::registerSubsetOpInterfaceExternalModels(registry);
    simnpu::register_foreign_dialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // They are refused by name later.
    context.allowUnregisteredDialects();
}

int compile(const std::string& input, const std::string& output) {
    // A kernel is small, and several are compiled at once.
    MLIRContext context(MLIRContext::Threading::DISABLED);
    load_dialects(context);
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
    if (!module)
        return refuse("kernel " + simnpu::kernel_in(input) + " cannot be compiled, see above: a custom op that is named there is not simulated");
    simnpu::Kernel kernel;
    const bool done = simnpu::describe(*module, kernel) && simnpu::expand_foreign(*module) && simnpu::prepare(*module, kernel) &&
                      simnpu::expand_library_calls(*module) && simnpu::lower(*module) && simnpu::emit(*module, kernel, output);
    return done ? 0 : refuse("kernel " + (kernel.name.empty() ? input : kernel.name) + " cannot be compiled, see above");
}

} // namespace

int main(int count, char** values) {
    if (count != 3) return refuse("start it as bishengir-compile");
    return compile(values[1], values[2]);
}
