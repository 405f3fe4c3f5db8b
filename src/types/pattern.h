// The types that an annotation accepts: one type, or every type of a shape. Functions and kernels whose parameters have
// patterns are generic: they are instantiated for each combination of types that fits.
//
//   Any                                     any type of values or arrays
//   T = TypeVar("T", wp.float32, wp.vec3)   one of these; the same type for each T
//   vector(length=Any, dtype=Any)           any vector; also for matrix, quaternion and transformation
//   array2d[Any], array[vector(...)]        arrays of elements that fit
//   array[Any, Any]                         arrays of any number of dimensions
//   indexedarray[Any]                       the result of indexedarray() on such arrays
//   tile[float], tile[Any, 4]               tiles of any shape, or of any elements
//   wp.Float                                any floating-point type, each time another one
//   tuple[float, vec3], tuple[float, ...]   several values
//   Callable                                a function (of @wp.func, or a built-in one) or a type
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "types/type.h"

namespace weft {

struct TypePattern {
    enum class Shape {
        any,
        exact,
        vector,
        matrix,
        quaternion,
        transform,
        array,
        indexed,
        tile,
        callable,
        tuple
    } shape = Shape::any;
    Type type;                          // exact
    int rows = 0, cols = 0;             // vector (rows), matrix; 0 is any
    int ndim = 0;                       // array, indexed; 0 is any
    std::vector<std::int64_t> extents;  // tile; empty is any shape
    // The element of an array, indexedarray or tile, the scalar of an aggregate, or the elements of a tuple. If rows is
    // -1, the one pattern is that of all elements.
    std::vector<TypePattern> parts;
    std::string variable;                     // any: name of the type variable, "" for none
    const void* variable_identity = nullptr;  // two variables may have one name
    std::vector<TypePattern> choices;         // any: if not empty, one of these must fit

    static TypePattern exactly(Type type);
    // The pattern of element i of a tuple.
    const TypePattern& part(std::size_t i) const { return parts[rows == -1 ? 0 : i]; }
    bool is_exact() const { return shape == Shape::exact; }

    bool operator==(const TypePattern&) const = default;
};

// The array behind an indexedarray, whose type is its struct (python/warp/_arrays/indexed.py); none for other types.
Type indexed_type(Type type);

// The types bound to type variables so far.
using TypeVariables = std::map<const void*, Type>;

// Whether `type` fits. If it fits, binds the free type variables; else leaves `variables` unchanged.
bool fits(const TypePattern& pattern, Type type, TypeVariables& variables);

// As the user writes it: "Any", "T", "array2d[Any]", "vector(length=Any, dtype=float64)", "float32".
std::string python_name(const TypePattern& pattern);

}  // namespace weft
