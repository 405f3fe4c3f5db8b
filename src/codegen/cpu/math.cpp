// Transcendental functions through SLEEF's vector routines.
//
// One routine per function and type: the one of the machine's full register width. More lanes are several calls; fewer
// lanes and single numbers are padded to a register. So a number has the same sine in the scalar kernel, in the vector
// kernel and in its tail. The jit resolves the symbols. The declarations carry attributes that let LLVM merge and hoist
// the calls.
#include <llvm/IR/MDBuilder.h>

#include <limits>
#include <numbers>

#include "codegen/cpu/emitter.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;

namespace {

struct MathFunction {
    Op op;
    const char* stem;
    const char* accuracy;
    const char* fast;  // under fast_math
};

constexpr MathFunction kFunctions[] = {
#define WEFT_MATH(op, stem, accuracy, fast, quick, operands) {Op::op, stem, accuracy, fast},
#include "codegen/math.def"
#undef WEFT_MATH
};

}  // namespace

llvm::Value* CpuEmitter::math_function(Op op, Scalar scalar, Values operands) {
    const bool is_double = scalar == Scalar::f64;
    for (const MathFunction& function : kFunctions) {
        if (function.op != op) continue;
        const std::string symbol =
            math_symbol(function.stem, is_double, options_.fast_math ? function.fast : function.accuracy);
        if (op == Op::sinh || op == Op::cosh) return hyperbolic(symbol, is_double, operands[0]);
        if (op == Op::exp && is_double) return exponential(symbol, operands[0]);
        if (op == Op::pow && is_double) return power(symbol, operands);
        if (op != Op::rem) return math_call(symbol, is_double, operands);
        // SLEEF's fmod is right while the quotient is below 1e38 (f32) or 1e300 (f64). The remainders by two multiples
        // of b by powers of two, which are exact or infinite, come first and keep every quotient below that.
        llvm::Value *a = operands[0], *b = operands[1];
        llvm::Value* power = llvm::ConstantFP::get(a->getType(), is_double ? 0x1p900 : 0x1p100);
        llvm::Value* multiple = builder_.CreateFMul(b, power);
        a = math_call(symbol, is_double, {a, builder_.CreateFMul(multiple, power)});
        a = math_call(symbol, is_double, {a, multiple});
        return math_call(symbol, is_double, {a, b});
    }
    throw InternalError(std::string("codegen: no math routine for '") + ir::op_name(op) + "'");
}

// SLEEF's sinh and cosh are infinite from 88.7 on (f32), or 710 (f64), although the true results are still finite. So a
// large argument is moved one towards 0, which is exact, and the result multiplied by e.
llvm::Value* CpuEmitter::hyperbolic(const std::string& symbol, bool is_double, llvm::Value* a) {
    const auto number = [&](double value) { return llvm::ConstantFP::get(a->getType(), value); };
    llvm::Value* size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    llvm::Value* is_large = builder_.CreateFCmpOGT(size, number(is_double ? 700.0 : 80.0));
    llvm::Value* step = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, number(1.0), a);
    llvm::Value* moved = builder_.CreateSelect(is_large, builder_.CreateFSub(a, step), a);
    llvm::Value* result = math_call(symbol, is_double, {moved});
    return builder_.CreateSelect(is_large, builder_.CreateFMul(result, number(std::numbers::e)), result);
}

// The result; if any lane is rare, `other` replaces it in the rare lanes, behind a branch that is hardly ever taken.
llvm::Value* CpuEmitter::mend_rare(llvm::Value* is_rare, llvm::Value* result,
                                   const std::function<llvm::Value*()>& other) {
    llvm::BasicBlock* const before = builder_.GetInsertBlock();
    llvm::BasicBlock *const rare = new_block("rare"), *const after = new_block("mended");
    llvm::Value* const any = is_rare->getType()->isVectorTy() ? lanes_.any(is_rare) : is_rare;  // uniform: a scalar
    builder_.CreateCondBr(any, rare, after, llvm::MDBuilder(context_).createUnlikelyBranchWeights());
    builder_.SetInsertPoint(rare);
    llvm::Value* const mended = builder_.CreateSelect(is_rare, other(), result);
    llvm::BasicBlock* const end = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* const merged = builder_.CreatePHI(result->getType(), 2);
    merged->addIncoming(result, before);
    merged->addIncoming(mended, end);
    return merged;
}

// SLEEF's exp of float64 is infinite from 709.782711 on, the true one from 709.782712893384 on. There it is e times the
// exp of one less, which is exact; e has a second part, so that the product is rounded once.
llvm::Value* CpuEmitter::exponential(const std::string& symbol, llvm::Value* a) {
    const auto number = [&](double value) { return llvm::ConstantFP::get(a->getType(), value); };
    llvm::Value* result = math_call(symbol, /*is_double=*/true, {a});
    return mend_rare(builder_.CreateFCmpOGT(a, number(709.78)), result, [&] {
        llvm::Value* less = math_call(symbol, /*is_double=*/true, {builder_.CreateFSub(a, number(1.0))});
        return builder_.CreateIntrinsic(
            llvm::Intrinsic::fma, {a->getType()},
            {less, number(std::numbers::e), builder_.CreateFMul(less, number(0x1.4d57ee2b1013ap-53))});
    });
}

