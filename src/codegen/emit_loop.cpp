// Loops over lanes.
//
// for/while, uniform   a loop; carried values are phis
// for/while, varying   before: each lane has its own number of iterations
//                      after:  loop while any lane is active; values of finished lanes do not change
//
// Inside a varying loop a carried value may still be uniform (a counter), as all active lanes have made the same number
// of iterations. It stays one scalar in the loop. Its result differs from lane to lane and is kept beside it as a
// vector.
//
// A uniform loop tests at the top; LLVM rotates it. A masked one is emitted in rotated form, which keeps its mask in a
// register of full width from one iteration to the next:
//
//     before:  active = lanes that make a first iteration; if none, go to exit
//     body:    active and carried values are phis; ...; active = lanes that make another one; if any, go to body
//     exit:    results are phis of the initial values and the last ones
#include "codegen/emitter.h"
#include "ir/loops.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

std::optional<std::int64_t> constant_of(llvm::Value* value) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    if (!number) return std::nullopt;
    return number->getSExtValue();
}

}  // namespace

struct Emitter::Loop {
    struct Carried {
        std::vector<Phi> phis;    // the value in the loop
        std::vector<Phi> finals;  // masked, value uniform in the loop: each lane's value when it left
        LaneValue next;           // the latch's value for the next iteration
        bool used = false;        // whether the loop's result is used
    };
    bool masked = false;
    bool starts_apart = false;  // lanes may join after the first iteration
    llvm::BasicBlock *before = nullptr, *header = nullptr, *body = nullptr, *exit = nullptr;
    llvm::Value* outer_mask = nullptr;
    Phi active;  // masked only
    std::vector<Carried> carried;
};

// Opens the loop's header, with phis for the carried values, to which the arguments are set. `active` is the mask of
// the first iteration of a masked loop, null for a uniform one.
void Emitter::open_loop(Loop& loop, const std::vector<const ir::Value*>& arguments,
                        const std::vector<ir::Value*>& results, llvm::ArrayRef<ir::Value*> inits, llvm::Value* active) {
    loop.masked = active != nullptr;
    loop.outer_mask = mask_;
    loop.before = builder_.GetInsertBlock();
    loop.header = new_block("loop");
    loop.body = loop.masked ? loop.header : new_block("body");
    loop.exit = new_block("endloop");
    if (loop.masked)
        builder_.CreateCondBr(lanes_.any(active), loop.header, loop.exit);
    else
        builder_.CreateBr(loop.header);
    builder_.SetInsertPoint(loop.header);
    if (loop.masked) {
        loop.active = open_phi({Scalar::boolean, false, 0}, true, 0);
        add_incoming(loop.active, Leaf::of_vector(active), loop.before);
        mask_ = loop.active.leaf.vector;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const ir::Value* argument = arguments[i];
        Loop::Carried carried;
        carried.used = is_used(results[i]);
        bool in_lanes = varying(argument);
        LaneValue& init = value(inits[i]);
        LaneValue current{argument->type, {}, {}};
        std::vector<LeafType> types = leaf_types(argument->type);
        for (std::size_t l = 0; l < types.size(); ++l) {
            carried.phis.push_back(open_phi(types[l], in_lanes, step_of(argument)));
            add_incoming(carried.phis.back(), init.leaves[l], loop.before);
            current.leaves.push_back(carried.phis.back().leaf);
            if (!loop.masked || in_lanes || !carried.used) continue;
            carried.finals.push_back(open_phi(types[l], true, 0));
            add_incoming(carried.finals.back(), init.leaves[l], loop.before);
        }
        set(argument, std::move(current));
        loop.carried.push_back(std::move(carried));
    }
}

