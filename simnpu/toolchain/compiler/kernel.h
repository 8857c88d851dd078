// A kernel on its way from the adapter's MLIR to a shared object, and the steps of it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Types.h"

#include <string>
#include <vector>

namespace simnpu {

// How one value lies in the argument buffer that a launcher packs.
struct Argument {
    enum Kind {
        pointer,
        integer,
        real,
    } kind;
    unsigned bits; // of the kernel's parameter; a launcher passes i1 as 32 bits and every float below 64 bits as 32
    uint32_t offset;
};

struct Kernel {
    std::string name;
    // In the order of the kernel's parameters: lock, workspace, the user's, grid x y z. Program ids follow, which no launcher packs.
    std::vector<Argument> arguments;
    uint32_t args_size = 0;
    uint32_t flags = 0;
};

// Dialects of the device that the adapter uses, to be read before anything else.
void register_foreign_dialects(mlir::DialectRegistry& registry);

// Each returns false after it has said on stderr what is wrong, naming the operation.

// Finds the kernel in the module and how its arguments are packed.
bool describe(mlir::ModuleOp module, Kernel& kernel);

// Rewrites the operations of the device's own dialects, and refuses those that are not simulated.
bool expand_foreign(mlir::ModuleOp module);

// Replaces what the adapter means otherwise than upstream MLIR does.
bool prepare(mlir::ModuleOp module, Kernel& kernel);

// Expands calls of the device library that take whole tensors (triton_cumsum, triton_sort …).
bool expand_library_calls(mlir::ModuleOp module);

// Down to the LLVM dialect.
bool lower(mlir::ModuleOp module);

// Translates, optimises and links a shared object that exports the kernel as simnpu/kernel.h says.
bool emit(mlir::ModuleOp module, const Kernel& kernel, const std::string& output);

} // namespace simnpu
