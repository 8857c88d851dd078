// LLVM dialect to a shared object: translation, the entry that unpacks a launcher's buffer, optimisation, linking.
#include "kernel.h"

#include "simnpu/kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <memory>
#include <optional>

using namespace llvm;

namespace simnpu {

namespace {

bool refuse(const Twine& what) {
    errs() << "error: " << what << "\n";
    return false;
}

Value* load(IRBuilder<>& builder, Value* buffer, uint32_t offset, Type* type, unsigned alignment) {
    Value* place = builder.CreateConstInBoundsGEP1_32(builder.getInt8Ty(), buffer, offset);
    return builder.CreateAlignedLoad(type, place, Align(alignment));
}

Value* unpack(IRBuilder<>& builder, Value* buffer, const Argument& argument, Type* wanted) {
    if (argument.kind == Argument::real) {
        if (argument.bits == 64) return load(builder, buffer, argument.offset, builder.getDoubleTy(), 8);
        Value* single = load(builder, buffer, argument.offset, builder.getFloatTy(), 4);
        return argument.bits == 32 ? single : builder.CreateFPTrunc(single, wanted);
    }
    if (argument.bits == 1) return builder.CreateICmpNE(load(builder, buffer, argument.offset, builder.getInt32Ty(), 4), builder.getInt32(0));
    return load(builder, buffer, argument.offset, builder.getIntNTy(argument.bits), argument.bits == 64 ? 8 : 4);
}

// const char* run(const unsigned char* args, uint32_t block): unpacks, and numbers the blocks with the last dimension fastest.
Function* make_run(Module& module, Function& kernel, const Kernel& about) {
    LLVMContext& context = module.getContext();
    IRBuilder<> builder(context);
    Type* pointer = builder.getPtrTy();
    auto* run = Function::Create(FunctionType::get(pointer, {pointer, builder.getInt32Ty()}, false), GlobalValue::InternalLinkage, "run", module);
    builder.SetInsertPoint(BasicBlock::Create(context, "", run));
    Value* const buffer = run->getArg(0);
    Value* const block = run->getArg(1);
    SmallVector<Value*> given;
    for (const Argument& argument : about.arguments) {
        Type* const wanted = kernel.getFunctionType()->getParamType(given.size());
        if (argument.kind != Argument::pointer) {
            given.push_back(unpack(builder, buffer, argument, wanted));
            continue;
        }
        // A one-dimensional buffer of unknown size: allocated, aligned, offset, size, stride.
        Value* const address = load(builder, buffer, argument.offset, pointer, 8);
        given.append({address, address, builder.getInt64(0), builder.getInt64(INT64_MAX), builder.getInt64(1)});
    }
    const size_t grid = given.size() - 3;
    Value* const y = given[grid + 1];
    Value* const z = given[grid + 2];
    Value* const yz = builder.CreateMul(y, z);
    given.push_back(builder.CreateUDiv(block, yz));
    given.push_back(builder.CreateURem(builder.CreateUDiv(block, z), y));
    given.push_back(builder.CreateURem(block, z));
    if (given.size() != kernel.arg_size()) return nullptr;
    builder.CreateCall(module.getOrInsertFunction("simnpu_begin_block", builder.getVoidTy()));
    builder.CreateCall(&kernel, given);
    builder.CreateRet(ConstantPointerNull::get(builder.getPtrTy()));
    return run;
}

// The exported description, as in simnpu/kernel.h.
void make_description(Module& module, Function* run, const Kernel& about) {
    LLVMContext& context = module.getContext();
    IRBuilder<> builder(context);
    Type* const word = builder.getInt32Ty();
    Type* const pointer = builder.getPtrTy();
    auto* type = StructType::get(context, {word, word, word, word, pointer, pointer, pointer});
    auto* name = builder.CreateGlobalString(about.name, "name", 0, &module);
    auto* finish = cast<Function>(module.getOrInsertFunction("simnpu_finish", builder.getVoidTy()).getCallee());
    auto* value = ConstantStruct::get(type, {builder.getInt32(SIMNPU_KERNEL_ABI), builder.getInt32(about.flags), builder.getInt32(about.args_size),
                                             builder.getInt32(0), name, run, finish});
    new GlobalVariable(module, type, /*isConstant=*/true, GlobalValue::ExternalLinkage, value, SIMNPU_KERNEL_PREFIX + about.name);
}

// A float that does not fit into an integer becomes the nearest one that does, as on the device, and not-a-number becomes 0. LLVM's own
// instruction says nothing about them.
void saturate_conversions(Module& module) {
    SmallVector<CastInst*> conversions;
    for (Function& function : module)
        for (BasicBlock& block : function)
            for (Instruction& instruction : block)
                if (isa<FPToSIInst, FPToUIInst>(instruction)) conversions.push_back(cast<CastInst>(&instruction));
    for (CastInst* conversion : conversions) {
        IRBuilder<> builder(conversion);
        Value* value = conversion->getOperand(0);
        if (value->getType()->getScalarSizeInBits() < 32) value = builder.CreateFPExt(value, value->getType()->getWithNewType(builder.getFloatTy()));
        const auto which = isa<FPToSIInst>(conversion) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
        conversion->replaceAllUsesWith(builder.CreateIntrinsic(which, {conversion->getType(), value->getType()}, {value}));
        conversion->eraseFromParent();
    }
}

std::unique_ptr<TargetMachine> host_machine() {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    const std::string triple = sys::getDefaultTargetTriple();
    std::string problem;
    const Target* target = TargetRegistry::lookupTarget(triple, problem);
    if (!target) return refuse(problem), nullptr;
    // The baseline of the architecture: compiled kernels lie in caches that several machines may share, and give the same numbers on each.
    return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, "", "", TargetOptions{}, Reloc::PIC_));
}

