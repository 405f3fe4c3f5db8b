#include "ir/ir.h"

#include <array>
#include <unordered_map>

namespace weft::ir {
namespace {

// The text name of an enumerator. A trailing '_' only keeps it from being a C++ keyword; the group prefixes "cmp_",
// "atomic_" and "tile_" are written with a '.'.
std::string text_name(std::string_view id) {
    std::string name(id);
    if (name.ends_with('_')) name.pop_back();
    for (const std::string_view group : {"cmp_", "atomic_", "tile_"})
        if (name.starts_with(group)) name[group.size() - 1] = '.';
    return name;
}

const std::array<std::string, kOpCount>& names() {
    static const std::array<std::string, kOpCount> table = {
#define WEFT_OP(id, ...) text_name(#id),
#include "ir/ops.def"
    };
    return table;
}

}  // namespace

const char* op_name(Op op) { return names()[static_cast<std::size_t>(op)].c_str(); }
std::optional<Op> applied(Op atomic) {
    switch (atomic) {
#define WEFT_ATOMIC(id, applied) \
    case Op::id:                 \
        return Op::applied;
#include "ir/ops.def"
        default:
            return std::nullopt;
    }
}

std::size_t values_behind_indices(Op op) {
    switch (op_info(op).form) {
        case OpForm::element_value:
            return 1;
        case OpForm::element_values:
            return 2;
        default:
            return 0;
    }
}

std::optional<Op> parse_op(std::string_view name) {
    static const std::unordered_map<std::string_view, Op> table = [] {
        std::unordered_map<std::string_view, Op> made;
        for (std::size_t i = 0; i < kOpCount; ++i) made.emplace(names()[i], static_cast<Op>(i));
        return made;
    }();
    const auto found = table.find(name);
    return found == table.end() ? std::nullopt : std::optional(found->second);
}

Value* Function::new_value(Type type, std::string name) {
    Value& value = values_.emplace_back();
    value.type = type;
    value.id = next_id_++;
    value.name = std::move(name);
    return &value;
}

Operation* Function::new_operation(Op op, Span span) {
    Operation& operation = operations_.emplace_back();
    operation.op = op;
    operation.span = span;
    return &operation;
}

Region* Function::new_region(Operation* owner) {
    Region& region = regions_.emplace_back();
    region.owner = owner;
    if (owner) owner->regions.push_back(&region);
    return &region;
}

Value* Function::add_result(Operation* operation, Type type, std::string name) {
    Value* value = new_value(type, std::move(name));
    value->definition = operation;
    value->index = static_cast<int>(operation->results.size());
    operation->results.push_back(value);
    return value;
}

Value* Function::add_argument(Region* region, Type type, std::string name) {
    Value* value = new_value(type, std::move(name));
    value->region = region;
    value->index = static_cast<int>(region->arguments.size());
    region->arguments.push_back(value);
    return value;
}

const Region* region_of(const Value* value) { return value->definition ? value->definition->parent : value->region; }

bool is_of_thread(const Value* array) {
    const Operation* made = root_of(array)->definition;
    return made && (made->op == Op::local_array || made->op == Op::stack);
}

const Value* root_of(const Value* array) {
    while (array->definition) {
        switch (array->definition->op) {
            case Op::view:
            case Op::slice:
            case Op::overlay:
            case Op::components:
            case Op::member:
            case Op::grad_of:
                array = array->definition->operands[0];
                break;
            default:
                return array;
        }
    }
    return array;
}

const Value* origin_of(const Value* array) {
    const Value* root = root_of(array);
    while (root->definition && root->definition->op == Op::extract) root = root->definition->operands[0];
    return root;
}

bool is_parameter(const Function& function, const Value* value) {
    return !value->definition && value->region == &function.body;
}

const Value* gradient_holding(const Value* array) {
    while (array->definition && array->definition->op != Op::grad_of) {
        if (array->definition->operands.empty()) return nullptr;
        array = array->definition->operands[0];
    }
    return array->definition ? array : nullptr;
}

Value* gradient_holding(Value* array) { return const_cast<Value*>(gradient_holding(static_cast<const Value*>(array))); }

Function* Module::find(std::string_view name) const {
    for (const auto& function : functions)
        if (function->name == name) return function.get();
    return nullptr;
}

Function* Module::add(std::string name) {
    functions.push_back(std::make_unique<Function>());
    functions.back()->name = std::move(name);
    return functions.back().get();
}

std::string named(const LibraryFunction& function) { return "the library function '" + function.symbol + "'"; }

}  // namespace weft::ir