// Sets the next values of the carried ones: the yielded values; in a masked loop, inactive lanes keep theirs.
void Emitter::gather_next(Loop& loop, const std::vector<ir::Value*>& yielded) {
    for (std::size_t i = 0; i < loop.carried.size(); ++i) {
        Loop::Carried& carried = loop.carried[i];
        carried.next = value(yielded[i]);
        const bool keeps = carried.used || loop.starts_apart;
        if (!loop.masked || !keeps || !carried.finals.empty()) continue;
        for (std::size_t l = 0; l < carried.phis.size(); ++l)
            carried.next.leaves[l] = kept(carried.next.leaves[l], carried.phis[l].leaf);
    }
}

// The new value in active lanes, the old one in the others.
Leaf Emitter::kept(Leaf& fresh, Leaf& old) {
    llvm::Value *of_fresh = vector(fresh), *of_old = vector(old);
    bool bools = of_old->getType()->getScalarType()->isIntegerTy(1);
    return Leaf::of_vector(bools ? lanes_.choose(lanes_.here(mask_), of_fresh, of_old)
                                 : builder_.CreateSelect(lanes_.here(mask_), of_fresh, of_old));
}

// Ends the body, moves the builder to the exit and sets the results. `active` (masked loops): the lanes of the next
// iteration.
void Emitter::close_loop(Loop& loop, const std::vector<ir::Value*>& results, llvm::ArrayRef<ir::Value*> inits,
                         llvm::Value* active) {
    std::vector<std::vector<Leaf>> last(loop.carried.size());
    for (std::size_t i = 0; i < loop.carried.size(); ++i) {
        Loop::Carried& carried = loop.carried[i];
        for (std::size_t l = 0; l < carried.phis.size(); ++l) {
            last[i].push_back(carried.finals.empty() ? carried.next.leaves[l]
                                                     : kept(carried.next.leaves[l], carried.finals[l].leaf));
        }
    }
    llvm::BasicBlock* latch = builder_.GetInsertBlock();
    for (std::size_t i = 0; i < loop.carried.size(); ++i) {
        Loop::Carried& carried = loop.carried[i];
        for (std::size_t l = 0; l < carried.phis.size(); ++l) {
            add_incoming(carried.phis[l], carried.next.leaves[l], latch);
            if (!carried.finals.empty()) add_incoming(carried.finals[l], last[i][l], latch);
        }
    }
    if (loop.masked) {
        add_incoming(loop.active, Leaf::of_vector(active), latch);
        builder_.CreateCondBr(lanes_.any(active), loop.header, loop.exit);
    } else {
        llvm::Instruction* back = builder_.CreateBr(loop.header);
        if (is_rare_) keep_rolled(back);
    }
    builder_.SetInsertPoint(loop.exit);
    mask_ = loop.outer_mask;
    for (std::size_t i = 0; i < loop.carried.size(); ++i) {
        Loop::Carried& carried = loop.carried[i];
        if (!carried.used) continue;
        LaneValue whole{results[i]->type, {}, {}};
        std::vector<LeafType> types = leaf_types(results[i]->type);
        for (std::size_t l = 0; l < types.size(); ++l) {
            if (!loop.masked) {
                whole.leaves.push_back(carried.phis[l].leaf);
                continue;
            }
            Phi phi = open_phi(types[l], true, 0);
            add_incoming(phi, value(inits[i]).leaves[l], loop.before);
            add_incoming(phi, last[i][l], latch);
            whole.leaves.push_back(phi.leaf);
        }
        set(results[i], std::move(whole));
    }
}

// Whether an iteration with counter k runs. Takes scalars or vectors.
llvm::Value* Emitter::in_range(Scalar scalar, llvm::Value* k, llvm::Value* hi, llvm::Value* step) {
    llvm::Value *up = compare(Op::cmp_lt, scalar, k, hi), *down = compare(Op::cmp_gt, scalar, k, hi);
    llvm::Value* zero = llvm::Constant::getNullValue(step->getType());
    llvm::Value* goes_up = compare(Op::cmp_gt, scalar, step, zero);
    llvm::Value* goes_down = compare(Op::cmp_lt, scalar, step, zero);
    return builder_.CreateOr(builder_.CreateAnd(goes_up, up), builder_.CreateAnd(goes_down, down));
}

