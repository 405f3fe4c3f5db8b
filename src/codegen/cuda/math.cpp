// Functions of math.def through libdevice, NVIDIA's bitcode (jit/libdevice.h): f32 has names that end in f.
#include "codegen/cuda/emitter.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;

llvm::Value* CudaEmitter::math_function(Op op, Scalar scalar, Values operands) {
    struct MathFunction {
        Op op;
        const char *stem, *quick;
    };
    static constexpr MathFunction kFunctions[] = {
#define WEFT_MATH(op, stem, accuracy, fast, quick, operands) {Op::op, stem, quick},
#include "codegen/math.def"
#undef WEFT_MATH
    };
    const bool is_double = scalar == Scalar::f64;
    for (const MathFunction& function : kFunctions) {
        if (function.op != op) continue;
        const bool is_quick = options_.fast_math && !is_double && *function.quick != '\0';
        const std::string symbol =
            std::string("__nv_") + (is_quick ? function.quick : function.stem) + (is_double ? "" : "f");
        llvm::Type* type = register_type(scalar);
        const llvm::SmallVector<llvm::Type*, 2> parameters(operands.size(), type);
        llvm::FunctionCallee callee =
            module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, parameters, false));
        auto* declared = llvm::cast<llvm::Function>(callee.getCallee());
        declared->setDoesNotThrow();
        declared->setDoesNotAccessMemory();
        declared->setWillReturn();
        return builder_.CreateCall(callee, operands);
    }
    throw InternalError(std::string("codegen: no math routine for '") + ir::op_name(op) + "'");
}

}  // namespace weft::codegen
