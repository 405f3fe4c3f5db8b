// Transcendental functions. Those of math.def belong to the target; the others are composed of them here.
#include "codegen/emitter.h"

namespace weft::codegen {

using ir::Op;

llvm::Value* Emitter::math(Op op, Scalar scalar, llvm::Value* a, llvm::Value* b) {
    bool is_double = scalar == Scalar::f64;
    if (op == Op::erfinv || op == Op::erfcinv) {
        if (is_double) return inverse_error_function(a, op == Op::erfcinv);
        llvm::Value* wide = conversions_.cast(a, Scalar::f32, Scalar::f64);
        return conversions_.cast(inverse_error_function(wide, op == Op::erfcinv), Scalar::f64, Scalar::f32);
    }
    if (op == Op::asin || op == Op::acos) {  // clamped to [-1, 1]; NaN stays
        llvm::Value *one = llvm::ConstantFP::get(a->getType(), 1.0),
                    *minus_one = llvm::ConstantFP::get(a->getType(), -1.0);
        a = builder_.CreateSelect(builder_.CreateFCmpOGT(a, one), one, a);
        a = builder_.CreateSelect(builder_.CreateFCmpOLT(a, minus_one), minus_one, a);
    }
    llvm::SmallVector<llvm::Value*, 2> operands{a};
    if (b) operands.push_back(b);
    return math_function(op, scalar, operands);
}

// ---- sine and cosine of one angle, in one call that costs less than one and a half ----
//
// In adjoints only, which need both whenever the kernel has one of them. The last bit of the results may depend on the
// neighbouring lanes if some angles are beyond 125; a kernel's own results must not.

// False unless the kernel takes both sine and cosine of the angle. Otherwise all of its uses, in every region, call the
// same routine: the bits of the sine of one angle are the same everywhere.
bool Emitter::emit_angle(const ir::Operation& operation) {
    if ((operation.op != Op::sin && operation.op != Op::cos) || !has_sine_and_cosine() ||
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

// erfinv(x) and erfcinv(z) in f64, in two steps. The first guess is M. Giles, "Approximating the erfinv function", GPU
// Computing Gems 2, the single precision polynomials; in the far tail, the asymptotic sqrt(w - log(pi w) / 2). Then
// Halley steps on erfc(|y|) = z for z <= 1/2, or on erf(|y|) = 1 - z above: on either side the difference keeps its
// digits.
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

    // x = |erf| and z = 1 - x = erfc, of which the smaller one is exact; and the sign of the result.
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
        // Beyond the range of exp the guess is kept.
        y = select(builder_.CreateFCmpOEQ(sub(better, better), zero), better, y);
    }
    llvm::Value* infinite = builder_.CreateFCmpOEQ(z, zero);
    y = select(infinite, llvm::ConstantFP::getInfinity(type), y);
    y = select(builder_.CreateFCmpOEQ(x, zero), zero, y);
    llvm::Value* outside = builder_.CreateNot(builder_.CreateFCmpOGE(z, zero));  // also if a is NaN
    y = select(outside, llvm::ConstantFP::getNaN(type), y);
    if (!complementary) return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, y, a);
    return select(negative, builder_.CreateFNeg(y), y);
}

}  // namespace weft::codegen
