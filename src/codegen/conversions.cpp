#include "codegen/conversions.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cmath>

#include "types/float_format.h"

namespace weft::codegen {

namespace {

// A word of 32 bits, of one thread or of each lane, for the templates of types/float_format.h.
struct Word {
    llvm::IRBuilder<>* builder;
    llvm::Value* value;

    llvm::Value* constant(std::uint32_t number) const { return llvm::ConstantInt::get(value->getType(), number); }
    Word made(llvm::Value* other) const { return {builder, other}; }
};
struct Flag {
    llvm::Value* value;
};

Word number(Word like, std::uint32_t value) { return like.made(like.constant(value)); }
Word operator+(Word a, Word b) { return a.made(a.builder->CreateAdd(a.value, b.value)); }
Word operator|(Word a, Word b) { return a.made(a.builder->CreateOr(a.value, b.value)); }
Word operator^(Word a, Word b) { return a.made(a.builder->CreateXor(a.value, b.value)); }
Word operator+(Word a, std::uint32_t b) { return a + number(a, b); }
Word operator-(Word a, std::uint32_t b) { return a.made(a.builder->CreateSub(a.value, a.constant(b))); }
Word operator&(Word a, std::uint32_t b) { return a.made(a.builder->CreateAnd(a.value, a.constant(b))); }
Word operator|(Word a, std::uint32_t b) { return a | number(a, b); }
Word operator<<(Word a, int count) {
    return a.made(a.builder->CreateShl(a.value, a.constant(static_cast<std::uint32_t>(count))));
}
Word operator>>(Word a, int count) {
    return a.made(a.builder->CreateLShr(a.value, a.constant(static_cast<std::uint32_t>(count))));
}
Flag operator==(Word a, std::uint32_t b) { return {a.builder->CreateICmpEQ(a.value, a.constant(b))}; }
Flag operator<(Word a, std::uint32_t b) { return {a.builder->CreateICmpULT(a.value, a.constant(b))}; }
Flag operator>(Word a, std::uint32_t b) { return {a.builder->CreateICmpUGT(a.value, a.constant(b))}; }
Word choose(Flag condition, Word yes, Word no) {
    return yes.made(yes.builder->CreateSelect(condition.value, yes.value, no.value));
}
Word add_as_floats(Word a, Word b) {
    llvm::Type* integer = a.value->getType();
    llvm::Type* real = integer->getWithNewType(a.builder->getFloatTy());
    llvm::Value* sum =
        a.builder->CreateFAdd(a.builder->CreateBitCast(a.value, real), a.builder->CreateBitCast(b.value, real));
    return a.made(a.builder->CreateBitCast(sum, integer));
}

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, Scalar scalar) {
    switch (scalar) {
        case Scalar::boolean:
            return llvm::Type::getInt1Ty(context);
        case Scalar::f32:
            return llvm::Type::getFloatTy(context);
        case Scalar::f64:
            return llvm::Type::getDoubleTy(context);
        default:
            return llvm::Type::getIntNTy(context, static_cast<unsigned>(info(scalar).bits));
    }
}

llvm::Value* Conversions::cast(llvm::Value* a, Scalar from, Scalar to) {
    if (from == to) return a;
    const ScalarInfo &source = info(from), &target = info(to);
    llvm::Type* type = a->getType()->getWithNewType(register_type(builder_.getContext(), to));
    if (info(from).is_small_float()) return cast(widen(a, from), Scalar::f32, to);
    if (info(to).is_small_float()) {
        if (from == Scalar::f32) return narrow(a, to);
        if (source.is_int() && source.bits == 64) a = round_to_odd(a, source.is_signed());
        if (from != Scalar::f64) return cast(cast(a, from, Scalar::f64), Scalar::f64, to);
        return narrow(round_to_odd(a), to);
    }
    if (to == Scalar::boolean) {
        llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
        return source.is_float() ? builder_.CreateFCmpUNE(a, zero) : builder_.CreateICmpNE(a, zero);
    }
    if (source.is_float() && target.is_float())
        return target.bits > source.bits ? builder_.CreateFPExt(a, type) : builder_.CreateFPTrunc(a, type);
    if (source.is_float() && ptx_conversions_) return saturate_by_ptx(a, from, to);
    bool converts_in_lanes = target.bits < 32 || (target.bits == 32 && target.is_signed());
    if (source.is_float() && a->getType()->isVectorTy() && converts_in_lanes) return saturate(a, to);
    if (source.is_float())
        return builder_.CreateIntrinsic(target.is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                        {type, a->getType()}, {a});
    if (target.is_float()) return source.is_signed() ? builder_.CreateSIToFP(a, type) : builder_.CreateUIToFP(a, type);
    bool extend_sign = source.is_int() && source.is_signed();
    return extend_sign ? builder_.CreateSExtOrTrunc(a, type) : builder_.CreateZExtOrTrunc(a, type);
}

// LLVM would write comparisons around the instruction, which saturates by itself. It takes a NaN to 0 between types of
// 32 bits; others need a comparison (PTX ISA 9.0, cvt; emulator/src/lanes/convert.cpp has the numbers of an H200).
llvm::Value* Conversions::saturate_by_ptx(llvm::Value* a, Scalar from, Scalar to) {
    using llvm::Intrinsic::ID;
    const ScalarInfo& target = info(to);
    const bool is_wide = target.bits == 64, is_double = from == Scalar::f64;
    constexpr ID kInstructions[2][2][2] = {// by source, width and sign
                                           {{llvm::Intrinsic::nvvm_f2ui_rz, llvm::Intrinsic::nvvm_f2i_rz},
                                            {llvm::Intrinsic::nvvm_f2ull_rz, llvm::Intrinsic::nvvm_f2ll_rz}},
                                           {{llvm::Intrinsic::nvvm_d2ui_rz, llvm::Intrinsic::nvvm_d2i_rz},
                                            {llvm::Intrinsic::nvvm_d2ull_rz, llvm::Intrinsic::nvvm_d2ll_rz}}};
    llvm::Value* result = builder_.CreateIntrinsic(kInstructions[is_double][is_wide][target.is_signed()], {a});
    const auto number = [&](std::int64_t value) { return llvm::ConstantInt::getSigned(result->getType(), value); };
    if (is_wide || is_double) result = builder_.CreateSelect(builder_.CreateFCmpUNO(a, a), number(0), result);
    if (target.bits >= 32) return result;
    const std::int64_t most = (std::int64_t{1} << (target.is_signed() ? target.bits - 1 : target.bits)) - 1;
    const ID least = target.is_signed() ? llvm::Intrinsic::smin : llvm::Intrinsic::umin;
    result = builder_.CreateBinaryIntrinsic(least, result, number(most));
    if (target.is_signed()) result = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, result, number(-most - 1));
    return builder_.CreateTrunc(result, register_type(builder_.getContext(), to));
}

