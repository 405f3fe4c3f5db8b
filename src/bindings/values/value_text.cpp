// Typed values as text: repr() is a call that makes the value again, str() its numbers, as a list of Python has them.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bindings/values/value_object.h"

namespace weft::bindings {
namespace {

// The shortest decimal that reads back as the same number of its type, as Python writes floats.
std::string shortest_text(Number number, Scalar scalar) {
    if (!info(scalar).is_float()) return nb::str(number_to_python(number, scalar)).c_str();
    double shown = number.f;
    if (scalar != Scalar::f64 && std::isfinite(shown)) {
        for (int digits = 1; digits <= 9; ++digits) {
            char text[40];
            std::snprintf(text, sizeof text, "%.*e", digits - 1, number.f);
            shown = std::strtod(text, nullptr);
            if (convert(Number::real(shown), Scalar::f64, scalar).f == number.f) break;
        }
    }
    return nb::repr(nb::float_(shown)).c_str();
}

std::string components_text(const Value& value, int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) {
        text += i > begin ? ", " : "";
        text += nb::repr(number_to_python(value.component(i), value.type().scalar())).c_str();
    }
    return text;
}

std::string rows_text(const Value& value, const char* between) {
    const int cols = value.type().cols();
    std::string text;
    for (int r = 0; r < value.type().rows(); ++r) {
        text.append(r ? between : "[").append("[").append(components_text(value, r * cols, (r + 1) * cols)).append("]");
    }
    return text.append("]");
}

}  // namespace

std::string repr_of(const Value& value) {
    const Type type = value.type();
    if (type.is_matrix()) return name_of(value) + "(" + rows_text(value, ", ") + ")";
    return name_of(value) + "(" + text_of(value) + ")";
}

std::string text_of(const Value& value) {
    const Type type = value.type();
    if (type.is_scalar()) return shortest_text(value.component(0), type.scalar());
    if (type.is_matrix()) return rows_text(value, ",\n ");
    return std::string("[").append(components_text(value, 0, type.components())).append("]");
}

}  // namespace weft::bindings
