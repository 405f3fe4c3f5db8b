// Atomic updates of array elements: each updates one element atomically and returns its old value. Vectors and matrices
// are updated component by component, each component atomically.
#include "builtins/expression.h"
#include "builtins/groups.h"
#include "ir/indices.h"

namespace weft::builtins {

namespace {

using ir::Op;

// The element's indices are all arguments between the array and the last `values` arguments.
template <Op op, std::size_t values>
ir::Value* expand_atomic(Call& call) {
    const auto arguments = call.arguments;
    const std::size_t first_value = arguments.size() - values;
    std::vector<ir::Value*> indices(arguments.begin() + 1, arguments.begin() + first_value);
    ir::count_from_end(call.builder, arguments[0], indices);
    return call.builder.atomic(op, arguments[0], std::move(indices),
                               {arguments.begin() + first_value, arguments.end()});
}

std::string refuse_other_than_numbers(const Match& match) {
    const Type element = match.types.at("T");
    if ((element.is_scalar() || element.is_numeric_aggregate()) && element.scalar() != Scalar::boolean) return "";
    return "argument 'arr' has elements of type " + element.python_name() +
           ", expected numbers, vectors, matrices, quaternions or transforms";
}

std::string refuse_other_than_integers(const Match& match) {
    const Type element = match.types.at("T");
    if ((element.is_scalar() || element.is_numeric_aggregate()) && element.scalar() != Scalar::boolean &&
        !info(element.scalar()).is_float())
        return "";
    return "argument 'arr' has elements of type " + element.python_name() +
           ", expected integers, or vectors or matrices of them";
}

// One entry for each number of indices.
#define WEFT_ATOMIC(name, element, value, result, doc, expand, differentiable, refuse)                                  \
    {name, "(arr: Array[" element ",1], i: I1, " value ") -> " result, doc, expand, differentiable, refuse},            \
        {name, "(arr: Array[" element ",2], i: I1, j: I2, " value ") -> " result, doc, expand, differentiable, refuse}, \
        {name,  "(arr: Array[" element ",3], i: I1, j: I2, k: I3, " value ") -> " result, doc, expand, differentiable,  \
         refuse},                                                                                                       \
    {                                                                                                                   \
        name, "(arr: Array[" element ",4], i: I1, j: I2, k: I3, l: I4, " value ") -> " result, doc, expand,             \
            differentiable, refuse                                                                                      \
    }

constexpr Entry kEntries[] = {
    WEFT_ATOMIC("atomic_add", "T", "value: T", "T", "Adds value to an element; returns its old value.",
                (expand_atomic<Op::atomic_add, 1>), true, refuse_other_than_numbers),
    WEFT_ATOMIC("atomic_sub", "T", "value: T", "T", "Subtracts value from an element; returns its old value.",
                (expand_atomic<Op::atomic_sub, 1>), true, refuse_other_than_numbers),
    WEFT_ATOMIC("atomic_min", "T", "value: T", "T",
                "Sets an element to the smaller of itself and value; returns its old value.",
                (expand_atomic<Op::atomic_min, 1>), true, refuse_other_than_numbers),
    WEFT_ATOMIC("atomic_max", "T", "value: T", "T",
                "Sets an element to the greater of itself and value; returns its old value.",
                (expand_atomic<Op::atomic_max, 1>), true, refuse_other_than_numbers),
    WEFT_ATOMIC("atomic_cas", "S", "compare: S, value: S", "S",
                "Stores value if the element equals compare; returns its old value.",
                (expand_atomic<Op::atomic_cas, 2>), false, nullptr),
    WEFT_ATOMIC("atomic_exch", "T", "value: T", "T", "Stores value in an element; returns its old value.",
                (expand_atomic<Op::atomic_exch, 1>), false, refuse_other_than_numbers),
    WEFT_ATOMIC("atomic_and", "T", "value: T", "T", "Bitwise and with an element; returns its old value.",
                (expand_atomic<Op::atomic_and, 1>), false, refuse_other_than_integers),
    WEFT_ATOMIC("atomic_or", "T", "value: T", "T", "Bitwise or with an element; returns its old value.",
                (expand_atomic<Op::atomic_or, 1>), false, refuse_other_than_integers),
    WEFT_ATOMIC("atomic_xor", "T", "value: T", "T", "Bitwise exclusive or with an element; returns its old value.",
                (expand_atomic<Op::atomic_xor, 1>), false, refuse_other_than_integers),
};
#undef WEFT_ATOMIC

}  // namespace

std::span<const Entry> atomic_entries() { return kEntries; }

}  // namespace weft::builtins
