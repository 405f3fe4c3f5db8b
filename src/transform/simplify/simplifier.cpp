#include "transform/simplify/simplifier.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

Simplifier::Simplifier(ir::Function& function)
    : function_(function), map_(function), used_(static_cast<std::size_t>(function.value_count()), false) {
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        for (const Value* operand : operation.operands) used_[static_cast<std::size_t>(operand->id)] = true;
    });
    find_writing(function.body);
}

bool Simplifier::run() {
    region(function_.body);
    return changed_;
}

void Simplifier::region(Region& region) {
    const CommonSubexpressions::Scope scope(subexpressions_);
    Region* const outer = current_;
    current_ = &region;
    const std::vector<Operation*> before = std::move(region.operations);
    region.operations.clear();
    region.operations.reserve(before.size());
    for (Operation* operation : before) visit(*operation);
    current_ = outer;
}

void Simplifier::visit(Operation& operation) {
    for (Value*& operand : operation.operands) operand = map_[operand];
    switch (operation.op) {
        case Op::if_:
            if_(operation);
            return;
        case Op::for_:
            for_(operation);
            return;
        case Op::while_:
            while_(operation);
            return;
        default:
            break;
    }
    if (operation.results.size() == 1) {
        Value* same = simplified(operation);
        if (!same) same = subexpressions_.find_or_add(operation);
        if (same) {
            replace(operation.results[0], same);
            return;
        }
    }
    keep(operation);
    if (ir::only_reports(operation.op) || !ir::has_effects(operation)) return;
    subexpressions_.new_epoch();
    if (operation.op == Op::store) subexpressions_.note_store(operation);
}

void Simplifier::keep(Operation& operation) {
    operation.parent = current_;
    current_->operations.push_back(&operation);
}

void Simplifier::replace(const Value* value, Value* by) {
    // Operands are mapped before they are read, so `by` itself is not replaced and no chains arise.
    map_.set(value, by);
    if (by->name.empty() && !constant_numbers(by)) by->name = value->name;
    changed_ = true;
}

Value* Simplifier::simplified(Operation& operation) {
    if (Value* value = folded(operation)) return value;
    switch (ir::op_class(operation.op)) {
        case ir::OpClass::unary:
            return unary_identity(operation);
        case ir::OpClass::binary:
            return binary_identity(operation);
        case ir::OpClass::compare:
            return compare_identity(operation);
        default:
            break;
    }
    switch (operation.op) {
        case Op::select:
            return select_identity(operation);
        case Op::extract:
            return extract(operation);
        case Op::make:
            return make(operation);
        case Op::insert:
            return insert(operation);
        case Op::extract_at:
            return make_static(operation) ? extract(operation) : nullptr;
        case Op::insert_at:
            return make_static(operation) ? insert(operation) : nullptr;
        case Op::array_at:
            overlay(operation);
            return nullptr;
        case Op::cast:
        case Op::bitcast:
            return operation.operands[0]->type == operation.results[0]->type ? operation.operands[0] : nullptr;
        default:
            return nullptr;
    }
}

Value* Simplifier::constant(Type type, std::vector<Number> numbers, Span span) {
    Operation* operation = function_.new_operation(Op::constant, span);
    operation->numbers = std::move(numbers);
    Value* result = function_.add_result(operation, type);
    if (Value* same = subexpressions_.find_or_add(*operation)) return same;
    keep(*operation);
    return result;
}

Value* Simplifier::binary(Op op, Value* a, Value* b, Span span) {
    Operation* operation = function_.new_operation(op, span);
    operation->operands = {a, b};
    Value* result = function_.add_result(operation, a->type);
    if (Value* same = subexpressions_.find_or_add(*operation)) return same;
    keep(*operation);
    return result;
}

void Simplifier::change(Operation& operation, Op op, std::vector<Value*> operands, std::vector<std::int64_t> ints) {
    operation.op = op;
    operation.operands = std::move(operands);
    operation.ints = std::move(ints);
    changed_ = true;
}

}  // namespace weft::transform
