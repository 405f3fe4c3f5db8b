// object[i, j]: elements and views of arrays, components of vectors and matrices, elements of tuples.
//
// A chain of subscripts of arrays is one access:   a[i][j]   →   load %a[%i, %j]
#include "ir/indices.h"
#include "sema/analyzer.h"
#include "types/pattern.h"

namespace weft::sema {

namespace {

const char* plural(std::size_t n, const char* one, const char* many) { return n == 1 ? one : many; }

}  // namespace

Value FunctionAnalyzer::subscript(const syntax::Subscript& subscript, Span span) {
    const Value object = with_view(*subscript.object);
    if (object.type.is_tile()) return part_of_tile(object, subscript.indices, span);
    // Shapes of arrays have four extents: those past the last dimension are 0.
    const auto* attribute = std::get_if<syntax::Attribute>(&subscript.object->node);
    if (attribute && attribute->name == "shape" && object.is_tuple() && object.elements[0].is_runtime() &&
        subscript.indices.size() == 1 && !has_slice(subscript.indices)) {
        const Value axis = expression(*subscript.indices[0]);
        if (axis.is_constant_integer() && axis.numbers[0].i >= static_cast<std::int64_t>(object.elements.size()) &&
            axis.numbers[0].i < 4)
            return Value::integer(0);
    }
    return subscript_of(object, subscript.indices, span);
}

Value FunctionAnalyzer::subscript_of(const Value& object, const std::vector<syntax::ExpressionPtr>& indices,
                                     Span span) {
    if (object.is_tuple() && indices.size() == 1 && has_slice(indices)) {
        std::vector<Value> elements;
        const auto size = static_cast<std::int64_t>(object.elements.size());
        for (const std::int64_t at : static_slice(std::get<syntax::Slice>(indices[0]->node), size, indices[0]->span))
            elements.push_back(object.elements[static_cast<std::size_t>(at)]);
        return object.is_list ? Value::list(std::move(elements)) : Value::tuple(std::move(elements));
    }
    if (object.is_tuple()) {
        if (indices.size() != 1) fail(span, describe(object) + " takes one index", {}, ErrorCategory::index);
        const Value i = expression(*indices[0]);
        if (!i.is_constant_integer()) return parts_.element_at(object, i, span);
        return object.elements[static_cast<std::size_t>(static_position(object, i.numbers[0].i, span))];
    }
    if (object.is_binding()) reject_adjoint(*object.binding, span);
    const Type type = type_of(object);
    if (type.is_array() && has_slice(indices)) return array_slice(object, indices);
    if (type.is_array()) {
        std::vector<ir::Value*> all = array_indices(object, indices);
        if (static_cast<int>(indices.size()) == type.ndim()) return Value::runtime(builder_.load(object.ir, all));
        Value rest = object;
        rest.type = Type::array(type.element(), type.ndim() - static_cast<int>(indices.size()));
        rest.pending = std::move(all);
        return rest;
    }
    if (type.is_numeric_aggregate() && is_empty_slice(type, indices)) return Value::list({});
    if (type.is_numeric_aggregate()) return parts_.read(object, part_subscript(type, indices, span));
    if (is_indexed(type)) {
        if (static_cast<int>(indices.size()) < indexed_type(type).ndim() && !has_slice(indices))
            return indexed_row(object, indices, span);
        const IndexedElement element = indexed_element(object, indices, span);
        return Value::runtime(builder_.load(element.array, element.indices));
    }
    fail(span, describe(object) + " cannot be subscripted",
         {help("arrays, vectors, matrices, quaternions, transforms and tuples can")});
}

std::vector<ir::Value*> FunctionAnalyzer::array_indices(const Value& array,
                                                        const std::vector<syntax::ExpressionPtr>& indices) {
    const int ndim = array.type.ndim();
    std::vector<ir::Value*> all = array.pending;
    if (static_cast<int>(indices.size()) > ndim) {
        const Span span = indices[ndim]->span;
        fail(span,
             std::to_string(indices.size()) + " indices for " + array.type.python_name() + ", which has " +
                 std::to_string(ndim) + plural(ndim, " dimension", " dimensions"),
             {help(array.type.element().is_numeric_aggregate()
                       ? "components of an element need brackets of their own: a[i][0]"
                       : "give one index per dimension")},
             ErrorCategory::index);
    }
    for (const syntax::ExpressionPtr& e : indices)
        all.push_back(index_along(array.ir, static_cast<int>(all.size()), *e));
    return all;
}

ir::Value* FunctionAnalyzer::index_along(ir::Value* array, int axis, const syntax::Expression& expression_node) {
    const Value i = expression(expression_node);
    // A negative constant counts from the end.
    if (i.is_constant_integer() && i.numbers[0].i < 0 && info(i.type.scalar()).is_signed()) {
        return builder_.binary(ir::Op::add, builder_.dim(array, axis), builder_.integer(i.numbers[0].i));
    }
    return ir::counted_from_end(builder_, values_.index(i, expression_node.span),
                                [&] { return builder_.dim(array, axis); });
}

PartStep FunctionAnalyzer::part_subscript(Type type, std::span<const syntax::ExpressionPtr> indices, Span span) {
    const std::size_t most = type.is_matrix() ? 2 : 1;
    if (indices.empty() || indices.size() > most) {
        fail(span,
             std::to_string(indices.size()) + " indices for " + type.python_name() + ", which takes " +
                 (most == 2 ? "1 or 2" : "1"),
             {}, ErrorCategory::index);
    }
    if (has_slice(indices)) return part_slice(type, indices);
    PartStep step;
    step.type = type.is_matrix() && indices.size() == 1 ? Type::vector(type.scalar(), type.cols()) : type.scalar_type();
    std::vector<Value> values;
    bool is_fixed = true;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
        Value i = expression(*indices[axis]);
        if (i.is_constant_integer()) {
            const std::int64_t size = axis == 0 ? type.rows() : type.cols();
            std::int64_t& at = i.numbers[0].i;
            if (at < -size || at >= size) {
                fail(indices[axis]->span,
                     "index " + std::to_string(at) + " is outside " + type.python_name() + ", which has " +
                         std::to_string(size) + (type.is_matrix() ? (axis == 0 ? " rows" : " columns") : " components"),
                     {}, ErrorCategory::index);
            }
            if (at < 0) at += size;
        } else {
            is_fixed = false;
        }
        values.push_back(std::move(i));
    }
    step.kind = is_fixed ? PartStep::Kind::path : PartStep::Kind::dynamic;
    for (std::size_t axis = 0; axis < values.size(); ++axis) {
        if (is_fixed)
            step.path.push_back(values[axis].numbers[0].i);
        else
            step.indices.push_back(
                ir::counted_from_end(builder_, values_.index(values[axis], indices[axis]->span),
                                     [&] { return builder_.integer(axis == 0 ? type.rows() : type.cols()); }));
    }
    return step;
}

}  // namespace weft::sema