// Vectors of floats to integers of up to 32 bits. LLVM splits its saturating conversion into lanes with branches. The
// plain conversion is one instruction, for numbers within range.
llvm::Value* Conversions::saturate(llvm::Value* a, Scalar to) {
    const ScalarInfo& target = info(to);
    int value_bits = target.is_signed() ? target.bits - 1 : target.bits;
    auto number = [&](double value) { return llvm::ConstantFP::get(a->getType(), value); };
    llvm::Type* integer = a->getType()->getWithNewType(builder_.getInt32Ty());
    auto limit = [&](std::int64_t value) { return llvm::ConstantInt::getSigned(integer, value); };
    llvm::Value* above = builder_.CreateFCmpOGE(a, number(std::ldexp(1.0, value_bits)));
    llvm::Value* below = builder_.CreateFCmpOLT(a, number(target.is_signed() ? -std::ldexp(1.0, value_bits) : 0.0));
    llvm::Value* outside = builder_.CreateOr(builder_.CreateOr(above, below), builder_.CreateFCmpUNO(a, a));
    llvm::Value* inside = builder_.CreateSelect(outside, number(0.0), a);
    llvm::Value* result = builder_.CreateFPToSI(inside, integer);
    std::int64_t most = (std::int64_t{1} << value_bits) - 1;
    result = builder_.CreateSelect(above, limit(most), result);
    if (target.is_signed()) result = builder_.CreateSelect(below, limit(-most - 1), result);
    return builder_.CreateTrunc(result, a->getType()->getWithNewType(register_type(builder_.getContext(), to)));
}

