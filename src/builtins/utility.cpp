#include <algorithm>
#include <optional>

#include "builtins/expression.h"
#include "builtins/groups.h"

namespace weft::builtins {

E lower_bound(E array, E begin, E end, E value) {
    ir::Builder& b = array.builder();
    return while_loop(
        {begin, end}, [](const std::vector<E>& carried) { return carried[0] < carried[1]; },
        [&](const std::vector<E>& carried) -> std::vector<E> {
            const E low = carried[0], high = carried[1];
            const E middle = low + (high - low) / 2;
            const E is_below = array.wrap(b.load(array, {middle})) < value;
            return {select(is_below, middle + 1, low), select(is_below, high, middle)};
        })[0];
}

namespace {

using ir::Op;

E truth(E condition) { return condition.type().is_bool() ? condition : condition != 0; }

ir::Value* expand_where(Call& call) { return select(truth(argument(call, 0)), argument(call, 1), argument(call, 2)); }
ir::Value* expand_where_array(Call& call) {
    return select(argument(call, 0).wrap(call.builder.is_null(call.arguments[0])), argument(call, 2),
                  argument(call, 1));
}
ir::Value* expand_select(Call& call) { return select(truth(argument(call, 0)), argument(call, 2), argument(call, 1)); }
ir::Value* expand_select_array(Call& call) {
    return select(argument(call, 0).wrap(call.builder.is_null(call.arguments[0])), argument(call, 1),
                  argument(call, 2));
}

// Values are immutable: a copy is the value.
ir::Value* expand_copy(Call& call) { return call.arguments[0]; }
std::string refuse_arrays(const Match& match) {
    const Type type = match.types.at("T");
    if (!type.is(Kind::array)) return "";
    return "argument 'a' is " + type.python_name() + ", expected a value. help: copy the elements in a loop";
}

ir::Value* expand_lerp(Call& call) {
    const E t = argument(call, 2);
    return argument(call, 0) * (1 - t) + argument(call, 1) * t;
}

ir::Value* expand_smoothstep(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1), x = argument(call, 2);
    const E t = clamp((x - a) / (b - a), x.number(0), x.number(1));
    return t * t * (3 - 2 * t);
}

ir::Value* expand_lower_bound(Call& call) {
    const E array = argument(call, 0);
    return lower_bound(array, array.wrap(call.builder.integer(0)), array.wrap(call.builder.dim(array, 0)) - 1,
                       argument(call, 1));
}
ir::Value* expand_lower_bound_range(Call& call) {
    return lower_bound(argument(call, 0), argument(call, 1), argument(call, 2) - 1, argument(call, 3));
}

// ---- expectations ----

// Appends printf conversions for a value to `format`, and its widened components to `scalars`.
void append_printed(E value, std::string& format, std::vector<ir::Value*>& scalars) {
    const ScalarInfo& scalar = value.scalar();
    const Scalar wide = scalar.is_float()                         ? Scalar::f64
                        : scalar.kind == ScalarKind::unsigned_int ? Scalar::u64
                                                                  : Scalar::i64;
    const char* conversion = wide == Scalar::f64 ? "%g" : wide == Scalar::u64 ? "%llu" : "%lld";
    for (int i = 0; i < value.components(); ++i) {
        if (i) format += ", ";
        format += conversion;
        if (!needs_loop(value)) scalars.push_back(cast(value.component(i), wide));
    }
    if (needs_loop(value)) scalars.push_back(cast(value, wide));
}

ir::Value* report_unless(E holds, const std::string& what, E a, E b) {
    ir::Builder& builder = holds.builder();
    ir::Operation* checked = builder.if_(holds, {});
    {
        ir::Builder::Inside inside(builder, checked->body(0));
        builder.yield({});
    }
    {
        ir::Builder::Inside inside(builder, checked->body(1));
        std::string format = "Error: " + what + " failed: (";
        std::vector<ir::Value*> scalars;
        append_printed(a, format, scalars);
        format += ") and (";
        append_printed(b, format, scalars);
        builder.print(format + ")\n", std::move(scalars));
        builder.yield({});
    }
    return nullptr;
}

template <typename Test>
E all_components(E a, E b, Test test) {
    if (needs_loop(a)) {
        const auto step = [&](const std::vector<ir::Value*>& carried, const std::vector<ir::Value*>& indices) {
            ir::Builder& builder = a.builder();
            const E holds = test(a.wrap(builder.extract_at(a, indices)), a.wrap(builder.extract_at(b, indices)));
            return std::vector<ir::Value*>{a.wrap(carried[0]) && holds};
        };
        return a.wrap(over_components(a, {a.builder().boolean(true)}, step)[0]);
    }
    E result = test(a.component(0), b.component(0));
    for (int i = 1; i < a.components(); ++i) result = result && test(a.component(i), b.component(i));
    return result;
}
E is_equal(E a, E b) {
    return all_components(a, b, [](E x, E y) { return x == y; });
}

ir::Value* expand_expect_eq(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    return report_unless(is_equal(a, b), "expect_eq()", a, b);
}
ir::Value* expand_expect_neq(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1);
    return report_unless(!is_equal(a, b), "expect_neq()", a, b);
}
ir::Value* expand_expect_near(Call& call) {
    const E a = argument(call, 0), b = argument(call, 1), tolerance = argument(call, 2);
    // NaN is near to no number.
    const E is_near = all_components(a, b, [&](E x, E y) { return abs(x - y) <= tolerance; });
    return report_unless(is_near, "expect_near()", a, b);
}

