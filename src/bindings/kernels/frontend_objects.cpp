// Answers to the questions of frontend/ about objects of our Python classes (frontend/objects.h).
#include "bindings/kernels/kernel.h"
#include "bindings/values/array_value.h"
#include "bindings/values/patterns.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "frontend/objects.h"

namespace weft::frontend {

std::optional<Type> type_from_python(nb::handle object) { return bindings::dtype_from_python(object); }
std::optional<TypePattern> annotation_pattern(nb::handle object) { return bindings::pattern_from_python(object); }
nb::object type_to_python(Type type) { return bindings::dtype_to_python(type); }
std::string describe_object(nb::handle object) { return bindings::describe(object); }

std::optional<TypedConstant> typed_constant(nb::handle object) {
    TypedConstant constant;
    if (const bindings::Value* value = bindings::value_pointer(object)) {
        constant.type = value->type();
        for (int i = 0; i < constant.type.components(); ++i) constant.numbers.push_back(value->component(i));
        return constant;
    }
    const auto type = bindings::dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))));
    Number number;
    Scalar from;
    if (!type || !type->is_scalar() || !bindings::read_number(object, number, from)) return std::nullopt;
    return TypedConstant{*type, {convert(number, from, type->scalar())}};
}

std::optional<Type> struct_type(nb::handle object) {
    const auto type = bindings::dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))));
    return type && type->is_struct() ? type : std::nullopt;
}

nb::object constant_to_python(const TypedConstant& constant) {
    if (constant.type.is_scalar()) return bindings::number_to_python(constant.numbers[0], constant.type.scalar());
    nb::object made = bindings::new_value(constant.type);
    bindings::Value& value = *bindings::value_pointer(made);
    for (int i = 0; i < constant.type.components(); ++i)
        value.set_component(i, constant.numbers[static_cast<std::size_t>(i)]);
    return made;
}

std::string why_unusable(nb::handle object) {
    if (const bindings::PyArray* array = bindings::array_pointer(object)) {
        return array->is_annotation ? "an array annotation" : "an array (arrays are passed as arguments of a launch)";
    }
    if (bindings::is_numpy_array(object))
        return bindings::describe(object) + " (kernels read Weft arrays that are passed to them)";
    if (nb::isinstance<bindings::PyKernel>(object)) return "a kernel (kernels call functions made with @wp.func)";
    return "";
}

}  // namespace weft::frontend
