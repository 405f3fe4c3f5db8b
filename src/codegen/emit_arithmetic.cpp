// The arithmetic of scalars: one operation on one component, of one lane or of all.
//
// Every rule applies to llvm::Value* that are scalars or vectors. The switches name every operation of their class
// (ir/ops.def): a missing rule does not compile.
//
// Small floats are bits in an integer: each operation widens to f32, computes and rounds once (conversions.cpp).
#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;

llvm::Value* Emitter::unary(Op op, Scalar scalar, llvm::Value* a) {
    if (op == Op::detach || op == Op::detach_reverse) return a;
    if (info(scalar).is_small_float())
        return conversions_.narrow(unary(op, Scalar::f32, conversions_.widen(a, scalar)), scalar);
    const auto intrinsic = [&](llvm::Intrinsic::ID id) { return builder_.CreateUnaryIntrinsic(id, a); };
    const bool is_float = info(scalar).is_float();
    // An integer is rounded already.
    const auto rounded = [&](llvm::Intrinsic::ID id) { return is_float ? intrinsic(id) : a; };
    switch (op) {
        case Op::neg:
            return is_float ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
        case Op::abs:
            if (is_float) return intrinsic(llvm::Intrinsic::fabs);
            if (!info(scalar).is_signed()) return a;
            return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
        case Op::invert:
            return builder_.CreateNot(a);
        case Op::sqrt:
            return intrinsic(llvm::Intrinsic::sqrt);
        case Op::floor:
            return rounded(llvm::Intrinsic::floor);
        case Op::ceil:
            return rounded(llvm::Intrinsic::ceil);
        case Op::trunc:
            return rounded(llvm::Intrinsic::trunc);
        case Op::round:
            return rounded(llvm::Intrinsic::round);
        case Op::rint:
            return rounded(llvm::Intrinsic::rint);
        case Op::cbrt:
        case Op::sin:
        case Op::cos:
        case Op::tan:
        case Op::asin:
        case Op::acos:
        case Op::atan:
        case Op::sinh:
        case Op::cosh:
        case Op::tanh:
        case Op::exp:
        case Op::log:
        case Op::log2:
        case Op::log10:
        case Op::erf:
        case Op::erfc:
        case Op::erfinv:
        case Op::erfcinv:
            return math(op, scalar, a);
        case Op::detach:
        case Op::detach_reverse:
#define WEFT_CLASS_binary(id) case Op::id:
#define WEFT_CLASS_compare(id) case Op::id:
#define WEFT_CLASS_classify(id) case Op::id:
#define WEFT_CLASS_atomic(id) case Op::id:
#define WEFT_CLASS_other(id) case Op::id:
#include "ir/ops.def"
            break;
    }
    throw InternalError(std::string("codegen: '") + ir::op_name(op) + "' is not a unary operation");
}

