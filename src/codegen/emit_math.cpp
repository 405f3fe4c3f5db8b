// Transcendental functions through SLEEF's vector routines.
//
// One routine per function and type: the one of the machine's full register width. More lanes are several calls, fewer
// lanes and single numbers fill a register up. So a number has the same sine in the scalar kernel, in the vector kernel
// and in its tail. The jit resolves the symbols; here they are plain declarations, marked so that LLVM may merge and
// hoist the calls.
#include "codegen/emitter.h"
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
#define WEFT_MATH(op, stem, accuracy, fast, operands) {Op::op, stem, accuracy, fast},
#include "codegen/math.def"
#undef WEFT_MATH
};

}  // namespace

llvm::Value* Emitter::math(Op op, Scalar scalar, llvm::Value* a, llvm::Value* b) {
    bool is_double = scalar == Scalar::f64;
    if (op == Op::erfinv || op == Op::erfcinv) {
        if (is_double) return inverse_error_function(a, op == Op::erfcinv);
        llvm::Value* wide = cast(a, Scalar::f32, Scalar::f64);
        return cast(inverse_error_function(wide, op == Op::erfcinv), Scalar::f64, Scalar::f32);
    }
    if (op == Op::asin || op == Op::acos) {  // clamped to [-1, 1]; NaN stays
        llvm::Value *one = llvm::ConstantFP::get(a->getType(), 1.0),
                    *minus_one = llvm::ConstantFP::get(a->getType(), -1.0);
        a = builder_.CreateSelect(builder_.CreateFCmpOGT(a, one), one, a);
        a = builder_.CreateSelect(builder_.CreateFCmpOLT(a, minus_one), minus_one, a);
    }
    for (const MathFunction& function : kFunctions) {
        if (function.op != op) continue;
        std::string width = std::to_string(machine_.math_bits / (is_double ? 64 : 32));
        std::string symbol = std::string("Sleef_") + function.stem + (is_double ? "d" : "f") + width + "_" +
                             (options_.fast_math ? function.fast : function.accuracy) + machine_.math_isa;
        if (op == Op::rem) {
            // SLEEF's fmod holds while the quotient is below 1e38 (f32) or 1e300 (f64). The remainders of two multiples
            // of b by powers of two, which are exact or infinite, come first and keep every quotient below that.
            llvm::Value* power = llvm::ConstantFP::get(a->getType(), is_double ? 0x1p900 : 0x1p100);
            llvm::Value* multiple = builder_.CreateFMul(b, power);
            a = math_call(symbol, is_double, {a, builder_.CreateFMul(multiple, power)});
            a = math_call(symbol, is_double, {a, multiple});
        }
        llvm::SmallVector<llvm::Value*, 2> operands{a};
        if (b) operands.push_back(b);
        return math_call(symbol, is_double, operands);
    }
    throw InternalError(std::string("codegen: no math routine for '") + ir::op_name(op) + "'");
}

llvm::Value* Emitter::math_call(const std::string& symbol, bool is_double, Values operands) {
    llvm::Type* scalar = is_double ? builder_.getDoubleTy() : builder_.getFloatTy();
    int width = machine_.math_bits / (is_double ? 64 : 32);
    auto* type = llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
    llvm::SmallVector<llvm::Type*, 2> parameters(operands.size(), type);
    llvm::FunctionCallee callee = module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, parameters, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    function->setDoesNotAccessMemory();
    function->setWillReturn();

    if (!operands[0]->getType()->isVectorTy()) {
        llvm::SmallVector<llvm::Value*, 2> filled;
        for (llvm::Value* operand : operands)
            filled.push_back(builder_.CreateVectorSplat(static_cast<unsigned>(width), operand));
        return builder_.CreateExtractElement(builder_.CreateCall(callee, filled), std::uint64_t{0});
    }
    if (lanes_ == width) return builder_.CreateCall(callee, operands);

    // Cut into calls of `width` lanes; a part that is too short repeats its last lane.
    llvm::Value* result = nullptr;
    for (int first = 0; first < lanes_; first += width) {
        llvm::SmallVector<int, 16> lanes;
        for (int lane = 0; lane < width; ++lane) lanes.push_back(std::min(first + lane, lanes_ - 1));
        llvm::SmallVector<llvm::Value*, 2> part;
        for (llvm::Value* operand : operands) part.push_back(builder_.CreateShuffleVector(operand, lanes));
        llvm::Value* values = builder_.CreateCall(callee, part);
        // Put the part in its place of the whole.
        llvm::SmallVector<int, 16> spread(static_cast<std::size_t>(lanes_), -1);
        for (int lane = 0; lane < width && first + lane < lanes_; ++lane)
            spread[static_cast<std::size_t>(first + lane)] = lane;
        llvm::Value* placed = builder_.CreateShuffleVector(values, spread);
        if (!result) {
            result = placed;
            continue;
        }
        llvm::SmallVector<int, 16> join;
        for (int lane = 0; lane < lanes_; ++lane) join.push_back(lane < first ? lane : lanes_ + lane);
        result = builder_.CreateShuffleVector(result, placed, join);
    }
    return result;
}

