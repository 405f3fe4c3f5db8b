#include "transform/analysis/lost_views.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// The floating-point types among the numbers of an element.
void add_floats(Type type, std::set<Scalar>& floats) {
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) add_floats(field.type, floats);
    } else if (ir::is_smooth(type)) {
        floats.insert(type.scalar());
    }
}

// The values computed from the address of one of these arrays, through branches and loops, but not through memory.
std::unordered_set<const Value*> made_of_addresses(const ir::Function& kernel,
                                                   const std::function<bool(const Value*)>& has_gradient) {
    std::unordered_set<const Value*> made;
    std::size_t before = 0;
    const auto any = [&](const std::vector<Value*>& values) {
        return std::any_of(values.begin(), values.end(), [&](const Value* value) { return made.contains(value); });
    };
    do {
        before = made.size();
        ir::for_each_operation(kernel.body, [&](const Operation& operation) {
            if (operation.op == Op::address) {
                if (has_gradient(operation.operands[0])) made.insert(operation.result());
                return;
            }
            bool leads = any(operation.operands);
            for (const ir::Region* region : operation.regions)
                leads |= region->terminator() && any(region->terminator()->operands);
            if (!leads) return;
            made.insert(operation.results.begin(), operation.results.end());
            for (const ir::Region* region : operation.regions)
                made.insert(region->arguments.begin(), region->arguments.end());
        });
    } while (made.size() > before);
    return made;
}

}  // namespace

void refuse_lost_views(const ir::Function& kernel, const std::function<bool(const Value* array)>& has_gradient) {
    const std::unordered_set<const Value*> lost = made_of_addresses(kernel, has_gradient);
    const std::string subject = "kernel '" + kernel.name + "' has no derivative: ";
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op != Op::array_at && operation.op != Op::overlay) return;
        const Type element = operation.result()->type.element();
        if (!ir::is_smooth(element)) return;
        if (operation.op == Op::array_at) {
            if (!lost.contains(operation.operands[0])) return;
            throw CompileError(operation.span,
                               subject + "the address of this view is not that of one array, plus a distance",
                               {{Note::Kind::help, "make a view of each array, and choose among the views", {}}});
        }
        const Value* array = operation.operands[0];
        std::set<Scalar> here, there;
        add_floats(element, here);
        add_floats(array->type.element(), there);
        if (here == there || there.empty() || !has_gradient(array)) return;
        throw CompileError(operation.span, subject + "this view shows " + element.python_name() + " in an array of " +
                                               array->type.element().python_name() +
                                               ", whose gradients are of another type");
    });
}

}  // namespace weft::transform