// For loops that run rarely or briefly: unrolling would only cost compile time.
void Emitter::keep_rolled(llvm::Instruction* back) {
    llvm::Metadata* rolled = llvm::MDNode::get(context_, llvm::MDString::get(context_, "llvm.loop.unroll.disable"));
    llvm::MDNode* loop_id = llvm::MDNode::getDistinct(context_, {nullptr, rolled});
    loop_id->replaceOperandWith(0, loop_id);
    back->setMetadata(llvm::LLVMContext::MD_loop, loop_id);
}

void Emitter::emit_loop(const Operation& operation) {
    if (lanes_.count == 1 && !options_.debug) {
        const auto signs = plan_.loop_index_checks.find(&operation);
        if (signs != plan_.loop_index_checks.end()) return emit_either_way(operation, signs->second);
    }
    operation.op == Op::for_ ? emit_for(operation) : emit_while(operation);
}

// Checks the loop's indices for negative ones once before the loop, not in each iteration.
void Emitter::emit_either_way(const Operation& loop, const transform::NegativeIndexChecks& signs) {
    llvm::Value* from_start = builder_.getTrue();
    for (const ir::Value* start : signs.starts) {
        llvm::Value* number = leaf(start).scalar;
        from_start = builder_.CreateAnd(
            from_start, builder_.CreateICmpSGE(number, llvm::Constant::getNullValue(number->getType())));
    }
    std::vector<const ir::Value*> used;
    for (const ir::Value* result : loop.results)
        if (is_used(result)) used.push_back(result);
    std::vector<LaneValue> results[2];
    const auto emit = [&](std::vector<LaneValue>& given) {
        loop.op == Op::for_ ? emit_for(loop) : emit_while(loop);
        for (const ir::Value* result : used) given.push_back(value(result));
    };
    const auto [first, second] = emit_either(
        from_start, "from_start",
        [&] {
            from_start_.insert(signs.choices.begin(), signs.choices.end());
            emit(results[0]);
            from_start_.clear();
        },
        [&] {
            is_rare_ = true;
            emit(results[1]);
            is_rare_ = false;
        });
    for (std::size_t i = 0; i < used.size(); ++i)
        set(used[i], merge(used[i]->type, false, results[0][i], first, results[1][i], second));
}

void Emitter::emit_for(const Operation& operation) {
    const ir::Region& body = operation.body();
    const Leaf &from = leaf(operation.operands[0]), &to = leaf(operation.operands[1]),
               &by = leaf(operation.operands[2]);
    const bool same_trip_count = by.uniform() && !from.varying() && !to.varying() && from.step == to.step;
    const bool is_masked = !same_trip_count || (operation.guarded && varying(body.arguments.back()));
    is_masked ? emit_masked_for(operation) : emit_uniform_for(operation);
}

