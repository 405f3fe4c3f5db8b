// Parsed signatures: the patterns of entry.h as trees, and the bindings of their variables while a call is matched.
// Private to this room; other rooms use Signature and Match.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "builtins/entry.h"

namespace weft::builtins {

// The scalar of a pattern: S, F, I (a class, with the letter as its variable), a scalar type, or the name of a static
// type parameter.
struct ScalarPattern {
    enum class Class { fixed, number, floating, integer, named } cls = Class::fixed;
    Scalar fixed = Scalar::f32;
    std::string variable;  // "S", "F2", "dtype"; empty if fixed
};

// A length or count: a number, or a variable ("n").
struct SizePattern {
    std::int64_t fixed = 0;
    std::string variable;
};

struct Pattern {
    enum class Shape {
        none,
        scalar,
        vector,
        matrix,
        quaternion,
        transform,
        structure,
        array,
        any,
        string,
        tuple,
        static_int,
        static_type
    } shape = Shape::none;
    ScalarPattern scalar;            // scalar and numeric aggregates
    std::vector<SizePattern> sizes;  // vector length; matrix rows and columns; array dimensions
    std::string variable;            // any: "T"
    std::vector<Pattern> parts;      // array element; tuple elements
    Type type;                       // structure
};

struct ParsedSignature {
    Signature text;
    std::vector<Pattern> parameters;
    Pattern result;

    bool is_variadic() const { return !text.parameters.empty() && text.parameters.back().is_variadic; }
    // The parameter that takes the i-th argument.
    std::size_t parameter_of(std::size_t argument) const {
        return is_variadic() ? std::min(argument, parameters.size() - 1) : argument;
    }
};

// Throws InternalError, with the signature, if it is not in the notation.
ParsedSignature parse_signature(std::string_view text);
// Parsed once and kept; thread-safe.
const ParsedSignature& parsed(const Entry& entry);

// The scalar type of a name of the `warp` module ("float32"); empty if it is none.
std::optional<Scalar> scalar_by_python_name(std::string_view name);

}  // namespace weft::builtins