llvm::Value* Conversions::widen(llvm::Value* bits, Scalar from) {
    llvm::Type* shape = bits->getType();
    llvm::Type* real = shape->getWithNewType(builder_.getFloatTy());
    if (from == Scalar::f16 && half_conversions_)
        return builder_.CreateFPExt(builder_.CreateBitCast(bits, shape->getWithNewType(builder_.getHalfTy())), real);
    const Word word{&builder_, builder_.CreateZExt(bits, shape->getWithNewType(builder_.getInt32Ty()))};
    return builder_.CreateBitCast(small_float::widen(word, info(from).format).value, real);
}

llvm::Value* Conversions::narrow(llvm::Value* a, Scalar to) {
    llvm::Type* shape = a->getType();
    llvm::Type* bits = shape->getWithNewType(register_type(builder_.getContext(), to));
    if (to == Scalar::f16 && half_conversions_)
        return builder_.CreateBitCast(builder_.CreateFPTrunc(a, shape->getWithNewType(builder_.getHalfTy())), bits);
    const Word word{&builder_, builder_.CreateBitCast(a, shape->getWithNewType(builder_.getInt32Ty()))};
    return builder_.CreateTrunc(small_float::narrow(word, info(to).format).value, bits);
}

// Rounds to odd before a second rounding, so that a small float is rounded as from `a` itself. A float64 becomes a
// float32, as in odd_float_bits(); an integer of 64 bits one that a float64 holds.
llvm::Value* Conversions::round_to_odd(llvm::Value* a, bool is_signed) {
    llvm::Type* shape = a->getType();
    if (shape->isIntOrIntVectorTy()) {
        constexpr std::uint64_t kLast = 0xFFFF, kHalf = 0x8000;  // more bits than a float64 lacks
        auto constant = [&](std::uint64_t value) { return llvm::ConstantInt::get(shape, value); };
        llvm::Value* rest = builder_.CreateICmpNE(builder_.CreateAnd(a, constant(kLast)), constant(0));
        llvm::Value* odd = builder_.CreateOr(builder_.CreateAnd(a, constant(~kLast)),
                                             builder_.CreateSelect(rest, constant(kHalf), constant(0)));
        // Integers below 2^53 in magnitude are exact already.
        llvm::Value* moved = is_signed ? builder_.CreateAdd(a, constant(1ull << 53)) : a;
        llvm::Value* is_short = builder_.CreateICmpULT(moved, constant(is_signed ? 1ull << 54 : 1ull << 53));
        return builder_.CreateSelect(is_short, a, odd);
    }
    llvm::Type* integer = shape->getWithNewType(builder_.getInt32Ty());
    llvm::Value* near = builder_.CreateFPTrunc(a, shape->getWithNewType(builder_.getFloatTy()));
    llvm::Value* back = builder_.CreateFPExt(near, shape);
    llvm::Value* bits = builder_.CreateBitCast(near, integer);
    llvm::Value* one = llvm::ConstantInt::get(integer, 1);
    llvm::Value* is_away = builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                                  builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a));
    llvm::Value* toward = builder_.CreateSelect(is_away, builder_.CreateSub(bits, one), bits);
    llvm::Value* is_inexact = builder_.CreateFCmpONE(back, a);
    bits = builder_.CreateSelect(is_inexact, builder_.CreateOr(toward, one), bits);
    return builder_.CreateBitCast(bits, near->getType());
}

}  // namespace weft::codegen
