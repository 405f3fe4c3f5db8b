// The types of values in kernels and of elements in arrays: one small handle, equal exactly when the types are equal.
//
// Types are interned: the same type always has the same node, so a Type is compared, hashed and copied as a pointer.
// Nodes are never freed; a program makes some dozens of them. Interning is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/float_format.h"

namespace weft {

enum class Scalar : std::uint8_t {
#define WEFT_SCALAR(id, ...) id,
#include "types/types.def"
#undef WEFT_SCALAR
};

enum class ScalarKind : std::uint8_t { boolean, signed_int, unsigned_int, floating };

// One row of types.def, which documents the columns.
struct ScalarInfo {
    Scalar id;
    const char* ir;
    const char* python;
    ScalarKind kind;
    int bits;
    FloatFormat format;
    Scalar compute;
    const char* suffix;
    const char* numpy;
    int numpy_number;
    const char* letter;

    int bytes() const { return bits / 8; }
    bool is_float() const { return kind == ScalarKind::floating; }
    // A float of 8 or 16 bits: held as its bits, computed in `compute`.
    bool is_small_float() const { return compute != id; }
    // Whether NumPy shows only its bits, if the package ml_dtypes is not installed.
    bool is_bits_in_numpy() const { return is_float() && numpy[0] == 'u'; }
    bool is_int() const { return kind == ScalarKind::signed_int || kind == ScalarKind::unsigned_int; }
    bool is_signed() const { return kind == ScalarKind::signed_int || kind == ScalarKind::floating; }
};

const ScalarInfo& info(Scalar scalar);
std::span<const ScalarInfo> all_scalars();
// The greatest finite number. Precondition: a float.
double largest(Scalar scalar);
// The unsigned integer of the same size.
Scalar bits_of(Scalar scalar);

enum class Kind : std::uint8_t {
    none,  // no value: the result of a function that returns nothing
    scalar,
    vector,      // rows components
    matrix,      // rows x cols components, row-major
    quaternion,  // x, y, z, w
    transform,   // p (3), q (4)
    structure,   // named fields
    tuple,       // several values at once; never in memory
    array,       // view of memory: element type and ndim
    tile,        // elements of one type in a fixed shape, row-major, that belong to a block of threads
    string,      // compile-time text only (print)
};

struct TypeNode;

// The limit for vectors and matrices; larger data belongs into arrays.
inline constexpr std::int64_t kMostComponents = 1 << 16;

class Type {
public:
    Type() = default;  // Kind::none

    static Type none();
    static Type string();
    static Type scalar(Scalar scalar);
    static Type vector(Scalar scalar, int length);
    static Type matrix(Scalar scalar, int rows, int cols);
    static Type quaternion(Scalar scalar);
    static Type transform(Scalar scalar);
    static Type tuple(std::vector<Type> elements);
    static Type array(Type element, int ndim);
    // Elements are scalars, numeric aggregates or structs of these; every extent is at least 1.
    static Type tile(Type element, std::vector<std::int64_t> shape);

    struct Field;
    // Structs are nominal: `key` (module and qualified name, with a hash of the fields) distinguishes structs of one
    // name.
    static Type structure(std::string name, std::string key, std::vector<Field> fields);

    Kind kind() const;
    bool is(Kind k) const { return kind() == k; }
    bool is_none() const { return is(Kind::none); }
    bool is_scalar() const { return is(Kind::scalar); }
    bool is_vector() const { return is(Kind::vector); }
    bool is_matrix() const { return is(Kind::matrix); }
    bool is_array() const { return is(Kind::array); }
    bool is_struct() const { return is(Kind::structure); }
    bool is_tuple() const { return is(Kind::tuple); }
    bool is_tile() const { return is(Kind::tile); }
    // Vector, matrix, quaternion or transform: components of one scalar type.
    bool is_numeric_aggregate() const;
    bool is_bool() const { return *this == scalar(Scalar::boolean); }
    bool is_float() const;  // a floating scalar
    bool is_int() const;    // an integer scalar, not bool