llvm::Value* Emitter::binary(Op op, Scalar scalar, llvm::Value* a, llvm::Value* b) {
    if (info(scalar).is_small_float())
        return conversions_.narrow(
            binary(op, Scalar::f32, conversions_.widen(a, scalar), conversions_.widen(b, scalar)), scalar);
    const bool is_float = info(scalar).is_float(), is_signed = info(scalar).is_signed();
    const auto intrinsic = [&](llvm::Intrinsic::ID id) { return builder_.CreateBinaryIntrinsic(id, a, b); };
    const auto shift_count = [&] {
        return builder_.CreateAnd(
            b, llvm::ConstantInt::get(b->getType(), static_cast<std::uint64_t>(info(scalar).bits - 1)));
    };
    switch (op) {
        case Op::add:
            return is_float ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
        case Op::sub:
            return is_float ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
        case Op::mul:
            return is_float ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
        case Op::div:
            return is_float ? builder_.CreateFDiv(a, b) : integer_division(op, scalar, a, b);
        case Op::rem:
            return is_float ? math(op, scalar, a, b) : integer_division(op, scalar, a, b);
        case Op::min:
        case Op::max: {
            const bool is_min = op == Op::min;
            if (is_float) return intrinsic(is_min ? llvm::Intrinsic::minnum : llvm::Intrinsic::maxnum);
            if (is_signed) return intrinsic(is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax);
            return intrinsic(is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
        }
        case Op::pow:
        case Op::atan2:
            return math(op, scalar, a, b);
        case Op::copysign:
            return intrinsic(llvm::Intrinsic::copysign);
        case Op::and_:
            return lanes_.logic(llvm::Instruction::And, a, b);
        case Op::or_:
            return lanes_.logic(llvm::Instruction::Or, a, b);
        case Op::xor_:
            return lanes_.logic(llvm::Instruction::Xor, a, b);
        case Op::shl:
            return builder_.CreateShl(a, shift_count());
        case Op::shr:
            return is_signed ? builder_.CreateAShr(a, shift_count()) : builder_.CreateLShr(a, shift_count());
#define WEFT_CLASS_unary(id) case Op::id:
#define WEFT_CLASS_compare(id) case Op::id:
#define WEFT_CLASS_classify(id) case Op::id:
#define WEFT_CLASS_atomic(id) case Op::id:
#define WEFT_CLASS_other(id) case Op::id:
#include "ir/ops.def"
            break;
    }
    throw InternalError(std::string("codegen: '") + ir::op_name(op) + "' is not a binary operation");
}

// Division never traps: x / 0 and the one quotient that overflows are 0, and so are their remainders. SIMD units divide
// no integers. Up to 32 bits the quotient in f64 is right. The operands are exact, and a quotient that is no integer is
// at least 2^-31 (relatively) from the next integer, far more than the rounding of f64.
llvm::Value* Emitter::integer_division(Op op, Scalar scalar, llvm::Value* a, llvm::Value* b) {
    bool is_signed = info(scalar).is_signed(), is_division = op == Op::div;
    llvm::Type* type = a->getType();
    llvm::Value *zero = llvm::Constant::getNullValue(type), *one = llvm::ConstantInt::get(type, 1);
    llvm::Constant* constant = llvm::dyn_cast<llvm::Constant>(b);
    if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* divisor = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    bool harmless = divisor && !divisor->isZero() && !(is_signed && divisor->isMinusOne());

    llvm::Value *bad = nullptr, *safe = b;
    if (!harmless) {
        bad = builder_.CreateICmpEQ(b, zero);
        if (is_signed) {
            llvm::Value* lowest =
                llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
            llvm::Value* overflow = builder_.CreateAnd(builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)),
                                                       builder_.CreateICmpEQ(a, lowest));
            bad = builder_.CreateOr(bad, overflow);
        }
        safe = builder_.CreateSelect(bad, one, b);
    }
    llvm::Value* result;
    if (type->isVectorTy() && !divisor && info(scalar).bits <= 32) {
        llvm::Type* real = lanes_.of(builder_.getDoubleTy());
        auto to_real = [&](llvm::Value* v) {
            return is_signed ? builder_.CreateSIToFP(v, real) : builder_.CreateUIToFP(v, real);
        };
        llvm::Value* quotient = builder_.CreateFDiv(to_real(a), to_real(safe));
        result = is_signed ? builder_.CreateFPToSI(quotient, type) : builder_.CreateFPToUI(quotient, type);
        if (!is_division) result = builder_.CreateSub(a, builder_.CreateMul(result, safe));
    } else if (is_division) {
        result = is_signed ? builder_.CreateSDiv(a, safe) : builder_.CreateUDiv(a, safe);
    } else {
        result = is_signed ? builder_.CreateSRem(a, safe) : builder_.CreateURem(a, safe);
    }
    return bad ? builder_.CreateSelect(bad, zero, result) : result;
}

llvm::Value* Emitter::compare(Op op, Scalar scalar, llvm::Value* a, llvm::Value* b) {
    using Predicate = llvm::CmpInst::Predicate;
    if (info(scalar).is_small_float())
        return compare(op, Scalar::f32, conversions_.widen(a, scalar), conversions_.widen(b, scalar));
    bool is_float = info(scalar).is_float(), is_signed = info(scalar).is_signed();
    auto pick = [&](Predicate real, Predicate with_sign, Predicate without) {
        if (is_float) return builder_.CreateFCmp(real, a, b);
        return builder_.CreateICmp(is_signed ? with_sign : without, a, b);
    };
    switch (op) {
        case Op::cmp_lt:
            return pick(Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT);
        case Op::cmp_le:
            return pick(Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE);
        case Op::cmp_gt:
            return pick(Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT);
        case Op::cmp_ge:
            return pick(Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE);
        case Op::cmp_eq:
            return pick(Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ);
        case Op::cmp_ne:
            return pick(Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE);
#define WEFT_CLASS_unary(id) case Op::id:
#define WEFT_CLASS_binary(id) case Op::id:
#define WEFT_CLASS_classify(id) case Op::id:
#define WEFT_CLASS_atomic(id) case Op::id:
#define WEFT_CLASS_other(id) case Op::id:
#include "ir/ops.def"
            break;
    }
    throw InternalError(std::string("codegen: '") + ir::op_name(op) + "' is not a comparison");
}

llvm::Value* Emitter::classify(Op op, Scalar scalar, llvm::Value* a) {
    if (info(scalar).is_small_float()) return classify(op, Scalar::f32, conversions_.widen(a, scalar));
    llvm::Value* infinity = llvm::ConstantFP::getInfinity(a->getType());
    llvm::Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    switch (op) {
        case Op::isnan:
            return builder_.CreateFCmpUNO(a, a);
        case Op::isinf:
            return builder_.CreateFCmpOEQ(magnitude, infinity);
        case Op::isfinite:
            return builder_.CreateFCmpOLT(magnitude, infinity);
#define WEFT_CLASS_unary(id) case Op::id:
#define WEFT_CLASS_binary(id) case Op::id:
#define WEFT_CLASS_compare(id) case Op::id:
#define WEFT_CLASS_atomic(id) case Op::id:
#define WEFT_CLASS_other(id) case Op::id:
#include "ir/ops.def"
            break;
    }
    throw InternalError(std::string("codegen: '") + ir::op_name(op) + "' is not a classification");
}

}  // namespace weft::codegen
