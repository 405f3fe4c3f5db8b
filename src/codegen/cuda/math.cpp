// Functions of math.def through libdevice, NVIDIA's bitcode, with names for f32 that end in f; or through libclc, with
// OpenCL's names mangled as in C++: _Z5atan2ff (jit/libdevice.h).
#include "codegen/cuda/emitter.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;

namespace {

std::string name_in_libclc(const std::string& stem, bool is_double, std::size_t operands) {
    return "_Z" + std::to_string(stem.size()) + stem + std::string(operands, is_double ? 'd' : 'f');
}

// For -0.0, libclc's f64 functions of these names return 0.0.
bool loses_sign_of_zero(Op op) {
    return op == Op::sin || op == Op::tan || op == Op::asin || op == Op::atan || op == Op::erf;
}

}  // namespace

// Clamps the exponent of an f64 power: beyond about 1e20 libclc's result is wrong. At 2^64, an even number, the power
// of every base equals that of all larger exponents: 0, 1 or infinity.
llvm::Value* CudaEmitter::within_limits(llvm::Value* exponent) {
    llvm::Value *most = llvm::ConstantFP::get(exponent->getType(), 0x1p64),
                *least = llvm::ConstantFP::get(exponent->getType(), -0x1p64);
    exponent = builder_.CreateSelect(builder_.CreateFCmpOGT(exponent, most), most, exponent);
    return builder_.CreateSelect(builder_.CreateFCmpOLT(exponent, least), least, exponent);
}

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
            has_libclc_ ? name_in_libclc(function.stem, is_double, operands.size())
                        : std::string("__nv_") + (is_quick ? function.quick : function.stem) + (is_double ? "" : "f");
        llvm::Type* type = register_type(scalar);
        const llvm::SmallVector<llvm::Type*, 2> parameters(operands.size(), type);
        llvm::FunctionCallee callee =
            module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, parameters, false));
        auto* declared = llvm::cast<llvm::Function>(callee.getCallee());
        declared->setDoesNotThrow();
        declared->setDoesNotAccessMemory();
        declared->setWillReturn();
        if (!has_libclc_ || !is_double) return builder_.CreateCall(callee, operands);
        if (op == Op::pow) return builder_.CreateCall(callee, {operands[0], within_limits(operands[1])});
        llvm::Value* result = builder_.CreateCall(callee, operands);
        if (!loses_sign_of_zero(op)) return result;
        llvm::Value* zero = builder_.CreateFCmpOEQ(operands[0], llvm::ConstantFP::get(type, 0.0));
        return builder_.CreateSelect(zero, operands[0], result);
    }
    throw InternalError(std::string("codegen: no math routine for '") + ir::op_name(op) + "'");
}

// libdevice reduces the angle once for both. Its quick functions are instructions, and libclc has no such function.
bool CudaEmitter::has_sine_and_cosine() const { return !has_libclc_ && !options_.fast_math; }

std::pair<llvm::Value*, llvm::Value*> CudaEmitter::sine_and_cosine(Scalar scalar, llvm::Value* a) {
    llvm::Type *type = register_type(scalar), *pointer = builder_.getPtrTy();
    const llvm::Align alignment(static_cast<std::uint64_t>(info(scalar).bytes()));
    llvm::Value *sine = stack_slot(type, alignment), *cosine = stack_slot(type, alignment);
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction(scalar == Scalar::f64 ? "__nv_sincos" : "__nv_sincosf",
                                    llvm::FunctionType::get(builder_.getVoidTy(), {type, pointer, pointer}, false));
    auto* declared = llvm::cast<llvm::Function>(callee.getCallee());
    declared->setDoesNotThrow();
    declared->setOnlyAccessesArgMemory();
    declared->setWillReturn();
    builder_.CreateCall(callee, {a, sine, cosine});
    return {builder_.CreateLoad(type, sine), builder_.CreateLoad(type, cosine)};
}

}  // namespace weft::codegen
