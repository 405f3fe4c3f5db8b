#include <unordered_map>

#include "ir/ir.h"
#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::ir {
namespace {

// Which parameters each array-holding value may lead to: a set of parameters per value, grown until nothing changes.
// Arrays flow through views, structs, selections, branches and loops; a value made from several leads to all of theirs.
class Origins {
public:
    explicit Origins(const Function& function)
        : function_(function),
          words_((function.parameters().size() + 63) / 64),
          sets_(static_cast<std::size_t>(function.value_count()) * words_, 0) {
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
        if (words_ == 0 || !holds_array(to.type) || !holds_array(from.type)) return;
        for (std::size_t w = 0; w < words_; ++w) {
            const std::uint64_t merged = set(to)[w] | set(from)[w];
            changed_ |= merged != set(to)[w];
            set(to)[w] = merged;
        }
    }

    void flow(const Operation& operation) {
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
    bool changed_ = false;
};

}  // namespace

bool has_effects(const Operation& operation) {
    switch (operation.op) {
        case Op::store:
        case Op::print:
        case Op::require:
        case Op::assert_:
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

using Known = std::unordered_map<const Function*, std::vector<ParameterEffects>>;

const std::vector<ParameterEffects>& effects_of(const Function& function, Known& known) {
    if (const auto found = known.find(&function); found != known.end()) return found->second;
    // A function that calls itself is refused by sema; were one here, it would be taken to do everything.
    known[&function].assign(function.parameters().size(), {true, true, true});

    std::vector<ParameterEffects> result(function.parameters().size());
    const Origins origins(function);
    const auto mark = [&](const Value& array, bool reads, bool writes) {
        origins.for_each(array, [&](std::size_t parameter) {
            result[parameter].reads |= reads;
            result[parameter].writes |= writes;
        });
    };
    const auto mark_keeping = [&](const Value& array) {
        origins.for_each(array, [&](std::size_t parameter) { result[parameter].keeps = true; });
    };
    for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.op == Op::load) {
            mark(*operation.operands[0], true, false);
        } else if (operation.op == Op::store) {
            mark(*operation.operands[0], false, true);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (is_atomic(operation.op)) {
            mark(*operation.operands[0], true, true);
            if (holds_array(operation.operands.back()->type)) mark_keeping(*operation.operands[0]);
        } else if (operation.op == Op::call_library) {
            for (const Value* operand : operation.operands) {
                mark(*operand, true, !operation.library->pure);
                const bool holds = operand->type.is_array() && holds_array(operand->type.element());
                if (operation.library->native && (holds || operand->type.is_struct())) mark_keeping(*operand);
            }
        } else if (operation.op == Op::call) {
            const std::vector<ParameterEffects> callee = effects_of(*operation.function, known);
            for (std::size_t i = 0; i < operation.operands.size(); ++i) {
                mark(*operation.operands[i], callee[i].reads, callee[i].writes);
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
