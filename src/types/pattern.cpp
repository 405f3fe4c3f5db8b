#include "types/pattern.h"

#include <algorithm>

namespace weft {

namespace {

bool extent_fits(int wanted, int found) { return wanted == 0 || wanted == found; }

bool fits_into(const TypePattern& pattern, Type type, TypeVariables& variables) {
    using Shape = TypePattern::Shape;
    const auto scalar_fits = [&] { return fits_into(pattern.parts[0], type.scalar_type(), variables); };
    switch (pattern.shape) {
        case Shape::exact:
            return pattern.type == type;
        case Shape::vector:
            return type.is_vector() && extent_fits(pattern.rows, type.rows()) && scalar_fits();
        case Shape::matrix:
            return type.is_matrix() && extent_fits(pattern.rows, type.rows()) &&
                   extent_fits(pattern.cols, type.cols()) && scalar_fits();
        case Shape::quaternion:
            return type.is(Kind::quaternion) && scalar_fits();
        case Shape::transform:
            return type.is(Kind::transform) && scalar_fits();
        case Shape::array:
            return type.is_array() && extent_fits(pattern.ndim, type.ndim()) &&
                   fits_into(pattern.parts[0], type.element(), variables);
        case Shape::indexed: {
            const Type chosen = indexed_type(type);
            return chosen.is_array() && extent_fits(pattern.ndim, chosen.ndim()) &&
                   fits_into(pattern.parts[0], chosen.element(), variables);
        }
        case Shape::tile:
            return type.is_tile() && (pattern.extents.empty() || pattern.extents == type.shape()) &&
                   fits_into(pattern.parts[0], type.element(), variables);
        case Shape::callable:
            return false;
        case Shape::tuple: {
            if (!type.is_tuple() || (pattern.rows != -1 && type.elements().size() != pattern.parts.size()))
                return false;
            for (std::size_t i = 0; i < type.elements().size(); ++i)
                if (!fits_into(pattern.part(i), type.elements()[i], variables)) return false;
            return true;
        }
        case Shape::any:
            break;
    }
    if (type.is_none() || type.is(Kind::string)) return false;
    const auto chosen = [&](const TypePattern& choice) { return fits_into(choice, type, variables); };
    if (!pattern.choices.empty() && std::none_of(pattern.choices.begin(), pattern.choices.end(), chosen)) return false;
    if (!pattern.variable_identity) return true;
    return variables.emplace(pattern.variable_identity, type).first->second == type;
}

std::string extent_name(int extent) { return extent == 0 ? "Any" : std::to_string(extent); }

}  // namespace

TypePattern TypePattern::exactly(Type type) {
    TypePattern pattern;
    pattern.shape = Shape::exact;
    pattern.type = type;
    return pattern;
}

Type indexed_type(Type type) {
    const bool is_indexed = type.is_struct() && type.struct_key().starts_with("warp._arrays.indexed:");
    return is_indexed ? type.fields()[0].type : Type();
}

bool fits(const TypePattern& pattern, Type type, TypeVariables& variables) {
    TypeVariables bound = variables;
    if (!fits_into(pattern, type, bound)) return false;
    variables = std::move(bound);
    return true;
}

std::string python_name(const TypePattern& pattern) {
    using Shape = TypePattern::Shape;
    switch (pattern.shape) {
        case Shape::exact:
            return pattern.type.python_name();
        case Shape::vector:
            return "vector(length=" + extent_name(pattern.rows) + ", dtype=" + python_name(pattern.parts[0]) + ")";
        case Shape::matrix:
            return "matrix(shape=(" + extent_name(pattern.rows) + ", " + extent_name(pattern.cols) +
                   "), dtype=" + python_name(pattern.parts[0]) + ")";
        case Shape::quaternion:
            return "quaternion(dtype=" + python_name(pattern.parts[0]) + ")";
        case Shape::transform:
            return "transformation(dtype=" + python_name(pattern.parts[0]) + ")";
        case Shape::array:
        case Shape::indexed: {
            const std::string kind = pattern.shape == Shape::indexed ? "indexedarray" : "array";
            const std::string element = python_name(pattern.parts[0]);
            if (pattern.ndim == 0) return kind + "[" + element + ", Any]";
            return kind + (pattern.ndim == 1 ? "" : std::to_string(pattern.ndim) + "d") + "[" + element + "]";
        }
        case Shape::tile: {
            std::string text = "tile[" + python_name(pattern.parts[0]);
            for (const std::int64_t extent : pattern.extents) text += ", " + std::to_string(extent);
            return text + "]";
        }
        case Shape::callable:
            return "Callable";
        case Shape::tuple: {
            std::string text;
            for (const TypePattern& part : pattern.parts) text += (text.empty() ? "" : ", ") + python_name(part);
            return "tuple[" + text + (pattern.rows == -1 ? ", ...]" : "]");
        }
        case Shape::any:
            break;
    }
    return pattern.variable.empty() ? "Any" : pattern.variable;
}

}  // namespace weft
