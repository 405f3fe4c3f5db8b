// Construction of typed values: wp.float64(1), wp.vec3(1, 2, 3), wp.vec3(numpy_array), wp.transform(p=..., q=...).
#include <cstring>

#include "bindings/values/value_object.h"

namespace weft::bindings {
namespace {

std::string expected_arguments(Type type) {
    const std::string n = std::to_string(type.components());
    const std::string number = type.is_float() || info(type.scalar()).is_float()
                                   ? "numbers"
                                   : std::string("integers in the range of ") + info(type.scalar()).python;
    if (type.is(Kind::quaternion))
        return "no argument, one number for all components, 4 " + number +
               ", a sequence of 4, or (vector of 3, number)";
    if (type.rows() == 6 && type.is_vector())
        return "no argument, one number for all components, 6 " + number + ", a sequence of 6, or two vectors of 3";
    if (type.is(Kind::transform))
        return "no argument, a position and a rotation, one number for all components, or 7 " + number;
    return "no argument, one number for all components, " + n + " " + number + ", or a sequence of " + n;
}

[[noreturn]] void throw_bad_arguments(Type type, Arguments arguments) {
    const auto count = static_cast<int>(arguments.size());
    std::string found = count == 1 ? describe(arguments[0]) : std::to_string(count) + " arguments";
    if (count == type.components()) {
        for (int i = 0; i < count; ++i) {
            alignas(8) std::byte scratch[8];
            if (write_component(arguments[i], type.scalar(), scratch)) continue;
            found = describe(arguments[i]) + " for component " + std::to_string(i);
            break;
        }
    }
    ErrorCategory category = count == type.components() ? ErrorCategory::type : ErrorCategory::value;
    if (count == 1) category = misfit_category(arguments[0], type);
    if (type.is_matrix() && count == type.rows()) category = ErrorCategory::type;
    throw UsageError(type.python_name() + "()", "expected " + expected_arguments(type) + "; got " + found, category);
}

bool fill_aggregate(Value& self, Arguments arguments) {
    const Type type = self.type();
    if (arguments.size() == 0) {
        if (type.is(Kind::transform)) self.set_component(6, Number::real(1.0));  // the identity
        return true;
    }
    if (arguments.size() == 1) {
        alignas(8) std::byte first[8];
        if (write_component(arguments[0], type.scalar(), first)) {
            const int bytes = info(type.scalar()).bytes();
            for (int i = 0; i < type.components(); ++i) std::memcpy(self.data() + i * bytes, first, bytes);
            return true;
        }
        return write_components(arguments[0], type, self.data(), true);
    }
    if (type.is(Kind::quaternion) && arguments.size() == 2) {
        const Type imaginary = Type::vector(type.scalar(), 3);
        return write_components(arguments[0], imaginary, self.data(), true) &&
               write_component(arguments[1], type.scalar(), self.data() + imaginary.size_bytes());
    }
    return write_items(arguments, type, self.data(), true);
}

// Explicit conversion of one number, by the rules of casts in kernels.
bool fill_scalar(Value& self, Arguments arguments) {
    if (arguments.size() == 0) return true;
    if (arguments.size() == 1 && write_component(arguments[0], self.type().scalar(), self.data())) return true;
    Number number;
    Scalar from;
    if (arguments.size() != 1 || !read_number(arguments[0], number, from)) return false;
    self.set_component(0, convert(number, from, self.type().scalar()));
    return true;
}

// transform(p=..., q=...): a missing position is zero, a missing rotation the identity.
void fill_transform_keywords(Value& self, Arguments arguments, const Keywords& keywords) {
    const Type type = self.type();
    const Type p = Type::vector(type.scalar(), 3), q = Type::quaternion(type.scalar());
    self.set_component(6, Number::real(1.0));
    for (const auto& [name, value] : keywords) {
        const bool is_p = name == "p";
        if (arguments.size() > (is_p ? 0 : 1) || (!is_p && name != "q")) {
            throw UsageError(type.python_name() + "()", "unexpected keyword '" + name + "'; it has p and q",
                             ErrorCategory::type);
        }
        if (!write_components(value, is_p ? p : q, self.data() + (is_p ? 0 : p.size_bytes()), true)) {
            throw UsageError(type.python_name() + "()",
                             name + " must be " + (is_p ? "3" : "4") + " numbers, got " + describe(value),
                             ErrorCategory::type);
        }
    }
    if (arguments.size() == 1 && !write_components(arguments[0], p, self.data(), true))
        throw_bad_arguments(type, arguments);
}

}  // namespace

void fill_value(Value& value, Arguments arguments, const Keywords& keywords) {
    const Type type = value.type();
    if (!keywords.empty()) {
        if (!type.is(Kind::transform))
            throw UsageError(type.python_name() + "()", "takes no keyword arguments", ErrorCategory::type);
        fill_transform_keywords(value, arguments, keywords);
    } else if (type.is_scalar()) {
        if (fill_scalar(value, arguments)) return;
        throw UsageError(
            type.python_name() + "()",
            "expected one number, got " +
                (arguments.size() == 1 ? describe(arguments[0]) : std::to_string(arguments.size()) + " arguments"),
            ErrorCategory::type);
    } else if (!fill_aggregate(value, arguments)) {
        // One argument that is no transform is a position, with the identity as rotation.
        if (type.is(Kind::transform) && arguments.size() == 1) return fill_transform_keywords(value, arguments, {});
        throw_bad_arguments(type, arguments);
    }
}

}  // namespace weft::bindings