bool is_numeric(Type type) { return type.is_scalar() || type.is_numeric_aggregate(); }

std::string refuse_other_than_values(const Match& match) {
    const Type type = match.types.at("T");
    if (is_numeric(type)) return "";
    return "argument 'a' is " + type.python_name() + ", expected a scalar, vector, matrix, quaternion or transform";
}

// ---- cast ----

// One scalar of a value, and its bytes in memory.
struct Leaf {
    E value;
    std::int64_t offset, size;
};

Scalar unsigned_of(std::int64_t bytes) {
    return bytes == 1 ? Scalar::u8 : bytes == 2 ? Scalar::u16 : bytes == 4 ? Scalar::u32 : Scalar::u64;
}

// The bits as an unsigned integer of the same size.
E bits_of(E a) { return a.type().is_bool() ? cast(a, Scalar::u8) : bitcast(a, unsigned_of(a.type().size_bytes())); }

void collect(E value, std::int64_t offset, std::vector<Leaf>& leaves) {
    const Type type = value.type();
    if (type.is_struct()) {
        for (std::size_t i = 0; i < type.fields().size(); ++i)
            collect(value[static_cast<std::int64_t>(i)], offset + type.fields()[i].offset, leaves);
        return;
    }
    const std::int64_t size = type.scalar_type().size_bytes();
    for (int i = 0; i < value.components(); ++i) leaves.push_back({value.component(i), offset + i * size, size});
}

// The number of this type at these bytes: one of the value's, or combined from parts of several.
E number_at(const std::vector<Leaf>& leaves, Scalar scalar, std::int64_t offset) {
    const std::int64_t size = info(scalar).bytes();
    std::optional<E> bits;
    for (const Leaf& leaf : leaves) {
        if (leaf.offset >= offset + size || leaf.offset + leaf.size <= offset) continue;
        const std::int64_t shift = (leaf.offset - offset) * 8;
        E part = bits_of(leaf.value);
        if (shift != 0 || leaf.size != size) {
            part = cast(part, Scalar::u64);
            const E distance = part.number(static_cast<double>(shift < 0 ? -shift : shift));
            if (shift != 0) part = binary(shift > 0 ? ir::Op::shl : ir::Op::shr, part, distance);
        }
        bits = bits ? binary(ir::Op::or_, *bits, part) : part;
    }
    const E& any = leaves.front().value;
    const E found =
        bits ? cast(*bits, unsigned_of(size)) : any.wrap(any.builder().zero(Type::scalar(unsigned_of(size))));
    if (scalar == Scalar::boolean) return compare(ir::Op::cmp_ne, found, found.zero());
    return bitcast(found, scalar);
}

