// Operations on numbers, component by component, for uniform, linear and varying values: arithmetic (for one component:
// emit_arithmetic.cpp), select and casts.
//
// Linear values (first lane's number and a step) go through + - * << and casts as scalars. Beside a 32-bit index we
// keep `wide`, the same index computed in 64 bits from the thread's 64-bit coordinate. Addresses use `wide`, so that no
// loop extends and truncates its index, and launches of more than 2^31 threads address correctly. The two differ only
// if the 32-bit index has wrapped, and a wrapped index is out of range.
#include <llvm/IR/MDBuilder.h>

#include <cmath>
#include <cstring>

#include "codegen/emitter.h"
#include "ir/indices.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// In code for huge arrays; the same operations as in transform::narrow_extents().
bool keeps_wide(Op op) {
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::min || op == Op::max || op == Op::div ||
           op == Op::rem;
}
bool keeps_linear(Op op) { return op == Op::add || op == Op::sub || op == Op::mul || op == Op::shl || op == Op::neg; }

}  // namespace

llvm::Value* Emitter::number(Scalar scalar, Number number) {
    if (scalar == Scalar::boolean) return builder_.getInt1(number.is_float ? number.f != 0.0 : number.i != 0);
    llvm::Type* type = register_type(scalar);
    if (type->isFloatingPointTy()) return llvm::ConstantFP::get(type, number.as_double());
    std::uint64_t bits = 0;
    write_scalar(scalar, number, &bits);
    return llvm::ConstantInt::get(type, bits);
}

llvm::Value* Emitter::wide(Leaf& leaf, Scalar scalar) {
    if (leaf.wide) return leaf.wide;
    bool is_signed = info(scalar).is_signed();
    return is_signed ? builder_.CreateSExt(leaf.scalar, builder_.getInt64Ty())
                     : builder_.CreateZExt(leaf.scalar, builder_.getInt64Ty());
}

const Operation* Emitter::fusable_product(const ir::Value* v) const {
    const bool is_fused = machine_.fma && v != unfused_ && plan_.arithmetic.fused_products.contains(v);
    return is_fused ? v->definition : nullptr;
}

