#include "transform/adjoint/functions.h"

#include <algorithm>
#include <unordered_set>

#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/adjoint/reverse.h"
#include "transform/inline/inline.h"
#include "transform/simplify/simplify.h"

namespace weft::transform {

using ir::Function;
using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

[[noreturn]] void fail(const Operation& operation, const Function& function, const std::string& what) {
    throw CompileError(
        operation.span, "function '" + function.name + "' has no gradient: " + what,
        {{Note::Kind::help,
          "write a function that gives its values again (@wp.func_replay), or one for its gradient (@wp.func_grad)",
          {}}});
}

bool is_unwritten(const Function& function) { return function.reverse_of && function.body.operations.empty(); }

// Copies the body of `from` to `to`, which has the same parameters.
void copy_body(const Function& from, Function& to) {
    ir::ValueMap map(from);
    for (std::size_t i = 0; i < from.parameters().size(); ++i) map.set(from.parameters()[i], to.parameters()[i]);
    ir::clone_operations(to, from.body, to.body, map);
    ir::Builder b(to, to.body);
    b.span = from.span;
    std::vector<Value*> returned;
    for (Value* value : from.body.terminator()->operands) returned.push_back(map[value]);
    b.return_(std::move(returned));
}

Function& add_copy(ir::Module& module, const Function& of, const std::string& suffix) {
    Function& copy = *module.add(of.name + suffix);
    copy.span = of.span;
    copy.result = of.result;
    copy.tid_rank = of.tid_rank;
    for (const Value* parameter : of.parameters()) copy.add_argument(&copy.body, parameter->type, parameter->name);
    copy_body(of, copy);
    return copy;
}

void remove(ir::Module& module, const Function& function) {
    std::erase_if(module.functions, [&](const auto& other) { return other.get() == &function; });
}

// Makes the reverse of `of` the body of `gradient`; `arrays` says whether arrays have gradients.
void write_reverse(ir::Module& module, const Function& of, Function& gradient, Gradient arrays,
                   const ReverseOptions& wanted) {
    Function& copy = add_copy(module, of, "");
    inline_into(module, copy, Calls::custom_derivatives);
    simplify(copy);
    const std::unordered_set<const Operation*> to_be_recorded = to_be_recorded_loads(copy, /*noalias=*/true);
    if (!to_be_recorded.empty())
        fail(**to_be_recorded.begin(), of, "it reads elements that it may have written itself");
    AdjointOptions options;
    options.gradients.assign(copy.parameters().size(), arrays);
    options.order = wanted.order;
    options.stack_slots = wanted.stack_slots;
    refuse_unknown(copy);
    const std::unique_ptr<Function> made = Reverser(copy, 0, options).run();
    copy_body(*made, gradient);
    remove(module, copy);
}

// The depth of nested gradients that are written for `gradient`.
int nesting(const Function& gradient) {
    const auto of = [](const auto& self, const Function& function) -> int {
        int deepest = 0;
        ir::for_each_operation(function.body, [&](const Operation& operation) {
            if (operation.op != Op::call) return;
            const Function& called = *operation.function;
            deepest = std::max(deepest, is_unwritten(called) ? 1 + nesting(called) : self(self, called));
        });
        return deepest;
    };
    return of(of, *gradient.reverse_of);
}

// Gradients that the function calls are written first: reversing the function needs their bodies.
void write(ir::Module& module, Function& gradient, Gradient arrays, const ReverseOptions& options) {
    const auto write_called = [&](const auto& self, const Function& function) -> void {
        ir::for_each_operation(function.body, [&](const Operation& operation) {
            if (operation.op != Op::call) return;
            if (is_unwritten(*operation.function))
                write(module, *operation.function, Gradient::none, {options.order + 1, options.stack_slots});
            else
                self(self, *operation.function);
        });
    };
    write_called(write_called, *gradient.reverse_of);
    write_reverse(module, *gradient.reverse_of, gradient, arrays, options);
}

// Removes everything but the computation of values.
void silence(Region& region, const Function& of, const std::unordered_set<const Value*>& used) {
    for (Operation* operation : region.operations) {
        for (Region* inner : operation->regions) silence(*inner, of, used);
        if (ir::is_atomic(operation->op) && used.contains(operation->result()))
            fail(*operation, of, "it uses the result of this atomic, which depends on the order of the threads");
        if (operation->op == Op::call_library && !operation->library->pure)
            fail(*operation, of, "it calls a function whose effects are not known");
    }
    std::erase_if(region.operations, [](const Operation* operation) {
        return ir::writes(operation->op) || operation->op == Op::print || operation->op == Op::raise ||
               operation->op == Op::assert_;
    });
}

// wp.adjoint[array][i] += x has no effect if the array has no gradient.
void guard_gradients(Function& function, Region& region) {
    std::vector<Operation*> guarded;
    for (Operation* operation : region.operations) {
        for (Region* inner : operation->regions) guard_gradients(function, *inner);
        const bool is_access = operation->op == Op::load || ir::writes(operation->op);
        Value* const gradient = is_access ? ir::gradient_holding(operation->operands[0]) : nullptr;
        if (!gradient) {
            guarded.push_back(operation);
            continue;
        }
        Region* const around = function.new_region(nullptr);  // receives operations that come before the branch
        ir::Builder b(function, *around);
        b.span = operation->span;
        Value* is_missing = b.is_null(gradient);
        Operation* branch = function.new_operation(Op::if_, operation->span);
        branch->operands = {is_missing};
        for (Region* arm : {function.new_region(branch), function.new_region(branch)}) {
            ir::Builder::Inside inside(b, *arm);
            const bool is_there = arm == branch->regions[1];
            std::vector<Value*> yields;
            for (Value*& result : operation->results) {
                if (is_there) {
                    Value* fresh = function.new_value(result->type);
                    fresh->definition = operation;
                    fresh->index = result->index;
                    result->definition = branch;  // uses of the result now refer to the branch
                    branch->results.push_back(result);
                    result = fresh;
                    yields.push_back(fresh);
                } else {
                    yields.push_back(b.zero(result->type));
                }
            }
            if (is_there) {
                operation->parent = arm;
                arm->operations.push_back(operation);
            }
            b.yield(std::move(yields));
        }
        for (Operation* before : around->operations) {
            before->parent = &region;
            guarded.push_back(before);
        }
        branch->parent = &region;
        guarded.push_back(branch);
    }
    region.operations = std::move(guarded);
}

// Whether a gradient can reach the function: by its result or through an array.
bool can_be_reached(const Function& function) {
    const auto has_smooth_array = [](const Value* parameter) {
        const Type type = parameter->type;
        return type.is_array() ? ir::is_smooth(type.element()) : ir::holds_array(type);
    };
    return ir::is_smooth(function.result) ||
           std::any_of(function.parameters().begin(), function.parameters().end(), has_smooth_array);
}

void write_zeros(Function& gradient) {
    ir::Builder b(gradient, gradient.body);
    b.span = gradient.span;
    std::vector<Value*> zeros;
    for (const Value* parameter : gradient.reverse_of->parameters())
        if (ir::is_smooth(parameter->type)) zeros.push_back(b.zero(parameter->type));
    b.return_(std::move(zeros));
}

bool has_effects(const Function& function) {
    return std::any_of(function.body.operations.begin(), function.body.operations.end(),
                       [](const Operation* operation) { return ir::has_effects(*operation); });
}

void add_replay(ir::Module& module, Function& function) {
    Function& copy = add_copy(module, function, ".replay");
    inline_into(module, copy, Calls::all);
    if (!has_effects(copy)) return remove(module, copy);
    const std::unordered_set<const Operation*> to_be_recorded = to_be_recorded_loads(copy, /*noalias=*/true);
    if (!to_be_recorded.empty())
        fail(**to_be_recorded.begin(), function, "it reads elements that it may have written itself");
    silence(copy.body, function, ir::used_values(copy));
    function.replay = &copy;
}

// Repeats the views that lead to `part` on `whole`; appends the new operations to `made`.
Value* same_part(Function& function, Value* part, Value* whole, std::vector<Operation*>& made, Region* region) {
    if (!part->definition) return whole;
    Value* outer = same_part(function, part->definition->operands[0], whole, made, region);
    ir::ValueMap map(function);
    map.set(part->definition->operands[0], outer);
    Operation* copy = ir::clone(function, *part->definition, map);
    copy->parent = region;
    made.push_back(copy);
    return copy->result();
}

void share_gradients(Function& adjoint, Region& region) {
    std::vector<Operation*> operations;
    for (Operation* operation : region.operations) {
        for (Region* inner : operation->regions) share_gradients(adjoint, *inner);
        if (operation->op == Op::grad_of) {
            const Value* root = ir::root_of(operation->operands[0]);
            const ir::ImplicitParameter* implicit = root->definition ? nullptr : adjoint.implicit(root);
            if (implicit && implicit->kind == ir::ImplicitParameter::Kind::after) {
                Value* argument = adjoint.parameters()[static_cast<std::size_t>(implicit->of)];
                operation->operands[0] = same_part(adjoint, operation->operands[0], argument, operations, &region);
            }
        }
        operations.push_back(operation);
    }
    region.operations = std::move(operations);
}

}  // namespace

