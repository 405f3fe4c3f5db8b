// Calls of functions with custom derivatives (functions.h):
//
//   %y = call @f(%x)      replay:   %y = call @f_replay(%x)
//                         reverse:  %dx = call @f_gradient(%x, %dy), added to the adjoint of %x
//
// Functions that users wrote for this see arrays as they are after the launch: the adjoint gets these as extra
// parameters.
#include <algorithm>

#include "ir/typing.h"
#include "support/error.h"
#include "transform/adjoint/reverse.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

bool Reverser::passes_gradients(const Operation& call) const {
    if (call.op != Op::call) return false;
    return std::any_of(call.operands.begin(), call.operands.end(), [&](const Value* operand) {
        return operand->type.is_array() ? has_gradient(operand) : ir::holds_array(operand->type);
    });
}

void Reverser::replay_call(const Operation& call) {
    const ir::Function* callee = call.function->replay ? call.function->replay : call.function;
    Value* made = b_.call(const_cast<ir::Function*>(callee), arguments_of(call, *callee));
    if (made) map_.set(call.result(), made);
}

void Reverser::reverse_call(const Operation& call) {
    Value* d = call.results.empty() || !is_active(call.result()) ? nullptr : adjoint_of(call.result());
    if (!d && !passes_gradients(call)) return;
    ir::Function& gradient = *call.function->gradient;
    std::vector<Value*> arguments = arguments_of(call, gradient);
    if (!call.results.empty()) {
        const Type type = call.result()->type;
        if (!d) d = b_.zero(type);
        if (type.is_tuple())
            for (std::size_t i = 0; i < type.elements().size(); ++i)
                arguments.push_back(b_.extract(d, {static_cast<std::int64_t>(i)}));
        else
            arguments.push_back(d);
    }
    Value* adjoints = b_.call(&gradient, std::move(arguments));
    std::int64_t next = 0;
    for (const Value* operand : call.operands) {
        if (!ir::is_smooth(operand->type)) continue;
        accumulate(operand, gradient.result.is_tuple() ? b_.extract(adjoints, {next}) : adjoints);
        ++next;
    }
}

void Reverser::reverse_library_call(const Operation& call, Value* d) {
    const ir::LibraryFunction& function = *call.library;
    if (ir::has_constant_result(call)) return;
    if (function.adjoint.empty()) fail(call, "it calls " + ir::named(function) + ", whose derivative is not known");
    std::vector<Value*> arguments;
    std::vector<Type> types;
    std::vector<const Value*> smooth;
    for (const Value* operand : call.operands) {
        arguments.push_back(copy(operand));
        if (!ir::is_smooth(operand->type)) continue;
        types.push_back(operand->type);
        smooth.push_back(operand);
    }
    arguments.push_back(d);
    auto adjoint = std::make_shared<ir::LibraryFunction>(function);
    adjoint->symbol = function.adjoint;
    adjoint->adjoint.clear();
    adjoint->tangent.clear();
    const bool is_one = types.size() == 1;
    Value* adjoints = b_.call_library(std::move(adjoint), is_one ? types[0] : Type::tuple(types), std::move(arguments));
    for (std::size_t i = 0; i < smooth.size(); ++i)
        accumulate(smooth[i], is_one ? adjoints : b_.extract(adjoints, {static_cast<std::int64_t>(i)}));
}

std::vector<Value*> Reverser::arguments_of(const Operation& call, const ir::Function& callee) {
    std::vector<Value*> arguments;
    for (const Value* operand : call.operands)
        arguments.push_back(callee.sees_after && ir::holds_array(operand->type) ? as_after(call, operand)
                                                                                : copy(operand));
    return arguments;
}

// `array` with its contents after the launch.
Value* Reverser::as_after(const Operation& use, const Value* array) {
    std::vector<const Value*> written;
    bool writes_unknown = false;
    const auto mark = [&](const Value* target) {
        const Value* origin = ir::origin_of(target);
        if (ir::is_parameter(source_, origin))
            written.push_back(origin);
        else if (!origin->definition || origin->definition->op != Op::local_array)
            writes_unknown = true;
    };
    ir::for_each_operation(source_.body, [&](const Operation& operation) {
        for (const Value* target : ir::written_arrays(operation)) mark(target);
    });
    const Value* const root = ir::root_of(array);
    const Value* const origin = ir::origin_of(array);
    const bool is_local = origin->definition && origin->definition->op == Op::local_array;
    const bool is_array = ir::is_parameter(source_, root) && root->type.is_array();
    const bool is_written = std::find(written.begin(), written.end(), origin) != written.end();
    const bool is_known = ir::is_parameter(source_, origin);
    const bool may_be_written = is_written || writes_unknown || (!(options_.noalias && is_known) && !written.empty());
    const std::string need = use.op == Op::call ? "a function with a derivative of its own" : "this atomic";
    if (is_local) fail(use, need + " is given an array made in the kernel");
    if (!may_be_written) return copy(array);
    if (!is_array || !source_.is_kernel) {
        fail(use, need +
                      " needs an array as it is after the launch, and the array lies in memory or in a struct, or is "
                      "chosen at run time");
    }
    const auto rebuilt = [&](const auto& self, const Value* part) -> Value* {
        if (part == root) {
            Value*& parameter = after_[root];
            if (!parameter) {
                parameter = made_->add_argument(&made_->body, root->type, root->name);
                made_->implicit_parameters.push_back({ir::ImplicitParameter::Kind::after, root->index});
            }
            return parameter;
        }
        Value* outer = self(self, part->definition->operands[0]);
        map_.set(part->definition->operands[0], outer);
        const Operation* made = append_copy(*part->definition);
        return made->result();
    };
    // The copied views are used here alone: the earlier mapping is restored.
    const ir::ValueMap saved = map_;
    Value* result = rebuilt(rebuilt, array);
    map_ = saved;
    return result;
}

}  // namespace weft::transform
