#include "transform/inline/inline.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/inline/noinline_functions.h"

namespace weft::transform {
namespace {

using ir::Function;
using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;
using ir::ValueMap;

class Inliner {
public:
    Inliner(ir::Module& module, Calls which) : module_(module), which_(which) {
        if (which == Calls::except_noinline) noinline_ = noinline_functions(module);
    }

    void function(Function& function) {
        const auto [at, fresh] = states_.try_emplace(&function, State::in_progress);
        if (!fresh) {
            WEFT_CHECK(at->second == State::done, "'" + function.name + "' calls itself");
            return;
        }
        ValueMap replaced(function);
        if (region(function, function.body, replaced)) ir::replace_uses(function.body, replaced);
        states_[&function] = State::done;
    }

    bool was_inlined(const Function& function) const { return inlined_.contains(&function); }
    bool stays(const Function& function) const {
        return which_ == Calls::custom_derivatives ? function.has_own_derivative() : noinline_.contains(&function);
    }

private:
    enum class State { in_progress, done };

    // call @f(%a) → the body of f with %a for its parameter. True if there was a call.
    bool region(Function& function, Region& region, ValueMap& replaced) {
        bool any = false;
        const std::vector<Operation*> before = std::move(region.operations);
        region.operations.clear();
        region.operations.reserve(before.size());
        for (Operation* operation : before) {
            for (Region* inner : operation->regions) any |= this->region(function, *inner, replaced);
            if (operation->op != Op::call || stays(*operation->function)) {
                region.operations.push_back(operation);
                continue;
            }
            any = true;
            Function& callee = *operation->function;
            this->function(callee);  // callees first, so that copied bodies have no calls left
            Value* result = body(function, region, callee, *operation);
            if (result) replaced.set(operation->results[0], result);
            function.tid_rank = std::max(function.tid_rank, callee.tid_rank);
            inlined_.insert(&callee);
        }
        return any;
    }

    Value* body(Function& function, Region& region, const Function& callee, const Operation& call) {
        ValueMap map(callee);
        for (std::size_t i = 0; i < call.operands.size(); ++i) map.set(callee.parameters()[i], call.operands[i]);
        const std::size_t first = region.operations.size();
        ir::clone_operations(function, callee.body, region, map);
        remember_call(region, first, callee, call, map);

        std::vector<Value*> returned;
        for (Value* value : callee.body.terminator()->operands) returned.push_back(map[value]);
        if (returned.empty()) return nullptr;
        if (returned.size() == 1) return returned[0];
        ir::Builder builder(function, region);
        builder.span = call.span;
        return builder.make(callee.result, std::move(returned));
    }

    // Records the call that the operations copied to the end of the region come from. Operations that came into the
    // callee by a call of its own keep that one, inside this.
    void remember_call(const Region& region, std::size_t first, const Function& callee, const Operation& call,
                       const ValueMap& map) {
        ir::CallLocation here{callee.name, call.span, {}, nullptr};
        for (std::size_t i = 0; i < call.operands.size(); ++i)
            here.arguments.emplace_back(call.operands[i], callee.parameters()[i]->name);
        const ir::CallLocation* const place = &module_.calls.emplace_back(std::move(here));
        std::unordered_map<const ir::CallLocation*, const ir::CallLocation*> copies{{nullptr, place}};
        const auto copied = [&](const auto& self, const ir::CallLocation* inner) -> const ir::CallLocation* {
            if (const auto found = copies.find(inner); found != copies.end()) return found->second;
            ir::CallLocation copy = *inner;
            for (auto& [value, name] : copy.arguments)
                if (const Value* to = map.find(value)) value = to;
            copy.outer = self(self, inner->outer);
            return copies[inner] = &module_.calls.emplace_back(std::move(copy));
        };
        const auto mark = [&](Operation& operation) { operation.inlined = copied(copied, operation.inlined); };
        for (std::size_t i = first; i < region.operations.size(); ++i) {
            mark(*region.operations[i]);
            for (Region* inner : region.operations[i]->regions) ir::for_each_operation(*inner, mark);
        }
    }

    ir::Module& module_;
    const Calls which_;
    std::unordered_map<const Function*, State> states_;
    std::unordered_set<const Function*> inlined_, noinline_;
};

}  // namespace

void inline_calls(ir::Module& module, Calls which) {
    Inliner inliner(module, which);
    std::unordered_set<const Function*> kept;
    bool has_kernel = false;
    for (const auto& function : module.functions) {
        inliner.function(*function);
        has_kernel |= function->is_kernel;
        if (inliner.stays(*function)) kept.insert({function.get(), function->gradient, function->replay});
    }
    std::erase_if(module.functions, [&](const auto& function) {
        if (which != Calls::custom_derivatives && has_kernel)
            return !function->is_kernel && !kept.contains(function.get());
        return inliner.was_inlined(*function) && !kept.contains(function.get());
    });
}

void inline_into(ir::Module& module, Function& function, Calls which) { Inliner(module, which).function(function); }

}  // namespace weft::transform
