// The inside of simplify(), cut by subject. Reading order: simplifier.cpp (the walk), identities.cpp and parts.cpp
// (simplification of one operation), control.cpp (branches and loops), common_subexpressions.h (repeated operations),
// dead.cpp (dead code), constants.h and fold.h (constants), address_overlays.cpp (views at addresses).
//
// One walk visits every operation once, in program order, with all operands already simplified. It writes the new list
// of operations as it goes. Hence a rule only looks at an operation and at the definitions of its operands, and a round
// is linear in the size of the function. Rounds are repeated while they find something, usually twice.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/ir.h"
#include "ir/walk.h"
#include "transform/simplify/common_subexpressions.h"
#include "transform/simplify/constants.h"

namespace weft::transform {

class Simplifier {
public:
    explicit Simplifier(ir::Function& function);

    // One round; true if something changed.
    bool run();

private:
    // ---- simplifier.cpp: the walk ----
    void region(ir::Region& region);
    void visit(ir::Operation& operation);
    void keep(ir::Operation& operation);
    void replace(const ir::Value* value, ir::Value* by);
    // The equivalent of `operation`: an existing value, or a new constant. Null if it stays, perhaps changed in place
    // to a simpler operation.
    ir::Value* simplified(ir::Operation& operation);

    // ---- identities.cpp: arithmetic ----
    ir::Value* folded(ir::Operation& operation);
    ir::Value* binary_identity(ir::Operation& operation);
    ir::Value* unary_identity(ir::Operation& operation);
    ir::Value* compare_identity(ir::Operation& operation);
    ir::Value* select_identity(ir::Operation& operation);

    // ---- parts.cpp: values made of parts ----
    ir::Value* extract(ir::Operation& operation);
    ir::Value* make(ir::Operation& operation);
    ir::Value* insert(ir::Operation& operation);
    bool make_static(ir::Operation& operation);

    // ---- address_overlays.cpp ----
    void overlay(ir::Operation& array_at);

    // ---- control.cpp: branches and loops ----
    void if_(ir::Operation& operation);
    void for_(ir::Operation& operation);
    void while_(ir::Operation& operation);
    bool find_writing(const ir::Region& region);
    // Whether the regions of the branch or loop may change memory, or might have when the round began.
    bool writes(const ir::Operation& structured) const { return writing_.contains(&structured); }
    bool splice_arm(ir::Operation& operation);
    void merge_equal_yields(ir::Operation& operation);
    void drop_unchanged(ir::Operation& loop, std::size_t first_init, std::span<ir::Region* const> with_arguments,
                        std::size_t first_argument, const ir::Region& body);

    bool is_used(const ir::Value* value) const { return used_[static_cast<std::size_t>(value->id)]; }

    // ---- making operations at the current place ----
    ir::Value* constant(Type type, std::vector<Number> numbers, Span span);
    ir::Value* binary(ir::Op op, ir::Value* a, ir::Value* b, Span span);
    ir::Value* boolean(bool value, Span span) { return constant(bool_type(), {Number::integer(value)}, span); }
    void change(ir::Operation& operation, ir::Op op, std::vector<ir::Value*> operands,
                std::vector<std::int64_t> ints = {});

    ir::Function& function_;
    ir::ValueMap map_;
    std::vector<bool> used_;  // by value id: whether some operation used it when the round began
    std::unordered_set<const ir::Operation*> writing_;
    CommonSubexpressions subexpressions_;
    ir::Region* current_ = nullptr;
    bool changed_ = false;
};

// Removes operations without effects whose results are unused, also if they only use each other round a loop. Removes
// unused results, carried values and yields of structured operations too. True if something was removed.
bool remove_dead(ir::Function& function);

}  // namespace weft::transform
