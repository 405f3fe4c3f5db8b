#include "ir/copier.h"

namespace weft::ir {

Copier::Copier(const Function& source)
    : source_(source), made_(std::make_unique<Function>()), b_(*made_, made_->body), map_(source) {
    made_->name = source.name;
    made_->is_kernel = source.is_kernel;
    made_->tid_rank = source.tid_rank;
    made_->uncontended_parameters = source.uncontended_parameters;
    made_->span = source.span;
}

std::vector<Value*> Copier::copies(std::span<Value* const> values) const {
    std::vector<Value*> result;
    result.reserve(values.size());
    for (const Value* value : values) result.push_back(copy(value));
    return result;
}

Value* Copier::append_parameter(const Value* parameter) {
    Value* made = made_->add_argument(&made_->body, parameter->type, parameter->name);
    map_.set(parameter, made);
    return made;
}

void Copier::append_parameters() {
    for (const Value* parameter : source_.parameters()) append_parameter(parameter);
    made_->implicit_parameters = source_.implicit_parameters;
}

Operation* Copier::append_copy(const Operation& operation) {
    Operation* made = clone(*made_, operation, map_);
    made->inlined = nullptr;  // it refers to values of the source
    made->parent = &b_.region();
    b_.region().operations.push_back(made);
    return made;
}

std::vector<Value*> Copier::append_structured(const Operation& operation, const std::vector<Value*>& starts,
                                              const Fill& fill) {
    const bool is_loop = operation.op != Op::if_;
    const auto last = static_cast<std::ptrdiff_t>(operation.results.size() - (operation.guarded ? 1 : 0));
    const auto put = [&](std::vector<Value*>& values, std::size_t before, const std::vector<Value*>& more) {
        values.insert(values.begin() + static_cast<std::ptrdiff_t>(before) + last, more.begin(), more.end());
    };
    Operation* made = made_->new_operation(operation.op, operation.span);
    made->guarded = operation.guarded;
    made->likely = operation.likely;
    made->parent = &b_.region();
    made->operands = copies(operation.operands);
    if (is_loop) put(made->operands, carried_operands(operation), starts);

    std::vector<Type> types;
    for (const Value* start : starts) types.push_back(start->type);
    for (const Region* from : operation.regions) {
        Region* to = made_->new_region(made);
        std::vector<Value*> more;
        const std::size_t before_more =
            is_loop ? carried_arguments(operation) + static_cast<std::size_t>(last) : from->arguments.size();
        for (std::size_t i = 0; i <= from->arguments.size(); ++i) {
            if (is_loop && i == before_more)
                for (const Type type : types) more.push_back(made_->add_argument(to, type));
            if (i == from->arguments.size()) break;
            const Value* argument = from->arguments[i];
            map_.set(argument, made_->add_argument(to, argument->type, argument->name));
        }
        Builder::Inside inside(b_, *to);
        const std::vector<Value*> next = fill(*from, std::move(more));
        std::vector<Value*> yields = copies(from->terminator()->operands);
        const bool is_condition = operation.op == Op::while_ && from == operation.regions[0];
        if (!is_condition) put(yields, 0, next);
        b_.yield(std::move(yields));
        if (!is_loop && types.empty())
            for (const Value* value : next) types.push_back(value->type);
    }
    std::vector<Value*> results;
    for (std::size_t i = 0; i <= operation.results.size(); ++i) {
        if (i == static_cast<std::size_t>(last))
            for (const Type type : types) results.push_back(made_->add_result(made, type));
        if (i == operation.results.size()) break;
        const Value* result = operation.results[i];
        map_.set(result, made_->add_result(made, result->type, result->name));
    }
    b_.region().operations.push_back(made);
    return results;
}

}  // namespace weft::ir