// All lanes make the same number of iterations.
void Emitter::emit_uniform_for(const Operation& operation) {
    const ir::Region& body = operation.body();
    const ir::Value* counter = body.arguments[0];
    const Scalar scalar = counter->type.scalar();
    const std::vector<const ir::Value*> arguments(body.arguments.begin() + 1, body.arguments.end());
    const llvm::ArrayRef<ir::Value*> inits = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front(3);
    Leaf &from = leaf(operation.operands[0]), &to = leaf(operation.operands[1]), &by = leaf(operation.operands[2]);
    // Counters up to 32 bits count in 64: they cannot overflow, and addresses need no extension.
    const bool is_short = info(scalar).bits <= 32;
    const Scalar counting = is_short ? Scalar::i64 : scalar;
    const auto counted = [&](Leaf& bound) { return is_short ? wide(bound, scalar) : bound.scalar; };
    const std::int64_t lane_step = from.step;
    llvm::Value *first = counted(from), *last = counted(to), *distance = counted(by);
    Loop loop;
    open_loop(loop, arguments, operation.results, inits, nullptr);
    llvm::PHINode* k = llvm::PHINode::Create(builder_.getInt64Ty(), 2, "", loop.header->getFirstNonPHIIt());
    k->addIncoming(first, loop.before);
    llvm::Value* goes_on = in_range(counting, k, last, distance);
    if (operation.guarded) goes_on = builder_.CreateAnd(goes_on, loop.carried.back().phis[0].leaf.scalar);
    builder_.CreateCondBr(goes_on, loop.body, loop.exit);
    builder_.SetInsertPoint(loop.body);
    Leaf index = Leaf::of_linear(is_short ? builder_.CreateTrunc(k, register_type(scalar)) : k, lane_step);
    if (is_short) index.wide = k;
    set(counter, index);
    if (operation.guarded) set(arguments.back(), Leaf::of_scalar(builder_.getTrue()));
    emit_region(body);
    llvm::BasicBlock* const last_of_body = builder_.GetInsertBlock();
    k->addIncoming(builder_.CreateAdd(k, distance, "", false, is_short), last_of_body);
    gather_next(loop, body.terminator()->operands);
    close_loop(loop, operation.results, inits, nullptr);
    if (machine_.unrolls_loops && !operation.guarded && !is_rare_)
        unroll_if_short(operation, *last_of_body->getTerminator());
}

// Asks for four iterations at a time if the body is short and their number is not known. LLVM would take two or four,
// by its size.
void Emitter::unroll_if_short(const Operation& loop, llvm::Instruction& back) {
    constexpr int kShortBody = 48;
    constexpr unsigned kIterations = 4;
    const transform::BodySize size = transform::body_size(loop.body());
    // Derivatives have other loops around these, and atomics: unrolled, they would take many registers, and threads of
    // a warp would come to the atomics one after the other.
    if (kernel_.is_adjoint || !plan_.atomics.empty() || size.has_loops || size.leaves > kShortBody ||
        ir::known_trips(loop))
        return;
    llvm::Metadata* count =
        llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.count"),
                                     llvm::ConstantAsMetadata::get(builder_.getInt32(kIterations))});
    // Properties of the unrolled loop. Without any, LLVM forbids further unrolling, which NVIDIA's compiler obeys.
    llvm::Metadata* unrolled =
        llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.followup_unrolled"),
                                     llvm::MDNode::get(context_, llvm::MDString::get(context_, "weft.unrolled"))});
    llvm::MDNode* loop_id = llvm::MDNode::getDistinct(context_, {nullptr, count, unrolled});
    loop_id->replaceOperandWith(0, loop_id);
    back.setMetadata(llvm::LLVMContext::MD_loop, loop_id);
}

