// Operations on whole arrays that are not one kernel: sums, scans, sorts, runs of equal elements, products of matrices,
// and the sums of gradients of copies. Each device implements them in its own way.
//
// Every result is the same for any number of threads. Floats are added in double precision, pairwise over blocks of a
// fixed size; integers and bools in 64 bits, wrapping.
//
// These functions check nothing; their callers (bindings/arrays/array_primitives.cpp) do. All arrays of a call are on
// one device.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/array.h"

namespace weft::runtime {

// A sum at the width of its additions: `real` for floats, `whole` for the others (u64 keeps its bits).
struct Total {
    double real = 0.0;
    std::int64_t whole = 0;
};

struct Segment {
    std::int64_t begin, end;
};

// How exact a product of floats of 16, 32 and 64 bits is on a GPU (wp.config.matmul_precision).
enum class MatmulPrecision : std::uint8_t {
    exact,  // f32, f64: a fused multiply-add for each k in order; smaller floats are multiplied in f32 and rounded once
    fast,   // sums in any order, of single precision; f32 may be split into two numbers of TF32
    tf32,   // as `fast`, and f32 may be rounded to TF32
};

class Primitives {
public:
    // The sum over one axis, or over all elements if `axis` is -1: a total for each component of each remaining
    // element, in C order.
    virtual std::vector<Total> sum(const Array& array, int axis) = 0;
    // The sum over one axis (-1: all) of the products of elements; vectors and matrices are multiplied by components
    // and summed. Precondition: equal shapes and dtypes.
    virtual std::vector<Total> inner(const Array& a, const Array& b, int axis) = 0;
    // Writes the totals to `to`, converted to its dtype: an element (a component, if there are several) for each. The
    // host does not see them.
    virtual void sum_into(const Array& array, int axis, const Array& to) = 0;
    virtual void inner_into(const Array& a, const Array& b, int axis, const Array& to) = 0;

    // Running sums along a one-dimensional array, component by component. Exclusive: a sum does not include its own
    // element. `to` may be `from`. Precondition: equal lengths and dtypes.
    virtual void scan(const Array& from, const Array& to, bool inclusive) = 0;

    // Sorts the first `count` keys in ascending order and moves the values along; equal keys keep their order. -0
    // equals 0, NaNs come last. Only the bits [begin_bit, end_bit) of a key's code decide, an unsigned number of the
    // same order. If these are not all bits, codes of floats follow their bits: -0 is below 0, and a NaN is beyond the
    // infinity of its sign. Precondition: one dimension, keys of numbers.
    virtual void sort_pairs(const Array& keys, const Array& values, std::int64_t count, int begin_bit, int end_bit) = 0;

    // Sorts each of the segments [begin, end) separately, by all bits. They are in arrays of int32, which are read when
    // the work is done. Throws UsageError if one is not within [0, count]; in a capture, the graph throws it.
    // Precondition: they do not overlap.
    virtual void sort_segments(const Array& keys, const Array& values, const Array& begins, const Array& ends,
                               std::int64_t count) = 0;

    // The runs of equal elements among the first `count`: stores their values and lengths, and returns their number.
    // Elements are compared as numbers: -0 equals 0, a NaN equals nothing. Throws UsageError if an output is too short.
    // Precondition: scalars; `run_lengths` is int32.
    virtual std::int64_t encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                     const Array& run_lengths) = 0;

    // The same, with their number in the int32 of `run_count`; errors are reported as by sort_segments().
    virtual void encode_and_count_runs(const Array& values, std::int64_t count, const Array& run_values,
                                       const Array& run_lengths, const Array& run_count);

    // d = alpha * (a @ b) + beta * c, of two or three dimensions, the first of three being a batch. `c` may be null if
    // beta is 0, and its values are not read then. Any strides; `d` may overlap the others. Precondition: equal dtypes,
    // all floats; shapes that fit. Floats of 8 and 16 bits are multiplied in f32 and rounded once.
    virtual void matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta,
                        MatmulPrecision precision) = 0;

    // Adds the floats of `what` to those of `into`, element by element: numbers, components, fields of structs. Other
    // fields stay unchanged. An element of `into` that several indices share receives all additions. Precondition:
    // equal shapes and dtypes; the two do not overlap.
    virtual void add(const Array& into, const Array& what) = 0;

protected:
    virtual ~Primitives() = default;
};

// ---- shared by the devices ----

// Contiguous floats in an element of an array: its numbers, components, fields of structs.
struct FloatsOfElement {
    std::int64_t offset;
    Scalar scalar;
    std::int64_t count;
};
std::vector<FloatsOfElement> floats_of(Type dtype);

// For sort_segments(). Throws UsageError if the segment does not lie in [0, count].
void check_segment(std::int64_t number, Segment segment, std::int64_t count);
// For encode_runs(): throws UsageError if the array has no room for so many runs.
void check_room_for_runs(std::int64_t room, std::int64_t runs, const char* name);
[[noreturn]] void throw_long_run(std::int64_t start, std::int64_t length);

}  // namespace weft::runtime
