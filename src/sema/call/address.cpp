// wp.address_of(a[i].v): the address of an array, or of a part of one, as a number. wp.index(v, i): brackets as a
// function.
//
// Uses views of the parts of all elements, as store_part() does; the address is that of a view's first element:
//   wp.address_of(a[i].v[1])   →   address (slice (slice (components (member %a))[0], %i)[0], 1, 1)
#include <memory>
#include <span>
#include <string>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Lends expressions of the tree to unique pointers and releases them at the end, so that they are not freed.
class Lent {
public:
    Lent(const std::vector<syntax::ExpressionPtr>& all, std::size_t from) {
        for (std::size_t i = from; i < all.size(); ++i)
            expressions.emplace_back(const_cast<syntax::Expression*>(all[i].get()));
    }
    ~Lent() {
        for (syntax::ExpressionPtr& each : expressions) static_cast<void>(each.release());
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    std::vector<syntax::ExpressionPtr> expressions;
};

bool may_be_place(const syntax::Expression& e) {
    return std::holds_alternative<syntax::Name>(e.node) || std::holds_alternative<syntax::Attribute>(e.node) ||
           std::holds_alternative<syntax::Subscript>(e.node);
}

}  // namespace

Value FunctionAnalyzer::index_function(const syntax::Call& call, Span span) {
    if (call.arguments.size() < 2 || !call.keywords.empty())
        fail(span, "wp.index() takes a value and its indices by position", {help("wp.index(v, i) is v[i]")},
             ErrorCategory::type);
    const Lent indices(call.arguments, 1);
    return subscript_of(expression(*call.arguments[0]), indices.expressions, span);
}

// The indices of the first component that the steps reach, counted from an element.
std::vector<ir::Value*> FunctionAnalyzer::first_component(Type element, std::span<const PartStep> steps, Span span) {
    std::vector<ir::Value*> found;
    const auto add_path = [&](const std::vector<std::int64_t>& path) {
        for (const std::int64_t at : path) found.push_back(builder_.integer(at));
    };
    for (const PartStep& step : steps) {
        if (step.kind == PartStep::Kind::path) {
            add_path(step.path);
        } else if (step.kind == PartStep::Kind::dynamic) {
            found.insert(found.end(), step.indices.begin(), step.indices.end());
        } else {
            bool is_line = step.kind == PartStep::Kind::several;
            for (std::size_t i = 1; is_line && i < step.components.size(); ++i)
                is_line = step.components[i] == step.components[i - 1] + 1;
            if (!is_line)
                fail(span, "these components do not lie side by side, so they have no address",
                     {help("take the address of one component, or of the whole value")}, ErrorCategory::value);
            add_path(component_path(element, step.components.front()));
        }
    }
    while (found.size() < (element.is_matrix() ? 2u : 1u)) found.push_back(builder_.integer(0));  // a row's first
    return found;
}

Value FunctionAnalyzer::address_of(const syntax::Call& call, Span span) {
    if (call.arguments.size() != 1 || !call.keywords.empty())
        fail(span, "wp.address_of() takes one argument, got " + std::to_string(call.arguments.size()), {},
             ErrorCategory::type);
    const syntax::Expression& argument = *call.arguments[0];
    const auto no_address = [&](const std::string& what) {
        fail(argument.span, what + " has no address",
             {help("arrays have one, their elements, and fields and components of these: keep the value in z[0] of z = "
                   "wp.zeros(shape=(1,), dtype=...). A @wp.func_native changes a local through a parameter that is "
                   "annotated wp.ref[T]")},
             ErrorCategory::type);
    };
    if (!may_be_place(argument)) no_address("a value that is computed");
    AssignmentTarget found = assignment_target(argument);
    if (found.array == nullptr) {
        const Value value = expression(argument);
        if (!type_of(value).is_array()) no_address(describe(value));
        return Value::runtime(builder_.address(values_.materialize(value, span)));
    }
    if (found.type.is_array() && !found.steps.empty()) no_address("an array in a struct in memory");
    ir::Value* array = found.array;
    Type type = array->type.element();
    std::size_t next = 0;
    while (next < found.steps.size() && type.is_struct()) {
        const int field = static_cast<int>(found.steps[next++].path[0]);
        array = builder_.member(array, field);
        type = type.fields()[static_cast<std::size_t>(field)].type;
    }
    if (next < found.steps.size()) {
        array = builder_.components(array);
        for (ir::Value* at : first_component(type, std::span(found.steps).subspan(next), argument.span))
            found.indices.push_back(at);
    }
    for (ir::Value* at : found.indices)
        array =
            array->type.ndim() > 1 ? builder_.slice(array, 0, at) : builder_.slice(array, 0, at, builder_.integer(1));
    return Value::runtime(builder_.address(array));
}

}  // namespace weft::sema
