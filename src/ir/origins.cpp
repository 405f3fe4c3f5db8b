#include "ir/origins.h"

#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::ir {

Origins::Origins(const Function& function)
    : function_(function),
      words_((function.parameters().size() + 63) / 64),
      sets_(static_cast<std::size_t>(function.value_count()) * words_, 0),
      stored_(words_, 0) {
    for (std::size_t i = 0; i < function.parameters().size(); ++i) {
        if (holds_array(function.parameters()[i]->type)) set(*function.parameters()[i])[i / 64] |= 1ull << (i % 64);
    }
    do {
        changed_ = false;
        for_each_operation(function.body, [&](const Operation& operation) { flow(operation); });
    } while (changed_);
}

void Origins::add(const Value& to, const Value& from) {
    if (holds_array(to.type) && holds_array(from.type)) merge(set(to), set(from));
}

void Origins::merge(std::uint64_t* into, const std::uint64_t* from) {
    for (std::size_t w = 0; w < words_; ++w) {
        const std::uint64_t merged = into[w] | from[w];
        changed_ |= merged != into[w];
        into[w] = merged;
    }
}

void Origins::flow(const Operation& operation) {
    if (writes(operation.op) && holds_array(operation.operands.back()->type))
        merge(stored_.data(), set(*operation.operands.back()));
    if (operation.op == Op::load && holds_array(operation.result()->type))
        merge(set(*operation.result()), stored_.data());
    switch (operation.op) {
        case Op::if_:
            for (const Region* region : operation.regions) yields_to(operation.results, *region);
            return;
        case Op::for_:
            carry(operation, operation.body(0), 3, 1);
            yields_to(operation.results, operation.body(0));
            return;
        case Op::while_:
            carry(operation, operation.body(0), 0, 0);
            carry(operation, operation.body(1), 0, 0);
            yields_to(operation.body(0).arguments, operation.body(1));
            yields_to(operation.body(1).arguments, operation.body(1));
            yields_to(operation.results, operation.body(1));
            return;
        default:
            for (const Value* result : operation.results)
                for (const Value* operand : operation.operands) add(*result, *operand);
    }
}

// A loop's carried arguments and results come from the inits; arguments also from the yields of the body.
void Origins::carry(const Operation& loop, const Region& region, std::size_t first_init, std::size_t first_argument) {
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
        add(*region.arguments[first_argument + i], *loop.operands[first_init + i]);
        add(*loop.results[i], *loop.operands[first_init + i]);
    }
    if (loop.op != Op::for_) return;
    const Operation* end = region.terminator();
    for (std::size_t i = 0; end && i < end->operands.size(); ++i) {
        add(*region.arguments[first_argument + i], *end->operands[i]);
    }
}

void Origins::yields_to(const std::vector<Value*>& targets, const Region& region) {
    const Operation* end = region.terminator();
    for (std::size_t i = 0; end && i < end->operands.size() && i < targets.size(); ++i) {
        add(*targets[i], *end->operands[i]);
    }
}

}  // namespace weft::ir
