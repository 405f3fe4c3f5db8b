// Lists: a number of values that is known at compile time, each of its own type. A list has no memory; an assignment to
// an element gives the local a new list. An index that only a launch knows goes through a vector or a matrix:
//
//   v = [a, b]; v[1] = c      v is (a, c)
//   v[i]                 →    extract_at (make a, b), %i
//   v[i] = c             →    %w = insert_at (make a, b), c, %i;  v is (%w[0], %w[1])
#include "ir/indices.h"
#include "sema/analyzer.h"

namespace weft::sema {

AssignmentTarget FunctionAnalyzer::target_of_element(AssignmentTarget base, const Value& list,
                                                     const syntax::Subscript& subscript, Span span) {
    if (subscript.indices.size() != 1 || has_slice(subscript.indices))
        fail(span, "one element of a list can be assigned at a time", {help("write a loop")}, ErrorCategory::index);
    if (base.element) {
        fail(span, "of lists in lists, only the last index may be known at run time only",
             {help("make a matrix, or wp.zeros(shape=(2, 3), dtype=float)")}, ErrorCategory::index);
    }
    const Value index = expression(*subscript.indices[0]);
    base.span = span;
    if (index.is_constant_integer()) {
        base.elements.push_back(static_position(list, index.numbers[0].i, span));
        base.type = type_of(part_of_list(list, {base.elements.back()}));
    } else {
        base.type = type_of(parts_.element_at(list, index, span));
        base.element = values_.materialize(index, span);
    }
    return base;
}

void FunctionAnalyzer::write_element(const AssignmentTarget& place, const Value& value, Span value_span, bool is_part) {
    if (value.is_nothing()) fail(value_span, "there is no value to assign: the call returns nothing");
    const Value before = locals_.find(place.name)->value;
    Value list = part_of_list(before, place.elements);
    std::vector<std::int64_t> around = place.elements;
    if (!place.element) around.pop_back();
    // Parts of a tuple's elements can change, as in Python a struct can that a tuple refers to.
    if (const Value whole = part_of_list(before, around); !is_part && !whole.is_list) {
        fail(place.span, "elements of " + describe(whole) + " cannot be assigned",
             {help("elements of arrays and lists and components of vectors and matrices can")});
    }
    if (place.element) {
        const auto size = static_cast<std::int64_t>(list.elements.size());
        ir::Value* whole = parts_.as_aggregate(list, place.span);
        ir::Value* at = ir::counted_from_end(builder_, place.element, [&] { return builder_.integer(size); });
        const std::string what = "the value assigned to an element of '" + syntax::spelled(place.name) + "'";
        ir::Value* part = values_.materialize(expect(value, place.type, value_span, what), value_span);
        whole = builder_.insert_at(whole, part, {at});
        for (std::int64_t i = 0; i < size; ++i) {
            PartStep step;
            step.path = {i};
            step.type = place.type;
            list.elements[static_cast<std::size_t>(i)] = parts_.read(Value::runtime(whole), step);
        }
    } else {
        list = bound(value, value_span);
    }
    Value after = before;
    Value* part = &after;
    for (const std::int64_t at : place.elements) part = &part->elements[static_cast<std::size_t>(at)];
    *part = std::move(list);
    locals_.assign(place.name, std::move(after), place.span);
}

// The element of a local list or tuple, without writing IR; for an index at run time, the first element.
std::optional<Value> FunctionAnalyzer::element_of_local(const syntax::Expression& e) const {
    if (const auto* name = std::get_if<syntax::Name>(&e.node)) {
        const Local* local = locals_.find(name->id);
        return local && local->value.is_tuple() ? std::optional(local->value) : std::nullopt;
    }
    const auto* subscript = std::get_if<syntax::Subscript>(&e.node);
    const std::optional<Value> whole = subscript ? element_of_local(*subscript->object) : std::nullopt;
    if (!whole || !whole->is_tuple() || whole->elements.empty()) return std::nullopt;
    if (subscript->indices.size() != 1 || has_slice(subscript->indices)) return std::nullopt;
    const syntax::Expression* index = subscript->indices[0].get();
    const auto* unary = std::get_if<syntax::Unary>(&index->node);
    const bool is_negative = unary && unary->op == syntax::UnaryOperator::negate;
    if (is_negative) index = unary->operand.get();
    std::int64_t at = 0;
    if (const auto* literal = std::get_if<syntax::IntegerLiteral>(&index->node)) {
        at = literal->value;
    } else if (const auto* name = std::get_if<syntax::Name>(&index->node)) {
        const Local* local = locals_.find(name->id);
        if (local && local->value.is_constant_integer()) at = local->value.numbers[0].i;
    }
    if (is_negative) at = -at;
    return whole->elements[static_cast<std::size_t>(static_position(*whole, at, e.span))];
}

bool FunctionAnalyzer::append_to_list(const syntax::Call& call, Span span) {
    const auto* attribute = std::get_if<syntax::Attribute>(&call.function->node);
    const auto* name = attribute ? std::get_if<syntax::Name>(&attribute->object->node) : nullptr;
    const Local* local = name ? locals_.find(name->id) : nullptr;
    if (!local || !local->value.is_list || attribute->name != "append") return false;
    if (call.arguments.size() != 1 || !call.keywords.empty()) fail(span, "append() takes one value");
    Value value = bound(expression(*call.arguments[0]), call.arguments[0]->span);
    Value list = this->name(*name, attribute->object->span);
    list.elements.push_back(std::move(value));
    locals_.assign(name->id, std::move(list), span);
    return true;
}

}  // namespace weft::sema