E value_at(const std::vector<Leaf>& leaves, Type type, std::int64_t offset) {
    std::vector<E> parts;
    if (type.is_struct()) {
        for (const Type::Field& field : type.fields())
            parts.push_back(value_at(leaves, field.type, offset + field.offset));
        return make(type, parts);
    }
    const std::int64_t size = type.scalar_type().size_bytes();
    for (int i = 0; i < type.components(); ++i) parts.push_back(number_at(leaves, type.scalar(), offset + i * size));
    return type.is_scalar() ? parts[0] : make(type, parts);
}

ir::Value* expand_cast(Call& call) {
    std::vector<Leaf> leaves;
    collect(argument(call, 0), 0, leaves);
    return value_at(leaves, call.types.at("dtype"), 0);
}

// Whether a value of the type consists of bytes, at least one.
bool is_bytes(Type type) {
    if (!type.is_struct()) return is_numeric(type) || type.is_bool();
    const auto& fields = type.fields();
    return !fields.empty() &&
           std::all_of(fields.begin(), fields.end(), [](const Type::Field& f) { return is_bytes(f.type); });
}

std::string refuse_other_size(const Match& match) {
    const Type from = match.types.at("T"), to = match.types.at("dtype");
    if (is_bytes(from) && is_bytes(to) && from.size_bytes() == to.size_bytes()) return "";
    return "argument 'dtype' is " + to.python_name() + ", expected a type of numbers with the size of " +
           from.python_name() + ", whose bits are to be kept; " + to.python_name() + "(a) converts the value";
}

ir::Value* expand_breakpoint(Call& call) {
    static const auto library =
        std::make_shared<const ir::LibraryFunction>(ir::LibraryFunction{"weft_breakpoint", false});
    return call.builder.call_library(library, Type::none(), {});
}

