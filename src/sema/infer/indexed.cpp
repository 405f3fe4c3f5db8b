// wp.indexedarray in kernels: a struct of an array and, for each of its axes, the array of indices into it.
//
//     x[i, j]    →   %data[%indices0[%i], %indices1[%j]]
//     x[i]       →   make (view %data[%indices0[%i]]), %indices1 : another such struct
//
// python/warp/_arrays/indexed.py makes the class; the key of its type tells it from other structs.
#include "ir/indices.h"
#include "sema/analyzer.h"
#include "types/pattern.h"
#include "types/struct_key.h"

namespace weft::sema {

bool is_indexed(Type type) { return indexed_type(type).is_array(); }

namespace {

std::string field_of_axis(std::size_t axis) { return "indices" + std::to_string(axis); }

}  // namespace

Value FunctionAnalyzer::indexed_row(const Value& object, const std::vector<syntax::ExpressionPtr>& indices, Span span) {
    ir::Value* data = attribute_of(object, "data", span).ir;
    const auto ndim = static_cast<std::size_t>(data->type.ndim());
    std::vector<ir::Value*> chosen, parts;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
        ir::Value* along = attribute_of(object, field_of_axis(axis), span).ir;
        chosen.push_back(builder_.load(along, {index_along(along, 0, *indices[axis])}));
    }
    parts.push_back(builder_.view(data, std::move(chosen)));
    for (std::size_t axis = indices.size(); axis < ndim; ++axis)
        parts.push_back(attribute_of(object, field_of_axis(axis), span).ir);
    const Type type = indexed_struct(parts[0]->type);
    return Value::runtime(builder_.make(type, std::move(parts)));
}

FunctionAnalyzer::IndexedElement FunctionAnalyzer::indexed_element(const Value& object,
                                                                   const std::vector<syntax::ExpressionPtr>& indices,
                                                                   Span span) {
    IndexedElement element;
    element.array = attribute_of(object, "data", span).ir;
    const auto ndim = static_cast<std::size_t>(element.array->type.ndim());
    if (indices.size() != ndim) {
        fail(span,
             std::to_string(indices.size()) + (indices.size() == 1 ? " index" : " indices") + " for " +
                 describe(object) + ", which has " + std::to_string(ndim) + (ndim == 1 ? " dimension" : " dimensions"),
             {help("give one index per dimension")}, ErrorCategory::index);
    }
    for (std::size_t axis = 0; axis < ndim; ++axis) {
        ir::Value* along = attribute_of(object, field_of_axis(axis), span).ir;
        element.indices.push_back(builder_.load(along, {index_along(along, 0, *indices[axis])}));
    }
    return element;
}

void FunctionAnalyzer::pass_indexed_element(std::vector<Actual>& arguments) {
    if (arguments.empty() || !arguments[0].keyword.empty() || !arguments[0].value.is_runtime()) return;
    const Value object = arguments[0].value;
    if (!is_indexed(type_of(object))) return;
    const Value array = attribute_of(object, "data", arguments[0].span);
    const auto ndim = static_cast<std::size_t>(type_of(array).ndim());
    // With fewer indices than dimensions no overload fits, and the message names the indexedarray.
    for (std::size_t axis = 0; axis < ndim; ++axis) {
        if (axis + 1 >= arguments.size() || !arguments[axis + 1].keyword.empty()) return;
        if (!type_of(arguments[axis + 1].value).is_int()) return;
    }
    for (std::size_t axis = 0; axis < ndim; ++axis) {
        Actual& position = arguments[axis + 1];
        ir::Value* along = attribute_of(object, field_of_axis(axis), position.span).ir;
        ir::Value* at = ir::counted_from_end(builder_, values_.index(position.value, position.span),
                                             [&] { return builder_.dim(along, 0); });
        position.value = Value::runtime(builder_.load(along, {at}));
    }
    arguments[0].value = array;
}

std::optional<Value> FunctionAnalyzer::indexed_attribute(const Value& object, const std::string& name, Span span) {
    const Type type = type_of(object);
    if (!is_indexed(type)) return std::nullopt;
    const int ndim = type.fields()[0].type.ndim();
    const auto extent = [&](int axis) {
        return builder_.dim(attribute_of(object, field_of_axis(static_cast<std::size_t>(axis)), span).ir, 0);
    };
    if (name == "shape") {
        std::vector<Value> extents;
        for (int axis = 0; axis < ndim; ++axis) extents.push_back(Value::runtime(extent(axis)));
        return Value::tuple(std::move(extents));
    }
    if (name == "dtype") return attribute_of(attribute_of(object, "data", span), name, span);
    if (name == "ndim") return Value::integer(ndim);
    if (name == "size") {
        ir::Value* size = extent(0);
        for (int axis = 1; axis < ndim; ++axis) size = builder_.binary(ir::Op::mul, size, extent(axis));
        return Value::runtime(size);
    }
    return std::nullopt;
}

}  // namespace weft::sema