// SLEEF's pow of float64 is infinite for results within 2e-9 of the largest number. There a power of two is taken out
// of the base, which is exact if y is 1. For large y, whose powers of two overflow, the result is the square of the
// root.
llvm::Value* CpuEmitter::power(const std::string& symbol, Values operands) {
    llvm::Type* const type = operands[0]->getType();
    const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
    const auto size = [&](llvm::Value* value) { return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value); };
    const auto pow = [&](llvm::Value* x, llvm::Value* y) { return math_call(symbol, /*is_double=*/true, {x, y}); };
    llvm::Value* result = pow(operands[0], operands[1]);
    llvm::Value* infinity = number(std::numeric_limits<double>::infinity());
    return mend_rare(builder_.CreateFCmpOEQ(size(result), infinity), result, [&]() -> llvm::Value* {
        llvm::Value *x = size(operands[0]), *y = operands[1];
        llvm::Value* grows = builder_.CreateFCmpOGT(y, number(0.0));
        llvm::Value* scaled = builder_.CreateFMul(x, builder_.CreateSelect(grows, number(0.5), number(2.0)));
        llvm::Value* of_small = builder_.CreateFMul(pow(scaled, y), pow(number(2.0), size(y)));
        llvm::Value* root = pow(x, builder_.CreateFMul(y, number(0.5)));
        llvm::Value* is_small = builder_.CreateFCmpOLT(size(y), number(512.0));
        llvm::Value* mended = builder_.CreateSelect(is_small, of_small, builder_.CreateFMul(root, root));
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, mended, result);
    });
}

std::string CpuEmitter::math_symbol(const std::string& stem, bool is_double, const char* accuracy) const {
    const std::string width = std::to_string(cpu_.math_bits / (is_double ? 64 : 32));
    return "Sleef_" + stem + (is_double ? "d" : "f") + width + "_" + accuracy + cpu_.math_isa;
}

llvm::Value* CpuEmitter::math_call(const std::string& symbol, bool is_double, Values operands) {
    return in_registers(is_double, operands, [&](Values values) {
        llvm::Type* type = values[0]->getType();
        llvm::SmallVector<llvm::Type*, 2> parameters(values.size(), type);
        llvm::FunctionCallee callee =
            module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, parameters, false));
        auto* function = llvm::cast<llvm::Function>(callee.getCallee());
        function->setDoesNotThrow();
        function->setDoesNotAccessMemory();
        function->setWillReturn();
        return Registers{builder_.CreateCall(callee, values)};
    })[0];
}

// Applies `call`, which takes and returns full registers, to all lanes.
CpuEmitter::Registers CpuEmitter::in_registers(bool is_double, Values operands,
                                               const std::function<Registers(Values)>& call) {
    const int width = cpu_.math_bits / (is_double ? 64 : 32);
    if (!operands[0]->getType()->isVectorTy()) {
        Registers filled;
        for (llvm::Value* operand : operands)
            filled.push_back(builder_.CreateVectorSplat(static_cast<unsigned>(width), operand));
        Registers results = call(filled);
        for (llvm::Value*& result : results) result = builder_.CreateExtractElement(result, std::uint64_t{0});
        return results;
    }
    if (lanes_.count == width) return call(operands);

    // Cut into calls of `width` lanes; a short part repeats its last lane.
    Registers results;
    for (int first = 0; first < lanes_.count; first += width) {
        llvm::SmallVector<int, 16> lanes;
        for (int lane = 0; lane < width; ++lane) lanes.push_back(std::min(first + lane, lanes_.count - 1));
        Registers part;
        for (llvm::Value* operand : operands) part.push_back(builder_.CreateShuffleVector(operand, lanes));
        // Insert the parts at their places in the whole.
        llvm::SmallVector<int, 16> spread(static_cast<std::size_t>(lanes_.count), -1), join;
        for (int lane = 0; lane < width && first + lane < lanes_.count; ++lane)
            spread[static_cast<std::size_t>(first + lane)] = lane;
        for (int lane = 0; lane < lanes_.count; ++lane) join.push_back(lane < first ? lane : lanes_.count + lane);
        const Registers values = call(part);
        for (std::size_t i = 0; i < values.size(); ++i) {
            llvm::Value* placed = builder_.CreateShuffleVector(values[i], spread);
            if (first == 0)
                results.push_back(placed);
            else
                results[i] = builder_.CreateShuffleVector(results[i], placed, join);
        }
    }
    return results;
}

// SLEEF writes both results through a pointer, the first argument.
std::pair<llvm::Value*, llvm::Value*> CpuEmitter::sine_and_cosine(Scalar scalar, llvm::Value* a) {
    const bool is_double = scalar == Scalar::f64;
    const std::string symbol = math_symbol("sincos", is_double, options_.fast_math ? "u35" : "u10");
    const Registers both = in_registers(is_double, {a}, [&](Values values) {
        llvm::Type* type = values[0]->getType();
        auto* pair = llvm::StructType::get(type, type);
        Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        llvm::AllocaInst* memory = entry.CreateAlloca(pair);
        llvm::FunctionCallee callee = module_.getOrInsertFunction(
            symbol, llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy(), type}, false));
        auto* function = llvm::cast<llvm::Function>(callee.getCallee());
        function->setDoesNotThrow();
        function->setOnlyAccessesArgMemory();
        function->setWillReturn();
        function->addParamAttr(0, llvm::Attribute::getWithStructRetType(context_, pair));
        function->addParamAttr(0, llvm::Attribute::NoAlias);
        llvm::CallInst* made = builder_.CreateCall(callee, {memory, values[0]});
        made->addParamAttr(0, llvm::Attribute::getWithStructRetType(context_, pair));
        return Registers{builder_.CreateLoad(type, builder_.CreateStructGEP(pair, memory, 0)),
                         builder_.CreateLoad(type, builder_.CreateStructGEP(pair, memory, 1))};
    });
    return {both[0], both[1]};
}

}  // namespace weft::codegen
