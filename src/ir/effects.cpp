#include <algorithm>
#include <unordered_map>

#include "ir/ir.h"
#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::ir {
namespace {

// Which parameters each array-holding value may lead to: a set of parameters per value, grown until nothing changes.
// Arrays flow through views, structs, selections, branches and loops; a value made from several leads to all of theirs.
// What was stored anywhere may come out of any memory again.
class Origins {
public:
    explicit Origins(const Function& function)
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

    template <class Visit>
    void for_each(const Value& value, Visit&& visit) const {
        const std::uint64_t* bits = &sets_[static_cast<std::size_t>(value.id) * words_];
        for (std::size_t i = 0; i < function_.parameters().size(); ++i)
            if (bits[i / 64] >> (i % 64) & 1) visit(i);
    }

private:
    std::uint64_t* set(const Value& value) { return &sets_[static_cast<std::size_t>(value.id) * words_]; }

    void add(const Value& to, const Value& from) {
        if (holds_array(to.type) && holds_array(from.type)) merge(set(to), set(from));
    }

    void merge(std::uint64_t* into, const std::uint64_t* from) {
        for (std::size_t w = 0; w < words_; ++w) {
            const std::uint64_t merged = into[w] | from[w];
            changed_ |= merged != into[w];
            into[w] = merged;
        }
    }

    void flow(const Operation& operation) {
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

    // A loop's carried arguments and its results come from the inits; what the body yields comes round again.
    void carry(const Operation& loop, const Region& region, std::size_t first_init, std::size_t first_argument) {
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

    void yields_to(const std::vector<Value*>& targets, const Region& region) {
        const Operation* end = region.terminator();
        for (std::size_t i = 0; end && i < end->operands.size() && i < targets.size(); ++i) {
            add(*targets[i], *end->operands[i]);
        }
    }

    const Function& function_;
    std::size_t words_;
    std::vector<std::uint64_t> sets_;
    std::vector<std::uint64_t> stored_;  // what values that were stored lead to
    bool changed_ = false;
};

}  // namespace

bool only_speaks(Op op) { return op == Op::print || op == Op::raise || op == Op::require || op == Op::assert_; }

bool has_effects(const Operation& operation) {
    if (only_speaks(operation.op)) return true;
    switch (operation.op) {
        case Op::store:
        case Op::note_finite:
        case Op::call:
        case Op::trail:
        case Op::local_array:  // each is an array of its own, zero where it is made: neither moved nor merged
            return true;
        case Op::call_library:
            return !operation.library->pure;
        default:
            break;
    }
    if (is_atomic(operation.op)) return true;
    for (const Region* region : operation.regions)
        for (const Operation* inner : region->operations)
            if (has_effects(*inner)) return true;
    return false;
}

namespace {

// Whether an array is the parameter that it leads to (or lies in one), or comes out of memory that this one leads to.
struct Depth {
    bool itself = true;
    bool within = true;
};

Depth depth_of(const Value& array) {
    const Value* origin = origin_of(&array);
    if (!origin->definition) return {true, false};
    if (origin->definition->op == Op::load) return {false, true};
    return {};
}

// Whether arrays lie in the elements of its arrays.
bool is_deep(Type type) {
    if (type.is_array()) return holds_array(type.element());
    return type.is_struct() && std::any_of(type.fields().begin(), type.fields().end(),
                                           [](const Type::Field& field) { return is_deep(field.type); });
}

using Known = std::unordered_map<const Function*, std::vector<ParameterEffects>>;

const std::vector<ParameterEffects>& effects_of(const Function& function, Known& known) {
    if (const auto found = known.find(&function); found != known.end()) return found->second;
    // A function that calls itself is refused by sema; were one here, it would be taken to do everything.
    known[&function].assign(function.parameters().size(), {true, true, true, true, true});

    std::vector<ParameterEffects> result(function.parameters().size());
    const Origins origins(function);
    const auto mark = [&](const Value& array, bool reads, bool itself, bool within) {
        const Depth depth = depth_of(array);
        origins.for_each(array, [&](std::size_t parameter) {
            ParameterEffects& of = result[parameter];
            of.reads |= reads;
            of.writes |= itself || within;
            of.writes_itself |= itself && depth.itself;
            of.writes_within |= within || (itself && depth.within);
        });
    };
    const auto mark_keeping = [&](const Value& array) {
        origins.for_each(array, [&](std::size_t parameter) { result[parameter].keeps = true; });
    };
    for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.op == Op::load) {
            mark(*operation.operands[0], true, false, false);
        } else if (operation.op == Op::store) {
            mark(*operation.operands[0], false, true, false);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (is_atomic(operation.op)) {
            mark(*operation.operands[0], true, true, false);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (operation.op == Op::call_library) {
            for (const Value* operand : operation.operands) {
                mark(*operand, true, !operation.library->pure, !operation.library->pure && is_deep(operand->type));
                const bool holds = operand->type.is_array() && holds_array(operand->type.element());
                if (operation.library->native && (holds || operand->type.is_struct())) mark_keeping(*operand);
            }
        } else if (operation.op == Op::call) {
            const std::vector<ParameterEffects> callee = effects_of(*operation.function, known);
            for (std::size_t i = 0; i < operation.operands.size(); ++i) {
                mark(*operation.operands[i], callee[i].reads, callee[i].writes_itself, callee[i].writes_within);
                if (callee[i].keeps) mark_keeping(*operation.operands[i]);
            }
        }
    });
    return known[&function] = std::move(result);
}

}  // namespace

std::vector<ParameterEffects> effects(const Function& function) {
    Known known;
    return effects_of(function, known);
}

}  // namespace weft::ir
