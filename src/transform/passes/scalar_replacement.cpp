// Scalar replacement of structs that loops and branches carry: facts about a field are lost if its struct goes round a
// loop as a whole. So loops and branches carry the fields:
//
//   %q = while carry (%q.0 = %s) { .. %q.1 .. }      %a, %b = while carry (%a.0 = extract %s[0], ...) { .. make .. }
//                                                    %q = make %a, %b
//
// Then simplify() drops fields that do not change. A struct with arrays stays whole.
#include "transform/passes/scalar_replacement.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool is_split(Type type) { return type.is_struct() && !type.fields().empty() && !ir::holds_array(type); }

class ScalarReplacement {
public:
    explicit ScalarReplacement(ir::Function& function) : function_(function), map_(function) {}

    // True if there was one; a field that is itself a struct is left for the next run.
    bool run() {
        region(function_.body);
        if (any_) ir::replace_uses(function_.body, map_);
        return any_;
    }

private:
    using Operations = std::vector<Operation*>;

    void region(Region& region) {
        Operations made;
        for (Operation* operation : region.operations) {
            for (Region* inner : operation->regions) this->region(*inner);
            const bool splits =
                !operation->regions.empty() &&
                std::ranges::any_of(operation->results, [](const Value* v) { return is_split(v->type); });
            if (!splits) {
                made.push_back(operation);
                continue;
            }
            any_ = true;
            split(*operation, made);
        }
        region.operations = std::move(made);
    }

    // Appends the operation to `made`, after operations that take the structs apart and before those that put them
    // together.
    void split(Operation& operation, Operations& made) {
        take_apart(operation.operands, operation.op == Op::if_ ? 0 : operation.results.size(), operation, made);
        for (Region* inner : operation.regions) {
            Operations inside;
            if (operation.op != Op::if_)
                put_together(inner->arguments, ir::carried_arguments(operation), inside, operation,
                             [&](Type type, const std::string& name) { function_.add_argument(inner, type, name); });
            Operation* const end = inner->operations.back();
            inside.insert(inside.end(), inner->operations.begin(), inner->operations.end() - 1);
            const bool is_condition = operation.op == Op::while_ && inner == operation.regions[0];
            take_apart(end->operands, is_condition ? 0 : end->operands.size(), *end, inside);
            inside.push_back(end);
            inner->operations = std::move(inside);
        }
        made.push_back(&operation);
        put_together(operation.results, 0, made, operation,
                     [&](Type type, const std::string& name) { function_.add_result(&operation, type, name); });
    }

    // Replaces the structs among the last `count` values by their fields.
    void take_apart(std::vector<Value*>& values, std::size_t count, const Operation& at, Operations& made) {
        std::vector<Value*> fields = values;
        fields.resize(values.size() - count);
        for (Value* const value : std::span(values).last(count)) {
            if (!is_split(value->type)) {
                fields.push_back(value);
                continue;
            }
            for (std::size_t field = 0; field < value->type.fields().size(); ++field) {
                Operation* extract = function_.new_operation(Op::extract, at.span);
                extract->inlined = at.inlined;
                extract->operands = {value};
                extract->ints = {static_cast<std::int64_t>(field)};
                fields.push_back(function_.add_result(extract, value->type.fields()[field].type));
                made.push_back(extract);
            }
        }
        values = std::move(fields);
    }

    // `add` adds a value to `values`, which belong to an operation or a region.
    template <typename Add>
    void put_together(std::vector<Value*>& values, std::size_t first, Operations& made, const Operation& at,
                      const Add& add) {
        const std::vector<Value*> before = values;
        values.resize(first);
        for (std::size_t i = first; i < before.size(); ++i) {
            Value* const value = before[i];
            if (!is_split(value->type)) {
                value->index = static_cast<int>(values.size());
                values.push_back(value);
                continue;
            }
            Operation* make = function_.new_operation(Op::make, at.span);
            make->inlined = at.inlined;
            for (const Type::Field& field : value->type.fields()) {
                add(field.type, value->name);
                make->operands.push_back(values.back());
            }
            map_.set(value, function_.add_result(make, value->type, value->name));
            made.push_back(make);
        }
    }

    ir::Function& function_;
    ir::ValueMap map_;
    bool any_ = false;
};

}  // namespace

void replace_structs_by_fields(ir::Function& function) {
    while (ScalarReplacement(function).run()) continue;
}

}  // namespace weft::transform