// erfinv(x) and erfcinv(z) in f64. A first guess (M. Giles, "Approximating the erfinv function", GPU Computing Gems 2,
// the single precision polynomials; in the far tail the asymptotic sqrt(w - log(pi w) / 2)), then Halley steps on
// erfc(|y|) = z with z <= 1/2, or on erf(|y|) = 1 - z above: on either side the difference keeps its digits.
llvm::Value* Emitter::inverse_error_function(llvm::Value* a, bool complementary) {
    llvm::Type* type = a->getType();
    auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
    auto add = [&](llvm::Value* x, llvm::Value* y) { return builder_.CreateFAdd(x, y); };
    auto sub = [&](llvm::Value* x, llvm::Value* y) { return builder_.CreateFSub(x, y); };
    auto mul = [&](llvm::Value* x, llvm::Value* y) { return builder_.CreateFMul(x, y); };
    auto select = [&](llvm::Value* c, llvm::Value* x, llvm::Value* y) { return builder_.CreateSelect(c, x, y); };
    auto call = [&](Op op, llvm::Value* x) { return math(op, Scalar::f64, x); };
    auto square_root = [&](llvm::Value* x) { return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); };
    auto polynomial = [&](llvm::Value* x, std::initializer_list<double> coefficients) {
        llvm::Value* sum = nullptr;
        for (double c : coefficients) sum = sum ? add(mul(sum, x), constant(c)) : constant(c);
        return sum;
    };
    llvm::Value *zero = constant(0.0), *one = constant(1.0);

    // x = |erf| and z = 1 - x = erfc, each exact where it is the smaller one; and the sign of the result.
    llvm::Value *x, *z, *negative;
    if (complementary) {
        negative = builder_.CreateFCmpOGT(a, one);
        z = select(negative, sub(constant(2.0), a), a);
        x = sub(one, z);
    } else {
        negative = builder_.CreateFCmpOLT(a, zero);
        x = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
        z = sub(one, x);
    }
    llvm::Value* w = builder_.CreateFNeg(call(Op::log, mul(z, add(one, x))));
    llvm::Value* middle = mul(
        x, polynomial(sub(w, constant(2.5)), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                              0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}));
    llvm::Value* root = square_root(w);
    llvm::Value* tail = mul(
        x, polynomial(sub(root, constant(3.0)), {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                                 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}));
    llvm::Value* far = square_root(sub(w, mul(constant(0.5), call(Op::log, mul(constant(3.14159265358979323846), w)))));
    llvm::Value* y = select(builder_.CreateFCmpOLT(w, constant(5.0)), middle,
                            select(builder_.CreateFCmpOLT(w, constant(16.0)), tail, far));

    llvm::Value* small_tail = builder_.CreateFCmpOLT(z, constant(0.5));
    for (int step = 0; step < 3; ++step) {
        llvm::Value* error = select(small_tail, sub(z, call(Op::erfc, y)), sub(call(Op::erf, y), x));
        llvm::Value* slope = mul(constant(1.12837916709551257390), call(Op::exp, builder_.CreateFNeg(mul(y, y))));
        llvm::Value* newton = builder_.CreateFDiv(error, slope);
        llvm::Value* better = sub(y, builder_.CreateFDiv(newton, add(one, mul(y, newton))));
        // Beyond the range of exp the guess is all there is to say.
        y = select(builder_.CreateFCmpOEQ(sub(better, better), zero), better, y);
    }
    llvm::Value* infinite = builder_.CreateFCmpOEQ(z, zero);
    y = select(infinite, llvm::ConstantFP::getInfinity(type), y);
    y = select(builder_.CreateFCmpOEQ(x, zero), zero, y);
    llvm::Value* outside = builder_.CreateNot(builder_.CreateFCmpOGE(z, zero));  // also where a is NaN
    y = select(outside, llvm::ConstantFP::getNaN(type), y);
    if (!complementary) return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, y, a);
    return select(negative, builder_.CreateFNeg(y), y);
}

}  // namespace weft::codegen