// Each lane has its own bounds.
void Emitter::emit_masked_for(const Operation& operation) {
    const ir::Region& body = operation.body();
    const ir::Value* counter = body.arguments[0];
    const Scalar scalar = counter->type.scalar();
    const std::vector<const ir::Value*> arguments(body.arguments.begin() + 1, body.arguments.end());
    const llvm::ArrayRef<ir::Value*> inits = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front(3);
    const auto& yielded = body.terminator()->operands;
    Leaf &from = leaf(operation.operands[0]), &to = leaf(operation.operands[1]), &by = leaf(operation.operands[2]);
    Loop loop;

    bool k_in_lanes = varying(counter);
    loop.starts_apart = from.varying() && !k_in_lanes;  // all active lanes share the counter
    auto running = [&](Leaf& k) {
        Leaf result = lift({&k, &to, &by}, [&](Values v) { return in_range(scalar, v[0], v[1], v[2]); });
        return vector(result);
    };
    const Op until = by.uniform() && constant_of(by.scalar) == 1 ? Op::cmp_ge : Op::cmp_le;
    auto has_begun = [&](Leaf& k) {
        Leaf result = lift({&k, &from}, [&](Values v) { return compare(until, scalar, v[0], v[1]); });
        return vector(result);
    };
    llvm::Value* active = lanes_.both(mask_, running(from));
    if (operation.guarded) active = lanes_.both(active, vector(leaf(inits.back())));
    Leaf start = from;
    if (loop.starts_apart) {
        const Op first = until == Op::cmp_ge ? Op::atomic_min : Op::atomic_max;
        llvm::Value* none = lanes_.splat(neutral(first, scalar));
        start = Leaf::of_scalar(
            combine_lanes(first, scalar, builder_.CreateSelect(lanes_.here(active), from.vector, none)));
        active = lanes_.both(active, has_begun(start));
    }
    open_loop(loop, arguments, operation.results, inits, active);
    Phi k = open_phi({scalar, false, 0}, k_in_lanes, step_of(counter));
    add_incoming(k, start, loop.before);
    set(counter, k.leaf);
    if (operation.guarded) set(arguments.back(), Leaf::of_scalar(builder_.getTrue()));
    emit_region(body);

    gather_next(loop, yielded);
    Leaf next = k.leaf;
    if (k_in_lanes)
        next = lift({&next, &by}, [&](Values v) { return builder_.CreateAdd(v[0], v[1]); });
    else
        next = Leaf::of_linear(builder_.CreateAdd(next.scalar, by.scalar), next.step);
    active = lanes_.both(loop.starts_apart ? loop.outer_mask : mask_, running(next));
    std::optional<std::int64_t> distance = by.uniform() ? constant_of(by.scalar) : std::nullopt;
    if (distance != 1 && distance != -1) {
        // A longer step may pass the largest number: the counter must have moved in the direction of the step.
        Leaf moved = lift({&k.leaf, &next, &by}, [&](Values v) { return in_range(scalar, v[0], v[1], v[2]); });
        active = lanes_.both(active, vector(moved));
    }
    if (operation.guarded) active = lanes_.both(active, vector(leaf(yielded.back())));
    if (loop.starts_apart) active = lanes_.both(active, has_begun(next));
    add_incoming(k, next, builder_.GetInsertBlock());
    close_loop(loop, operation.results, inits, active);
}

void Emitter::emit_while(const Operation& operation) {
    const ir::Region &condition = operation.body(0), &body = operation.body(1);
    const ir::Value* goes_on = condition.terminator()->operands[0];
    const auto& yielded = body.terminator()->operands;
    llvm::ArrayRef<ir::Value*> inits(operation.operands);
    std::vector<const ir::Value*> arguments(body.arguments.begin(), body.arguments.end());
    Loop loop;
    if (!varying(goes_on)) {
        open_loop(loop, arguments, operation.results, inits, nullptr);
        for (std::size_t i = 0; i < arguments.size(); ++i) set(condition.arguments[i], value(arguments[i]));
        emit_region(condition);
        builder_.CreateCondBr(leaf(goes_on).scalar, loop.body, loop.exit);
        builder_.SetInsertPoint(loop.body);
        emit_region(body);
        gather_next(loop, yielded);
        return close_loop(loop, operation.results, inits, nullptr);
    }
    // The condition is emitted twice: before the loop and at its end.
    for (std::size_t i = 0; i < arguments.size(); ++i) set(condition.arguments[i], value(inits[i]));
    emit_region(condition);
    llvm::Value* active = lanes_.both(mask_, vector(leaf(goes_on)));
    open_loop(loop, arguments, operation.results, inits, active);
    emit_region(body);
    gather_next(loop, yielded);
    for (std::size_t i = 0; i < arguments.size(); ++i) set(condition.arguments[i], loop.carried[i].next);
    emit_region(condition);
    active = lanes_.both(mask_, vector(leaf(goes_on)));
    close_loop(loop, operation.results, inits, active);
}

}  // namespace weft::codegen