llvm::Value* Emitter::fused(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

void Emitter::emit_componentwise(const Operation& operation) {
    const ir::Value* result = operation.result();
    if (operation.op == Op::mul && fusable_product(result)) return;  // the sum that uses it computes it
    if (emit_angle(operation)) return;
    Scalar scalar = result->type.scalar();
    int count = leaf_count(result->type);
    LaneValue whole{result->type, {}, {}};

    if (operation.operands.size() == 1) {
        LaneValue& a = value(operation.operands[0]);
        for (int i = 0; i < count; ++i)
            whole.leaves.push_back(unary_leaf(operation.op, scalar, a.leaves[static_cast<std::size_t>(i)]));
        // neg of an index stays linear
        if (operation.op == Op::neg && count == 1 && !a.leaves[0].varying() && !varying(result)) {
            whole.leaves[0] = Leaf::of_linear(unary(Op::neg, scalar, a.leaves[0].scalar), step_of(result));
            if (a.leaves[0].wide) whole.leaves[0].wide = builder_.CreateNeg(a.leaves[0].wide);
        }
        return set(result, std::move(whole));
    }

    bool sum = operation.op == Op::add || operation.op == Op::sub;
    const Operation* left = sum ? fusable_product(operation.operands[0]) : nullptr;
    const Operation* right = sum ? fusable_product(operation.operands[1]) : nullptr;
    if (left && right) {  // one of two products is fused, the other computed by itself
        unfused_ = operation.operands[0];
        emit_componentwise(*left);
        unfused_ = nullptr;
        left = nullptr;
    }
    bool divides = operation.op == Op::div || operation.op == Op::rem;
    for (int n = 0; n < count; ++n) {
        std::size_t i = static_cast<std::size_t>(n);
        if (divides && options_.debug && info(scalar).is_int()) {
            llvm::Value* divisor = value(operation.operands[1]).leaves[i].scalar;
            check(operation, builder_.CreateICmpNE(divisor, llvm::Constant::getNullValue(divisor->getType())),
                  FaultKind::division, i64(0), i64(0), 0);
        }
        if (const Operation* product = left ? left : right) {
            Leaf &a = value(product->operands[0]).leaves[i], &b = value(product->operands[1]).leaves[i];
            Leaf& c = value(operation.operands[left ? 1 : 0]).leaves[i];
            whole.leaves.push_back(lift({&a, &b, &c}, [&](Values v) {
                if (operation.op == Op::add) return fused(v[0], v[1], v[2]);
                return left ? fused(v[0], v[1], builder_.CreateFNeg(v[2]))
                            : fused(builder_.CreateFNeg(v[0]), v[1], v[2]);
            }));
        } else {
            whole.leaves.push_back(binary_leaf(operation, scalar, value(operation.operands[0]).leaves[i],
                                               value(operation.operands[1]).leaves[i]));
        }
    }
    set(result, std::move(whole));
}

Leaf Emitter::unary_leaf(Op op, Scalar scalar, Leaf& a) {
    return lift({&a}, [&](Values v) { return unary(op, scalar, v[0]); });
}

Leaf Emitter::binary_leaf(const Operation& operation, Scalar scalar, Leaf& a, Leaf& b) {
    const ir::Value* result = operation.result();
    bool index = info(scalar).is_int() && result->type.is_scalar() && keeps_linear(operation.op);
    if (options_.huge && scalar == Scalar::i32 && result->type.is_scalar() && keeps_wide(operation.op) &&
        (a.wide || b.wide)) {
        Leaf leaf = Leaf::of_scalar(binary(operation.op, scalar, a.scalar, b.scalar));
        leaf.wide = binary(operation.op, Scalar::i64, wide(a, scalar), wide(b, scalar));
        return leaf;
    }
    if (!index || a.varying() || b.varying() || varying(result))
        return lift({&a, &b}, [&](Values v) { return binary(operation.op, scalar, v[0], v[1]); });

    Leaf leaf = Leaf::of_linear(binary(operation.op, scalar, a.scalar, b.scalar), step_of(result));
    bool has_wide = (a.wide || b.wide) && (scalar == Scalar::i32 || scalar == Scalar::i64);
    if (has_wide && operation.op != Op::shl && !options_.debug)
        leaf.wide = binary(operation.op, Scalar::i64, wide(a, scalar), wide(b, scalar));
    return leaf;
}

void Emitter::emit_fma(const Operation& operation) {
    const ir::Value* result = operation.result();
    Scalar scalar = result->type.scalar();
    LaneValue whole{result->type, {}, {}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(leaf_count(result->type)); ++i) {
        Leaf &a = value(operation.operands[0]).leaves[i], &b = value(operation.operands[1]).leaves[i];
        Leaf& c = value(operation.operands[2]).leaves[i];
        whole.leaves.push_back(lift({&a, &b, &c}, [&](Values v) {
            if (!info(scalar).is_small_float()) return fused(v[0], v[1], v[2]);
            return conversions_.narrow(fused(conversions_.widen(v[0], scalar), conversions_.widen(v[1], scalar),
                                             conversions_.widen(v[2], scalar)),
                                       scalar);
        }));
    }
    set(result, std::move(whole));
}

void Emitter::emit_compare(const Operation& operation) {
    Scalar scalar = operation.operands[0]->type.scalar();
    Leaf& a = leaf(operation.operands[0]);
    if (operation.operands.size() == 1) {
        return set(operation.result(), lift({&a}, [&](Values v) { return classify(operation.op, scalar, v[0]); }));
    }
    Leaf& b = leaf(operation.operands[1]);
    if (options_.huge && scalar == Scalar::i32 && (a.wide || b.wide))
        return set(operation.result(),
                   Leaf::of_scalar(compare(operation.op, Scalar::i64, wide(a, scalar), wide(b, scalar))));
    set(operation.result(), lift({&a, &b}, [&](Values v) { return compare(operation.op, scalar, v[0], v[1]); }));
}

void Emitter::emit_select(const Operation& operation) {
    Leaf& condition = leaf(operation.operands[0]);
    LaneValue &a = value(operation.operands[1]), &b = value(operation.operands[2]);
    if (condition.varying() && ir::as_written(operation.result()) && !options_.debug)
        return set(operation.result(), from_end_in_lanes(condition.vector, a, b));
    if (condition.varying()) return set(operation.result(), blend(condition.vector, a, b));
    if (from_start_.contains(&operation)) return set(operation.result(), b);
    const bool is_index = lanes_.count == 1 && ir::as_written(operation.result());
    if (const ir::Value* extent = is_index ? ir::extent_of(operation.result()) : nullptr)
        return set(operation.result(), from_end(operation, condition.scalar, b.leaves[0], leaf(extent)));
    LaneValue whole{operation.result()->type, {}, a.root == b.root ? a.root : MemoryRoot{}};
    for (std::size_t i = 0; i < a.leaves.size(); ++i) {
        Leaf &left = a.leaves[i], &right = b.leaves[i];
        bool scalar = !left.varying() && !right.varying() && left.step == right.step;
        if (scalar && left.scalar == right.scalar)
            whole.leaves.push_back(left);
        else if (scalar) {
            whole.leaves.push_back(
                Leaf::of_linear(builder_.CreateSelect(condition.scalar, left.scalar, right.scalar), left.step));
            if (options_.huge && operation.result()->type == i32_type() && (left.wide || right.wide))
                whole.leaves.back().wide =
                    builder_.CreateSelect(condition.scalar, wide(left, Scalar::i32), wide(right, Scalar::i32));
        } else
            whole.leaves.push_back(
                Leaf::of_vector(builder_.CreateSelect(condition.scalar, vector(left), vector(right))));
    }
    set(operation.result(), std::move(whole));
}

void Emitter::emit_cast(const Operation& operation) {
    const ir::Value* result = operation.result();
    LaneValue& source = value(operation.operands[0]);
    Scalar from = operation.operands[0]->type.scalar(), to = result->type.scalar();
    LaneValue whole{result->type, {}, {}};
    // Exact 64-bit sources: the coordinates of a thread, and all wide values in code for huge arrays.
    const ir::Operation* of = operation.operands[0]->definition;
    const bool is_exact = (of && of->op == Op::tid && info(to).is_int()) || options_.huge;
    for (Leaf& a : source.leaves) {
        if (from == Scalar::i32 && a.wide && is_exact && info(to).bits == 64 && (a.uniform() || !varying(result))) {
            Leaf number = Leaf::of_linear(conversions_.cast(a.wide, Scalar::i64, to), step_of(result));
            if (to == Scalar::i64) number.wide = number.scalar;
            whole.leaves.push_back(number);
            continue;
        }
        if (a.linear() && !varying(result)) {
            Leaf index = Leaf::of_linear(conversions_.cast(a.scalar, from, to), step_of(result));
            index.wide = a.wide;
            whole.leaves.push_back(index);
            continue;
        }
        Leaf converted = lift({&a}, [&](Values v) { return conversions_.cast(v[0], from, to); });
        bool widens = from == Scalar::i32 && to == Scalar::i64;
        if (a.uniform() && widens) converted.wide = a.wide;
        whole.leaves.push_back(converted);
    }
    set(result, std::move(whole));
}

void Emitter::emit_bitcast(const Operation& operation) {
    const ir::Value* result = operation.result();
    Leaf& a = leaf(operation.operands[0]);
    if (a.linear() && !varying(result)) return set(result, Leaf::of_linear(a.scalar, step_of(result)));
    llvm::Type* type = register_type(result->type.scalar());
    bool to_bool = result->type.is_bool(), from_bool = operation.operands[0]->type.is_bool();
    set(result, lift({&a}, [&](Values v) -> llvm::Value* {
            llvm::Type* shaped = v[0]->getType()->isVectorTy() ? lanes_.of(type) : type;
            if (from_bool) return builder_.CreateZExt(v[0], shaped);
            if (to_bool) return builder_.CreateICmpNE(v[0], llvm::Constant::getNullValue(v[0]->getType()));
            return builder_.CreateBitCast(v[0], shaped);
        }));
}

void Emitter::emit_bit_count(const Operation& operation) {
    Leaf& a = leaf(operation.operands[0]);
    set(operation.result(), lift({&a}, [&](Values v) {
            llvm::Value* count = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, v[0]);
            llvm::Type* type = builder_.getInt32Ty();
            return builder_.CreateZExtOrTrunc(count, count->getType()->isVectorTy() ? lanes_.of(type) : type);
        }));
}

}  // namespace weft::codegen