void share_gradients(Function& adjoint) { share_gradients(adjoint, adjoint.body); }

void write_gradients(ir::Module& module, const ReverseOptions& options) {
    // The outermost come first: they know how often the inner ones will be differentiated.
    std::vector<std::pair<int, Function*>> unwritten;
    for (const auto& function : module.functions)
        if (is_unwritten(*function)) unwritten.push_back({nesting(*function), function.get()});
    std::stable_sort(unwritten.begin(), unwritten.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [depth, function] : unwritten)
        if (is_unwritten(*function)) write(module, *function, Gradient::none, options);
}

void prepare_custom_derivatives(ir::Module& module, const ReverseOptions& options) {
    std::vector<Function*> custom_derivatives;
    for (const auto& function : module.functions)
        if (function->has_own_derivative()) custom_derivatives.push_back(function.get());
    for (Function* function : custom_derivatives) {
        if (function->gradient) {
            guard_gradients(*function->gradient, function->gradient->body);
        } else {
            Function& gradient = *module.add(function->name + ".gradient");
            gradient.span = function->span;
            gradient.reverse_of = function;
            gradient.result = ir::gradient_type(*function);
            for (const Value* parameter : function->parameters())
                gradient.add_argument(&gradient.body, parameter->type, parameter->name);
            const Type result = function->result;
            if (result.is_tuple())
                for (const Type element : result.elements()) gradient.add_argument(&gradient.body, element);
            else if (!result.is_none())
                gradient.add_argument(&gradient.body, result);
            if (can_be_reached(*function))
                write(module, gradient, Gradient::used, options);
            else
                write_zeros(gradient);
            function->gradient = &gradient;
        }
        if (!function->replay) add_replay(module, *function);
    }
}

}  // namespace weft::transform
