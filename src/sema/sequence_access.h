// Sequences that a for loop or a comprehension runs over, and their elements by number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

// range(start, stop, step), or its reverse.
struct Range {
    Value start, stop, step;
    Type type;
    bool reversed = false;
    Span span;
    std::optional<std::int64_t> trip_count;  // if known at compile time
};

// The bounds of the `for_` over a range.
struct Counted {
    ir::Value *lo, *hi, *step;
    ir::Value *first,
        *stride;  // null if k is the variable; else variable = first +- k * stride
    bool backwards;
};

struct Iterable {
    enum class Kind { values, range, array, query, enumerate, zip, reversed } kind = Kind::values;
    std::vector<Value> values;  // query: the query
    std::optional<Range> range;
    ir::Value* array = nullptr;
    Value first;                  // enumerate: the first number
    std::vector<Iterable> parts;  // enumerate, zip, reversed: their arguments
    Span span;
};

// Whether an element can be computed from its number, without unrolling.
bool is_counted(const Iterable& over);
// Empty if only a launch knows it.
std::optional<std::int64_t> known_length(const Iterable& over);
// The type that counts the elements: int32, or int64 if some range counts wider.
Type counter_of(const Iterable& over);

class SequenceAccess {
public:
    explicit SequenceAccess(ir::Builder& builder) : builder_(builder), values_(builder) {}

    Counted count(const Range& range);
    // The variable of the loop, from the `for_`'s own.
    ir::Value* loop_variable(const Counted& counted, ir::Value* k);
    // All elements of a sequence of known length.
    std::vector<Value> elements_of(const Iterable& over);
    // The number of elements of a counted sequence, and element number k.
    ir::Value* counted_length(const Iterable& over, Type counter);
    Value element_at(const Iterable& over, ir::Value* k);

private:
    ir::Value* trip_count(const Range& range, ir::Value* start, ir::Value* step);
    Value number_from(const Value& first, std::int64_t number, Span span);

    ir::Builder& builder_;
    ValueWriter values_;
};

}  // namespace weft::sema
