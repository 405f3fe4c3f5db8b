#include "sema/sequence_access.h"

#include <algorithm>

#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

bool is_counted(const Iterable& over) {
    return over.kind != Iterable::Kind::values && std::all_of(over.parts.begin(), over.parts.end(), is_counted);
}

std::optional<std::int64_t> known_length(const Iterable& over) {
    switch (over.kind) {
        case Iterable::Kind::range:
            return over.range->trip_count;
        case Iterable::Kind::array:
            return std::nullopt;
        case Iterable::Kind::values:
            return static_cast<std::int64_t>(over.values.size());
        case Iterable::Kind::query:
            fail(over.span, "the results of a query cannot be counted before they are found",
                 {help("write for i in query, and count in the loop")});
        default:
            break;
    }
    std::optional<std::int64_t> shortest;
    for (const Iterable& part : over.parts) {
        const std::optional<std::int64_t> length = known_length(part);
        if (!length) return std::nullopt;
        shortest = std::min(shortest.value_or(*length), *length);
    }
    return shortest;
}

Type counter_of(const Iterable& over) {
    if (over.range && info(over.range->type.scalar()).bits >= 32 && !(over.range->type == i32_type()))
        return i64_type();
    for (const Iterable& part : over.parts)
        if (counter_of(part) == i64_type()) return i64_type();
    return i32_type();
}

// The bounds of the `for_`. A range that counts up by a known step keeps its bounds:
//   range(a, b, 2)             →  for %k in %a .. %b step 2
// Any other one is counted from 0 to its number of iterations, and the variable computed:
//   range(a, b, s)             →  n = (b - a + (s > 0 ? s - 1 : s + 1)) / s;  for %k in 0 .. %n { i = a + k * s }
//   reversed(range(a, b, s))   →  the same n;  for %k in 0 .. %n { i = a + (n - 1) * s - k * s }
Counted SequenceAccess::count(const Range& r) {
    const Type type = r.type;
    Counted counted{};
    ir::Value* start = values_.materialize(r.start, r.span);
    ir::Value* step = values_.materialize(r.step, r.span);
    const bool counts_up = !info(type.scalar()).is_signed() || (r.step.is_constant() && r.step.numbers[0].i > 0);
    if (counts_up && !r.reversed) {
        counted.lo = start;
        counted.hi = values_.materialize(r.stop, r.span);
        counted.step = step;
        return counted;
    }
    ir::Value* one = builder_.integer(1, type);
    ir::Value* n = trip_count(r, start, step);
    const auto op = [&](ir::Op o, ir::Value* x, ir::Value* y) { return builder_.binary(o, x, y); };
    counted.lo = builder_.integer(0, type);
    counted.hi = n;
    counted.step = one;
    counted.first = r.reversed ? op(ir::Op::add, start, op(ir::Op::mul, op(ir::Op::sub, n, one), step)) : start;
    counted.stride = step;
    counted.backwards = r.reversed;
    return counted;
}

// The number of iterations. For an empty range it is 0, or a negative number if the type is signed.
ir::Value* SequenceAccess::trip_count(const Range& r, ir::Value* start, ir::Value* step) {
    if (r.trip_count) return builder_.integer(*r.trip_count, r.type);
    const bool is_signed = info(r.type.scalar()).is_signed();
    const auto op = [&](ir::Op o, ir::Value* x, ir::Value* y) { return builder_.binary(o, x, y); };
    ir::Value *one = builder_.integer(1, r.type), *zero = builder_.integer(0, r.type);
    ir::Value* stop = values_.materialize(r.stop, r.span);
    ir::Value* toward_start = op(ir::Op::sub, step, one);
    if (is_signed && !(r.step.is_constant() && r.step.numbers[0].i > 0)) {
        ir::Value* is_up = builder_.compare(ir::Op::cmp_gt, step, zero);
        toward_start = builder_.select(is_up, toward_start, op(ir::Op::add, step, one));
    }
    ir::Value* n = op(ir::Op::div, op(ir::Op::add, op(ir::Op::sub, stop, start), toward_start), step);
    // Unsigned differences wrap for an empty range.
    return is_signed ? n : builder_.select(builder_.compare(ir::Op::cmp_lt, start, stop), n, zero);
}

ir::Value* SequenceAccess::loop_variable(const Counted& counted, ir::Value* k) {
    if (!counted.first) return k;
    ir::Value* distance = builder_.binary(ir::Op::mul, k, counted.stride);
    return builder_.binary(counted.backwards ? ir::Op::sub : ir::Op::add, counted.first, distance);
}