void optimise(Module& module, TargetMachine& machine) {
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder passes(&machine);
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(components);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, components, modules);
    passes.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules);
}

bool closed(raw_fd_ostream& file, const std::string& path) {
    file.close();
    if (!file.has_error()) return true;
    const std::string why = file.error().message();
    file.clear_error();
    return refuse("cannot write " + path + ": " + why);
}

bool write_object(Module& module, TargetMachine& machine, const std::string& path) {
    std::error_code problem;
    raw_fd_ostream file(path, problem);
    if (problem) return refuse("cannot write " + path + ": " + problem.message());
    legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, file, nullptr, CodeGenFileType::ObjectFile)) return refuse("LLVM cannot make objects for this machine");
    passes.run(module);
    return closed(file, path);
}

std::string support_library() {
    // Beside the directory of this program.
    const std::string here = sys::fs::getMainExecutable(nullptr, reinterpret_cast<void*>(&support_library));
    SmallString<256> path(sys::path::parent_path(sys::path::parent_path(here)));
    sys::path::append(path, "lib", "libkernel_support.a");
    return path.str().str();
}

bool link(const std::string& object, const std::string& output) {
    const std::string support = support_library();
    const SmallVector<StringRef> words{SIMNPU_LINKER, "-shared", "--gc-sections", "--exclude-libs=ALL", "-z", "defs", "-z", "noexecstack",
                                       "-o", output, object, support, SIMNPU_LIBGCC, SIMNPU_LIBM, SIMNPU_LIBC};
    std::string problem;
    const int code = sys::ExecuteAndWait(SIMNPU_LINKER, words, std::nullopt, {}, 0, 0, &problem);
    if (code == 0) return true;
    return refuse(Twine("linking ended with ") + Twine(code) + (problem.empty() ? "" : ": " + problem) +
                  "; a function that is named above as undefined is not simulated");
}

// Puts the checksum behind the image, so that a damaged binary is known from a whole one.
bool seal(const std::string& path) {
    const auto image = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!image) return refuse("cannot read " + path + ": " + image.getError().message());
    simnpu_kernel_seal end{SIMNPU_KERNEL_SEAL, 0};
    end.checksum = simnpu_kernel_checksum((*image)->getBufferStart(), (*image)->getBufferSize());
    std::error_code problem;
    raw_fd_ostream file(path, problem, sys::fs::CD_OpenExisting, sys::fs::FA_Write, sys::fs::OF_Append);
    if (problem) return refuse("cannot write " + path + ": " + problem.message());
    file.write(reinterpret_cast<const char*>(&end), sizeof end);
    return closed(file, path);
}

} // namespace

bool emit(mlir::ModuleOp module, const Kernel& about, const std::string& output) {
    LLVMContext context;
    const std::unique_ptr<Module> translated = mlir::translateModuleToLLVMIR(module, context, about.name);
    if (!translated) return false;
    const std::unique_ptr<TargetMachine> machine = host_machine();
    if (!machine) return false;
    translated->setTargetTriple(machine->getTargetTriple().str());
    translated->setDataLayout(machine->createDataLayout());
    Function* kernel = translated->getFunction(about.name);
    if (!kernel) return refuse("the kernel got lost on the way down");
    kernel->setLinkage(GlobalValue::InternalLinkage);
    Function* run = make_run(*translated, *kernel, about);
    if (!run) return refuse("the kernel's parameters are not those of its arguments");
    make_description(*translated, run, about);
    saturate_conversions(*translated);
    if (verifyModule(*translated, &errs())) return refuse("LLVM does not accept the kernel");
    optimise(*translated, *machine);

    // Beside the result, in a directory that triton-ascend removes also when this process is killed. The result has its name only
    // when it is whole.
    const std::string object = output + ".object", image = output + ".image";
    bool done = write_object(*translated, *machine, object) && link(object, image) && seal(image);
    if (done)
        if (const auto problem = sys::fs::rename(image, output)) done = refuse("cannot write " + output + ": " + problem.message());
    sys::fs::remove(object);
    sys::fs::remove(image);
    return done;
}

} // namespace simnpu