constexpr Entry kEntries[] = {
    {"range", "(end: int32) -> T", "Integers from 0 up to end, for a loop.", nullptr, false},
    {"range", "(start: int32, end: int32) -> T", "Integers from start up to end, for a loop.", nullptr, false},
    {"range", "(start: int32, end: int32, step: int32) -> T", "Integers from start toward end, step apart, for a loop.",
     nullptr, false},
    {"reversed", "(range: T) -> T", "A range from its last integer to its first.", nullptr, false},
    {"printf", "(fmt: string, *args: T) -> none", "Prints scalars as C's printf does.", nullptr, false},
    {"print", "(value: T) -> none", "Prints a value and a newline.", nullptr, false},
    {"copy", "(a: T) -> T", "The value, as a local of its own.", expand_copy, true, refuse_arrays},
    {"breakpoint", "() -> none",
     "Stops the thread in the debugger that is attached to the process; does nothing without one.", expand_breakpoint,
     false},
    {"tid", "() -> int32", "Index of the thread in a one-dimensional launch.", nullptr, false},
    {"tid", "() -> (int32, int32)", "Coordinates of the thread in a two-dimensional launch.", nullptr, false},
    {"tid", "() -> (int32, int32, int32)", "Coordinates of the thread in a three-dimensional launch.", nullptr, false},
    {"tid", "() -> (int32, int32, int32, int32)", "Coordinates of the thread in a four-dimensional launch.", nullptr,
     false},
    {"block_dim", "() -> int32", "The number of threads in a block.", nullptr, false},
    {"select", "(cond: B, value_if_false: T, value_if_true: T) -> T",
     "Chooses by a condition, the value for false first; prefer where().", expand_select},
    {"select", "(cond: I, value_if_false: T, value_if_true: T) -> T",
     "Chooses by an integer, the value for 0 first; prefer where().", expand_select},
    {"select", "(arr: Array[U,d], value_if_false: T, value_if_true: T) -> T",
     "Chooses by whether an array was given, the value for None first; prefer where().", expand_select_array},
    {"where", "(cond: B, value_if_true: T, value_if_false: T) -> T", "Chooses by a condition.", expand_where},
    {"where", "(cond: I, value_if_true: T, value_if_false: T) -> T", "Chooses by whether an integer is not 0.",
     expand_where},
    {"where", "(arr: Array[U,d], value_if_true: T, value_if_false: T) -> T",
     "Chooses by whether an array was given and not None.", expand_where_array},
    {"expect_eq", "(a: T, b: T) -> none", "Prints an error unless a equals b.", expand_expect_eq, false,
     refuse_other_than_values},
    {"expect_neq", "(a: T, b: T) -> none", "Prints an error unless a differs from b.", expand_expect_neq, false,
     refuse_other_than_values},
    {"expect_near", "(a: F, b: F, tolerance: F = 1e-06) -> none",
     "Prints an error unless a and b are no further apart than tolerance.", expand_expect_near, false},
    {"expect_near", "(a: Vec[n,F], b: Vec[n,F], tolerance: F = 1e-06) -> none",
     "Prints an error unless all components are within tolerance.", expand_expect_near, false},
    {"expect_near", "(a: Quat[F], b: Quat[F], tolerance: F = 1e-06) -> none",
     "Prints an error unless all components are within tolerance.", expand_expect_near, false},
    {"expect_near", "(a: Mat[r,c,F], b: Mat[r,c,F], tolerance: F = 1e-06) -> none",
     "Prints an error unless all entries are within tolerance.", expand_expect_near, false},
    {"lerp", "(a: F, b: F, t: F) -> F", "a * (1 - t) + b * t.", expand_lerp},
    {"lerp", "(a: Vec[n,F], b: Vec[n,F], t: F) -> Vec[n,F]", "Linear blend of vectors.", expand_lerp},
    {"lerp", "(a: Mat[r,c,F], b: Mat[r,c,F], t: F) -> Mat[r,c,F]", "Linear blend of matrices.", expand_lerp},
    {"lerp", "(a: Quat[F], b: Quat[F], t: F) -> Quat[F]", "Linear blend of quaternions; not a rotation in general.",
     expand_lerp},
    {"lerp", "(a: Transform[F], b: Transform[F], t: F) -> Transform[F]",
     "Linear blend of the components of transforms.", expand_lerp},
    {"smoothstep", "(a: F, b: F, x: F) -> F", "Smooth ramp from 0 at a to 1 at b.", expand_smoothstep},
    {"lower_bound", "(arr: Array[S,1], value: S) -> int32",
     "First index of a sorted array whose element is not below value; the last index if there is none.",
     expand_lower_bound, false},
    {"lower_bound", "(arr: Array[S,1], arr_begin: int32, arr_end: int32, value: S) -> int32",
     "First index from arr_begin whose element is not below value; arr_end - 1 if there is none.",
     expand_lower_bound_range, false},
    {"static", "(expr: T) -> T", "The value of a Python expression when the kernel is compiled.", nullptr, false},
    {"adjoint", "(parameter: T) -> T",
     "In a gradient (`@wp.func_grad`) `wp.adjoint[x]` is the adjoint of the parameter x, to be added to.", nullptr,
     false},
    {"grad", "(f: T) -> none",
     "The gradient of a function that returns one number: `wp.grad(f)(x, y)` gives its derivatives by the parameters "
     "that have one.",
     nullptr, false},
    {"address_of", "(expr: T) -> uint64",
     "The address of an array, of an element, or of a field or a component of one: for functions in C++. Gradients do "
     "not see stores there.",
     nullptr, false},
    {"index", "(a: Vec[n,S], i: int32) -> S", "The component a[i].", nullptr},
    {"index", "(a: Mat[r,c,S], i: int32) -> Vec[c,S]", "The row a[i].", nullptr},
    {"index", "(a: Mat[r,c,S], i: int32, j: int32) -> S", "The entry a[i, j].", nullptr},
    {"index", "(a: Quat[F], i: int32) -> F", "The component a[i].", nullptr},
    {"index", "(a: Transform[F], i: int32) -> F", "The component a[i].", nullptr},
    {"type", "(value: T) -> none", "The type of a value, to make others of it: `type(x)(0.0)`.", nullptr, false},
    {"len", "(a: T) -> int32", "Length of a vector, rows of a matrix, first dimension of an array, items of a tuple.",
     nullptr, false},
    {"cast", "(a: T, dtype: static type) -> dtype", "The same bits read as another type of equal size.", expand_cast,
     false, refuse_other_size},
};

}  // namespace

std::span<const Entry> utility_entries() { return kEntries; }

}  // namespace weft::builtins
