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
        const std::string symbol =
            math_symbol(function.stem, is_double, options_.fast_math ? function.fast : function.accuracy);
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

std::string Emitter::math_symbol(const std::string& stem, bool is_double, const char* accuracy) const {
    const std::string width = std::to_string(machine_.math_bits / (is_double ? 64 : 32));
    return "Sleef_" + stem + (is_double ? "d" : "f") + width + "_" + accuracy + machine_.math_isa;
}

llvm::Value* Emitter::math_call(const std::string& symbol, bool is_double, Values operands) {
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

// What `call`, which takes and gives full registers, makes of all lanes.
Emitter::Registers Emitter::in_registers(bool is_double, Values operands,
                                         const std::function<Registers(Values)>& call) {
    const int width = machine_.math_bits / (is_double ? 64 : 32);
    if (!operands[0]->getType()->isVectorTy()) {
        Registers filled;
        for (llvm::Value* operand : operands)
            filled.push_back(builder_.CreateVectorSplat(static_cast<unsigned>(width), operand));
        Registers results = call(filled);
        for (llvm::Value*& result : results) result = builder_.CreateExtractElement(result, std::uint64_t{0});
        return results;
    }
    if (lanes_ == width) return call(operands);

    // Cut into calls of `width` lanes; a part that is too short repeats its last lane.
    Registers results;
    for (int first = 0; first < lanes_; first += width) {
        llvm::SmallVector<int, 16> lanes;
        for (int lane = 0; lane < width; ++lane) lanes.push_back(std::min(first + lane, lanes_ - 1));
        Registers part;
        for (llvm::Value* operand : operands) part.push_back(builder_.CreateShuffleVector(operand, lanes));
        // Put the parts in their place of the whole.
        llvm::SmallVector<int, 16> spread(static_cast<std::size_t>(lanes_), -1), join;
        for (int lane = 0; lane < width && first + lane < lanes_; ++lane)
            spread[static_cast<std::size_t>(first + lane)] = lane;
        for (int lane = 0; lane < lanes_; ++lane) join.push_back(lane < first ? lane : lanes_ + lane);
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

// ---- sine and cosine of one angle, by one call that costs less than one and a half ----
//
// In adjoints only, where both of them come up wherever the kernel has one. The last bit of these may depend on the
// neighbouring lanes, where some angles are beyond 125: a kernel's own results must not.

// False where nobody takes both of the angle. Where somebody does, in whatever region, all take the same routine: the
// bits of the sine of one angle are the same everywhere.
bool Emitter::emit_angle(const ir::Operation& operation) {
    if ((operation.op != Op::sin && operation.op != Op::cos) || !machine_.returns_pairs_in_memory ||
        !plan_.arithmetic.paired_angles.contains(operation.operands[0]))
        return false;
    if (done_angles_.erase(&operation) > 0) return true;
    const auto found = plan_.arithmetic.angle_partners.find(&operation);
    LaneValue own{operation.result()->type, {}, {}}, others = own;
    for (Leaf& angle : value(operation.operands[0]).leaves) {
        std::pair<llvm::Value*, llvm::Value*> both;
        own.leaves.push_back(lift({&angle}, [&](Values v) {
            both = sine_and_cosine(operation.result()->type.scalar(), v[0]);
            return operation.op == Op::sin ? both.first : both.second;
        }));
        llvm::Value* partner = operation.op == Op::sin ? both.second : both.first;
        others.leaves.push_back(own.leaves.back().uniform() ? Leaf::of_scalar(partner) : Leaf::of_vector(partner));
    }
    set(operation.result(), std::move(own));
    if (found == plan_.arithmetic.angle_partners.end()) return true;
    set(found->second->result(), std::move(others));
    done_angles_.insert(found->second);
    return true;
}

// SLEEF writes the two registers to where its first argument says.
std::pair<llvm::Value*, llvm::Value*> Emitter::sine_and_cosine(Scalar scalar, llvm::Value* a) {
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
