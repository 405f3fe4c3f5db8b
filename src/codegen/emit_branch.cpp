// if over lanes. A branch whose condition varies is divergent.
//
// uniform condition   a branch; results are phis
// varying condition   both arms, results blended by the condition. An arm with memory accesses, loops or calls runs
//                     under its mask, and is branched around if no lane takes it; a cheap arm is computed for all
//                     lanes
#include "codegen/emitter.h"

namespace weft::codegen {

using ir::Operation;

namespace {

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

void Emitter::emit_masked_if(const Operation& operation) {
    llvm::Value *condition = leaf(operation.operands[0]).vector, *outer = mask_;
    std::size_t count = operation.results.size();
    std::vector<LaneValue> arms[2];
    for (int arm : {0, 1}) {
        const ir::Region& region = operation.body(static_cast<std::size_t>(arm));
        const auto& yielded = region.terminator()->operands;
        const transform::ArmForm form = plan_.arm_forms.at(&region);
        if (form == transform::ArmForm::computed) {
            emit_region(region);
            for (const ir::Value* v : yielded) arms[arm].push_back(value(v));
            continue;
        }
        llvm::Value* chosen = arm == 0 ? lanes_.here(condition) : builder_.CreateNot(lanes_.here(condition));
        llvm::Value* mask = lanes_.both(outer, chosen);
        llvm::BasicBlock *inside = new_block(arm == 0 ? "then" : "else"), *after = new_block("endif");
        llvm::BasicBlock* before = builder_.GetInsertBlock();
        if (form == transform::ArmForm::twice && !outer) {
            llvm::BasicBlock *whole = new_block("whole"), *partial = new_block("partial");
            builder_.CreateCondBr(builder_.CreateAndReduce(chosen), whole, partial);
            builder_.SetInsertPoint(whole);
            emit_region(region);
            builder_.CreateBr(after);
            builder_.SetInsertPoint(partial);
            before = partial;
        }
        builder_.CreateCondBr(lanes_.any(mask), inside, after);
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