    // Scalar of a scalar or of the components of a numeric aggregate. Precondition: one of those.
    Scalar scalar() const;
    Type scalar_type() const { return scalar(scalar()); }
    int rows() const;                                // vector length, matrix rows; 4 for quaternions, 7 for transforms
    int cols() const;                                // matrix columns; 1 otherwise
    int components() const;                          // rows * cols; 1 for a scalar
    Type element() const;                            // of an array or tile
    int ndim() const;                                // of an array or tile
    const std::vector<std::int64_t>& shape() const;  // of a tile
    std::int64_t size() const;                       // of a tile: the number of its elements
    const std::vector<Type>& elements() const;       // of a tuple
    const std::vector<Field>& fields() const;        // of a struct
    std::optional<int> field_index(std::string_view name) const;
    const std::string& struct_name() const;
    const std::string& struct_key() const;

    // Same shape, another scalar: vec3f -> vec3d. For a scalar, the scalar itself.
    Type with_scalar(Scalar scalar) const;

    // In memory (arrays, argument blocks): components packed without padding, aligned as their scalar; struct fields
    // aligned as C does; an array is an ArrayView (types/layout.h).
    std::int64_t size_bytes() const;
    std::int64_t alignment() const;

    // As the user writes it: "float32", "vec3f", "mat33d", "array2d[vec3f]", "vector(length=5, dtype=float64)".
    std::string python_name() const;
    // As IR text writes it: "f32", "vec3<f32>", "mat3x3<f64>", "quat<f32>", "xform<f32>", "array<f32, 2>",
    // "tile<f32, 4x8>", "tuple<f32, i32>", "struct @Name".
    std::string ir_name() const;

    friend bool operator==(Type a, Type b) { return a.node_ == b.node_; }
    const TypeNode* node() const { return node_; }

private:
    explicit Type(const TypeNode* node) : node_(node) {}
    const TypeNode* node_ = nullptr;
    friend struct TypeNode;
    friend class TypePool;
};

// Parses an IR type name; empty if it is none. Structs must have been declared before: `find` gives the type of "struct
// @name", by default the last struct made with that name.
using FindStruct = std::function<std::optional<Type>(std::string_view name)>;
std::optional<Type> parse_ir_type(std::string_view text);
std::optional<Type> parse_ir_type(std::string_view text, const FindStruct& find);
std::optional<Type> find_struct_type(std::string_view name);

// Short names for the types that code mentions all the time.
inline Type bool_type() { return Type::scalar(Scalar::boolean); }
inline Type i32_type() { return Type::scalar(Scalar::i32); }
inline Type i64_type() { return Type::scalar(Scalar::i64); }
inline Type u32_type() { return Type::scalar(Scalar::u32); }
inline Type u64_type() { return Type::scalar(Scalar::u64); }
inline Type f32_type() { return Type::scalar(Scalar::f32); }
inline Type f64_type() { return Type::scalar(Scalar::f64); }

// The value of one scalar constant, as written in source or folded: integers (and bool) as 64 bits two's complement,
// floats as double (which holds every narrower float exactly).
struct Number {
    bool is_float = false;
    std::int64_t i = 0;
    double f = 0.0;

    static Number integer(std::int64_t v) { return {false, v, 0.0}; }
    static Number real(double v) { return {true, 0, v}; }
    double as_double() const { return is_float ? f : static_cast<double>(i); }
    bool operator==(const Number&) const = default;
};

struct Type::Field {
    std::string name;
    Type type;
    std::int64_t offset = 0;            // filled in by Type::structure
    std::vector<Number> default_value;  // of S(), one per component; empty: zeros, or a struct's own defaults
};

// Converts as the kernel's explicit casts do (C rules; out-of-range float to int saturates, NaN gives 0), rounding
// to the precision of `to`. An u64 keeps its bits in `i`.
Number convert(Number value, Scalar from, Scalar to);

// The bytes of one scalar in memory, and back.
void write_scalar(Scalar scalar, Number value, void* to);
Number read_scalar(Scalar scalar, const void* from);

}  // namespace weft

template <>
struct std::hash<weft::Type> {
    std::size_t operator()(weft::Type t) const noexcept { return std::hash<const void*>()(t.node()); }
};