std::vector<Value> SequenceAccess::elements_of(const Iterable& over) {
    std::vector<Value> values;
    switch (over.kind) {
        case Iterable::Kind::range:
            for (std::int64_t k = 0; k < *over.range->trip_count; ++k) {
                const std::int64_t at = over.range->reversed ? *over.range->trip_count - 1 - k : k;
                const std::int64_t first = over.range->start.numbers[0].i, step = over.range->step.numbers[0].i;
                values.push_back(Value::integer(first + at * step, over.range->type));
            }
            return values;
        case Iterable::Kind::array:
        case Iterable::Kind::query:
            break;
        case Iterable::Kind::values:
            return over.values;
        case Iterable::Kind::reversed:
            values = elements_of(over.parts[0]);
            std::ranges::reverse(values);
            return values;
        case Iterable::Kind::enumerate: {
            values = elements_of(over.parts[0]);
            std::int64_t number = 0;
            for (Value& value : values) value = Value::tuple({number_from(over.first, number++, over.span), value});
            return values;
        }
        case Iterable::Kind::zip: {
            std::vector<std::vector<Value>> columns;
            for (const Iterable& part : over.parts) columns.push_back(elements_of(part));
            for (std::int64_t i = 0; i < *known_length(over); ++i) {
                std::vector<Value> row;
                for (const auto& column : columns) row.push_back(column[static_cast<std::size_t>(i)]);
                values.push_back(Value::tuple(std::move(row)));
            }
            return values;
        }
    }
    throw InternalError("the elements of an array are known only to a launch");
}

// first + number; a constant if `first` is one.
Value SequenceAccess::number_from(const Value& first, std::int64_t number, Span span) {
    if (first.is_constant()) return Value::integer(first.numbers[0].i + number, first.type);
    return Value::runtime(
        builder_.binary(ir::Op::add, values_.materialize(first, span), builder_.integer(number, type_of(first))));
}

ir::Value* SequenceAccess::counted_length(const Iterable& over, Type counter) {
    const auto as_counter = [&](ir::Value* n) { return n->type == counter ? n : builder_.cast(n, counter.scalar()); };
    if (over.kind == Iterable::Kind::array) return as_counter(builder_.dim(over.array, 0));
    if (over.kind == Iterable::Kind::range) {
        ir::Value *start = values_.materialize(over.range->start, over.span),
                  *step = values_.materialize(over.range->step, over.span);
        return as_counter(trip_count(*over.range, start, step));
    }
    ir::Value* shortest = nullptr;
    for (const Iterable& part : over.parts) {
        ir::Value* length = counted_length(part, counter);
        shortest = shortest ? builder_.binary(ir::Op::min, shortest, length) : length;
    }
    return shortest;
}

Value SequenceAccess::element_at(const Iterable& over, ir::Value* k) {
    const auto op = [&](ir::Op o, ir::Value* x, ir::Value* y) { return builder_.binary(o, x, y); };
    const auto as = [&](Type type) { return k->type == type ? k : builder_.cast(k, type.scalar()); };
    const auto from_the_end = [&](ir::Value* length) {
        return op(ir::Op::sub, op(ir::Op::sub, length, builder_.integer(1, k->type)), k);
    };
    switch (over.kind) {
        case Iterable::Kind::array: {
            Value row = Value::runtime(over.array);
            if (over.array->type.ndim() == 1) return Value::runtime(builder_.load(over.array, {k}));
            row.type = Type::array(over.array->type.element(), over.array->type.ndim() - 1);
            row.pending = {k};
            return row;
        }
        case Iterable::Kind::range: {
            if (over.range->reversed) k = from_the_end(counted_length(over, k->type));
            const Type type = over.range->type;
            ir::Value* distance = op(ir::Op::mul, as(type), values_.materialize(over.range->step, over.span));
            return Value::runtime(op(ir::Op::add, values_.materialize(over.range->start, over.span), distance));
        }
        case Iterable::Kind::reversed:
            return element_at(over.parts[0], from_the_end(counted_length(over.parts[0], k->type)));
        case Iterable::Kind::enumerate: {
            ir::Value* first = values_.materialize(over.first, over.span);
            return Value::tuple(
                {Value::runtime(op(ir::Op::add, first, as(first->type))), element_at(over.parts[0], k)});
        }
        case Iterable::Kind::zip: {
            std::vector<Value> row;
            for (const Iterable& part : over.parts) row.push_back(element_at(part, k));
            return Value::tuple(std::move(row));
        }
        case Iterable::Kind::values:
        case Iterable::Kind::query:
            break;
    }
    throw InternalError("elements of a tuple have no number in the IR");
}

}  // namespace weft::sema
