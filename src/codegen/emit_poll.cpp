// Long loops ask now and then whether the launch should end (Ctrl-C). A CPU runs the threads of a launch in pieces, and
// asks between them; but one thread may run for minutes.
//
// A loop that counts to a bound becomes two, so that the inner one is the loop that it was:
//
//     for k in lo .. hi: body        k = lo
//                                    while True:
//                                        for k in k .. min(hi, k + many): body
//                                        if k >= hi: break
//                                        if asked: leave
//
// In other loops, of which LLVM knows no number of iterations anyway, a counter goes down to 0.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/emitter.h"
#include "codegen/value.h"
#include "ir/loops.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// Nanoseconds, roughly, of all iterations of an inner loop whose length is not known: as many as the estimate takes.
constexpr double kUnknownTrips = 32.0;

double cost_of(const ir::Region& region);

double cost_of(const Operation& operation) {
    double cost = 0.0;
    for (const ir::Region* inner : operation.regions) cost += cost_of(*inner);
    if (operation.op == Op::for_ || operation.op == Op::while_) {
        const std::optional<std::int64_t> trips = ir::known_trips(operation);
        cost *= trips ? static_cast<double>(*trips) : kUnknownTrips;
    }
    if (operation.op == Op::call) cost += cost_of(operation.function->body);
    const int leaves = operation.results.empty() ? 1 : leaf_count(operation.result()->type);
    return cost + ir::op_info(operation.op).cost * leaves;
}

double cost_of(const ir::Region& region) {
    double cost = 0.0;
    for (const Operation* operation : region.operations) cost += cost_of(*operation);
    return cost;
}

}  // namespace

std::int64_t iterations_between_polls(const Operation& loop) {
    constexpr double kBetweenNs = 20'000.0, kShortNs = 100'000.0, kMost = 1 << 16;
    double each = 0.5;
    for (const ir::Region* region : loop.regions) each += cost_of(*region);
    const std::optional<std::int64_t> trips = ir::known_trips(loop);
    if (trips && static_cast<double>(*trips) * each < kShortNs) return 0;
    return static_cast<std::int64_t>(std::clamp(kBetweenNs / each, 1.0, kMost));
}

// Goes to leave_ where the launch is to end, else on.
void Emitter::emit_question() {
    asks_ = true;
    llvm::BasicBlock* after = new_block("asked");
    builder_.CreateCondBr(asks_to_stop(), leave_, after, seldom_);
    builder_.SetInsertPoint(after);
}

// The counter of a loop that is open.
Emitter::Countdown Emitter::open_countdown(const Operation& loop, llvm::BasicBlock* before, llvm::BasicBlock* header) {
    Countdown countdown;
    countdown.every = polls() && leave_ ? iterations_between_polls(loop) : 0;
    if (countdown.every == 0) return countdown;
    countdown.left = llvm::PHINode::Create(builder_.getInt32Ty(), 2, "", header->getFirstNonPHIIt());
    countdown.left->addIncoming(builder_.getInt32(static_cast<std::uint32_t>(countdown.every)), before);
    return countdown;
}

// At the end of an iteration.
void Emitter::count_down(Countdown& countdown) {
    if (!countdown.left) return;
    llvm::Value* left = builder_.CreateSub(countdown.left, builder_.getInt32(1));
    llvm::BasicBlock *from = builder_.GetInsertBlock(), *ask = new_block("ask"), *back = new_block("back");
    builder_.CreateCondBr(builder_.CreateICmpEQ(left, builder_.getInt32(0)), ask, back, seldom_);
    builder_.SetInsertPoint(ask);
    emit_question();
    llvm::BasicBlock* asked = builder_.GetInsertBlock();
    builder_.CreateBr(back);
    builder_.SetInsertPoint(back);
    countdown.next = builder_.CreatePHI(builder_.getInt32Ty(), 2);
    countdown.next->addIncoming(left, from);
    countdown.next->addIncoming(builder_.getInt32(static_cast<std::uint32_t>(countdown.every)), asked);
}

// Begins a part. Empty where the loop never asks, or LLVM could not count its iterations afterwards. `first` and `last`
// are wide enough for a sum with `length` steps.
Emitter::Parts Emitter::open_parts(const Operation& loop, llvm::Value* first, llvm::Value* last, std::int64_t step) {
    Parts parts;
    parts.length = polls() && leave_ ? iterations_between_polls(loop) : 0;
    if (parts.length == 0) return parts;
    ++part_loops_;
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    parts.header = new_block("part");
    builder_.CreateBr(parts.header);
    builder_.SetInsertPoint(parts.header);
    parts.first = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    parts.first->addIncoming(first, before);
    const ir::Region& body = loop.body();
    for (std::size_t i = 1; i < body.arguments.size(); ++i) {
        const ir::Value* argument = body.arguments[i];
        LaneValue& init = value(loop.operands[i + 2]);
        LaneValue current{argument->type, {}, {}};
        std::vector<Phi>& phis = parts.carried.emplace_back();
        std::vector<LeafType> types = leaf_types(argument->type);
        for (std::size_t l = 0; l < types.size(); ++l) {
            phis.push_back(open_phi(types[l], varying(argument), step_of(argument)));
            add_incoming(phis.back(), init.leaves[l], before);
            current.leaves.push_back(phis.back().leaf);
        }
        set(argument, std::move(current));
    }
    // A branch that is hardly ever taken, and no minimum: short loops would wait for it.
    llvm::Value* left = step > 0 ? builder_.CreateSub(last, parts.first) : builder_.CreateSub(parts.first, last);
    llvm::Value* is_long = builder_.CreateICmpSGT(left, i64(parts.length * std::abs(step)));
    llvm::BasicBlock *cut = new_block("cut"), *begin = new_block("begin"), *open = builder_.GetInsertBlock();
    builder_.CreateCondBr(is_long, cut, begin, seldom_);
    builder_.SetInsertPoint(cut);
    llvm::Value* end = builder_.CreateAdd(parts.first, i64(parts.length * step), "", false, true);
    builder_.CreateBr(begin);
    builder_.SetInsertPoint(begin);
    parts.last = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    parts.last->addIncoming(last, open);
    parts.last->addIncoming(end, cut);
    return parts;
}

// After a part. The next one begins at its end, if that is not the end of the loop: known without the counter, for
// which LLVM would keep a register.
void Emitter::close_parts(Parts& parts, const std::vector<std::vector<Phi>>& carried, llvm::Value* last) {
    llvm::BasicBlock *ask = new_block("ask"), *end = new_block("endparts");
    builder_.CreateCondBr(builder_.CreateICmpNE(parts.last, last), ask, end, seldom_);
    builder_.SetInsertPoint(ask);
    emit_question();
    llvm::Value* next = hidden_number(parts.last);
    llvm::BasicBlock* back = builder_.GetInsertBlock();
    builder_.CreateBr(parts.header);
    parts.first->addIncoming(next, back);
    for (std::size_t i = 0; i < parts.carried.size(); ++i)
        for (std::size_t l = 0; l < parts.carried[i].size(); ++l)
            add_incoming(parts.carried[i][l], carried[i][l].leaf, back);
    builder_.SetInsertPoint(end);
}

}  // namespace weft::codegen
