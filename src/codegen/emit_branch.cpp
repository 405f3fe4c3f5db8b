// if over lanes. A branch whose condition varies is divergent.
//
// uniform condition   a branch; results are phis
// varying condition   both arms, results blended by the condition. An arm with memory accesses, loops or calls runs
//                     under its mask, and is branched around if no lane takes it; a cheap arm is computed for all
//                     lanes
#include "codegen/emitter.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// The largest cost, in leaves, at which an arm is cheaper than a branch.
constexpr int kCheapArm = 24;

// The cost of an arm in leaves; above kCheapArm if the arm has accesses, loops or calls.
int arm_cost(const ir::Region& region) {
    int cost = 0;
    for (const Operation* operation : region.operations) {
        switch (operation->op) {
            case Op::yield:
            case Op::constant:
            case Op::make:
            case Op::splat:
            case Op::extract:
            case Op::insert:
            case Op::dim:
            case Op::is_null:
            case Op::address:
            case Op::tid:
            case Op::block_dim:
                continue;
            case Op::neg:
            case Op::abs:
            case Op::invert:
            case Op::floor:
            case Op::ceil:
            case Op::trunc:
            case Op::rint:
            case Op::detach:
            case Op::detach_reverse:
            case Op::add:
            case Op::sub:
            case Op::mul:
            case Op::min:
            case Op::max:
            case Op::copysign:
            case Op::and_:
            case Op::or_:
            case Op::xor_:
            case Op::shl:
            case Op::shr:
            case Op::fma:
            case Op::select:
            case Op::cast:
            case Op::bitcast:
            case Op::reduce_add:
            case Op::transpose:
            case Op::cmp_lt:
            case Op::cmp_le:
            case Op::cmp_gt:
            case Op::cmp_ge:
            case Op::cmp_eq:
            case Op::cmp_ne:
            case Op::isnan:
            case Op::isinf:
            case Op::isfinite:
            case Op::round:
                cost += leaf_count(operation->operands[0]->type);
                break;
            case Op::div:
            case Op::rem:
            case Op::sqrt:
                cost += 6 * leaf_count(operation->operands[0]->type);
                break;
            case Op::if_:
                cost += arm_cost(operation->body(0)) + arm_cost(operation->body(1));
                break;
            default:
                return kCheapArm + 1;
        }
    }
    return cost;
}

bool is_cheap(const ir::Region& region) { return arm_cost(region) <= kCheapArm; }

bool is_inside(const ir::Value* value, const ir::Region& region) {
    const ir::Region* at = value->definition ? value->definition->parent : value->region;
    while (at) {
        if (at == &region) return true;
        at = at->owner ? at->owner->parent : nullptr;
    }
    return false;
}

}  // namespace

void Emitter::emit_if(const Operation& operation) {
    if (leaf(operation.operands[0]).varying())
        emit_masked_if(operation);
    else
        emit_uniform_if(operation);
}

void Emitter::emit_uniform_if(const Operation& operation) {
    auto [then_end, else_end] = emit_either(
        leaf(operation.operands[0]).scalar, "then", [&] { emit_region(operation.body(0)); },
        [&] { emit_region(operation.body(1)); });
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
        LaneValue& then_value = value(operation.body(0).terminator()->operands[i]);
        LaneValue& else_value = value(operation.body(1).terminator()->operands[i]);
        const ir::Value* result = operation.result(i);
        set(result, merge(result->type, varying(result), then_value, then_end, else_value, else_end));
    }
}

namespace {

// Arms up to this size are emitted twice: for groups whose lanes all take them, and masked.
constexpr int kWholeArmOperations = 96;

}  // namespace

void Emitter::emit_masked_if(const Operation& operation) {
    llvm::Value *condition = leaf(operation.operands[0]).vector, *outer = mask_;
    std::size_t count = operation.results.size();
    std::vector<LaneValue> arms[2];
    for (int arm : {0, 1}) {
        const ir::Region& region = operation.body(static_cast<std::size_t>(arm));
        const auto& yielded = region.terminator()->operands;
        if (is_cheap(region)) {
            emit_region(region);
            for (const ir::Value* v : yielded) arms[arm].push_back(value(v));
            continue;
        }
        llvm::Value* chosen = arm == 0 ? here(condition) : builder_.CreateNot(here(condition));
        llvm::Value* mask = both(outer, chosen);
        llvm::BasicBlock *inside = new_block(arm == 0 ? "then" : "else"), *after = new_block("endif");
        llvm::BasicBlock* before = builder_.GetInsertBlock();
        // Kernels on grids test for the border: if all lanes take the arm, it runs without a mask. Masked stores cost
        // several times plain ones.
        if (count == 0 && !outer && ir::operation_count(region) <= kWholeArmOperations) {
            llvm::BasicBlock *whole = new_block("whole"), *partial = new_block("partial");
            builder_.CreateCondBr(builder_.CreateAndReduce(chosen), whole, partial);
            builder_.SetInsertPoint(whole);
            emit_region(region);
            builder_.CreateBr(after);
            builder_.SetInsertPoint(partial);
            before = partial;
        }
        builder_.CreateCondBr(any_lane(mask), inside, after);
        builder_.SetInsertPoint(inside);
        mask_ = mask;
        emit_region(region);
        mask_ = outer;
        llvm::BasicBlock* end = builder_.GetInsertBlock();
        builder_.CreateBr(after);
        builder_.SetInsertPoint(after);
        for (std::size_t i = 0; i < count; ++i) {
            LaneValue& own = value(yielded[i]);
            if (!is_inside(yielded[i], region)) {
                arms[arm].push_back(own);
                continue;
            }
            LaneValue nothing = zero_value(own.type, true);
            LaneValue merged = merge(own.type, true, own, end, nothing, before);
            merged.root = own.root;
            arms[arm].push_back(std::move(merged));
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_used(operation.result(i))) continue;
        set(operation.result(i), blend(condition, arms[0][i], arms[1][i]));
    }
}

}  // namespace weft::codegen
