// Sequences other than range(...) that a for loop or a comprehension runs over: tuples, lists, vectors and arrays, and
// enumerate(), zip() and reversed() of these and of ranges. If the length is known at compile time, the loop is
// unrolled, with elements of any types. Over arrays and ranges, whose elements are found by number, it can also be a
// loop in the IR:
//
//   for i, v in enumerate(a):                     for %k in 0 .. dim %a { i = %k;  v = load %a[%k];  ... }
//   for v, j in zip(reversed(a), range(3, n)):    for %k in 0 .. min (dim %a), (n - 3) { v = load %a[dim - 1 - %k]; ...
//   }
#include <algorithm>

#include "sema/analyzer.h"
#include "types/objects.h"

namespace weft::sema {

FunctionAnalyzer::Iterable FunctionAnalyzer::iterable(const syntax::Expression& e) {
    using Kind = Iterable::Kind;
    Iterable result;
    result.span = e.span;
    const auto* call = std::get_if<syntax::Call>(&e.node);
    const std::optional<Binding> callee = call ? names_.static_binding(*call->function) : std::nullopt;
    const std::string name = callee && callee->kind == Binding::Kind::builtin ? callee->text : "";
    const auto add_parts = [&](Kind kind, std::size_t least, std::size_t most, std::size_t count) {
        result.kind = kind;
        if (!call->keywords.empty() || call->arguments.size() < least || call->arguments.size() > most)
            fail(e.span, name + "() takes sequences without keywords in kernels");
        for (std::size_t i = 0; i < std::min(count, call->arguments.size()); ++i)
            result.parts.push_back(iterable(*call->arguments[i]));
    };
    if (std::optional<Range> found = range(e)) {
        result.kind = Kind::range;
        result.range = std::move(found);
    } else if (name == "reversed") {
        add_parts(Kind::reversed, 1, 1, 1);
    } else if (name == "enumerate") {
        const auto* start =
            call->keywords.size() == 1 && call->keywords[0].name == "start" ? &call->keywords[0] : nullptr;
        result.kind = Kind::enumerate;
        if (call->arguments.empty() || call->arguments.size() + call->keywords.size() > 2 ||
            (!start && !call->keywords.empty()))
            fail(e.span, "enumerate() takes a sequence and a start in kernels");
        result.parts.push_back(iterable(*call->arguments[0]));
        const syntax::Expression* first = start                         ? start->value.get()
                                          : call->arguments.size() == 2 ? call->arguments[1].get()
                                                                        : nullptr;
        result.first = first ? settle(expression(*first), first->span) : Value::integer(0);
        if (!type_of(result.first).is_int() || result.first.is_binding())
            fail(first->span, "enumerate() counts from an integer, not from " + describe(result.first));
    } else if (name == "zip") {
        add_parts(Kind::zip, 1, 16, 16);
    } else {
        const Value value = expression(e);
        if (std::optional<std::vector<Value>> found = parts_.elements(value)) {
            result.values = std::move(*found);
        } else if (type_of(value).is_array()) {
            result.kind = Kind::array;
            result.array = values_.array_of(value);
        } else if (const KnownStruct* known = find_known_struct(type_of(value)); known && known->next) {
            result.kind = Kind::query;
            result.values = {value};
        } else {
            fail(e.span,
                 "a for loop runs over range(), a tuple, a list, a vector or an array in kernels, not over " +
                     describe(value),
                 {help("write for i in range(n)")});
        }
    }
    return result;
}

// Whether an element can be computed from its number, without unrolling.
bool FunctionAnalyzer::is_counted(const Iterable& over) {
    return over.kind != Iterable::Kind::values && std::all_of(over.parts.begin(), over.parts.end(), is_counted);
}

// Empty if only a launch knows it.
std::optional<std::int64_t> FunctionAnalyzer::length_of(const Iterable& over) {
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
        const std::optional<std::int64_t> length = length_of(part);
        if (!length) return std::nullopt;
        shortest = std::min(shortest.value_or(*length), *length);
    }
    return shortest;
}

// All elements of a sequence of known length.
std::vector<Value> FunctionAnalyzer::elements_of(const Iterable& over) {
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
            for (std::int64_t i = 0; i < *length_of(over); ++i) {
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
Value FunctionAnalyzer::number_from(const Value& first, std::int64_t number, Span span) {
    if (first.is_constant()) return Value::integer(first.numbers[0].i + number, first.type);
    return Value::runtime(
        builder_.binary(ir::Op::add, values_.materialize(first, span), builder_.integer(number, type_of(first))));
}

// ---- by number: int32, or int64 if some range counts wider ----

Type FunctionAnalyzer::counter_of(const Iterable& over) {
    if (over.range && info(over.range->type.scalar()).bits >= 32 && !(over.range->type == i32_type()))
        return i64_type();
    for (const Iterable& part : over.parts)
        if (counter_of(part) == i64_type()) return i64_type();
    return i32_type();
}

ir::Value* FunctionAnalyzer::counted_length(const Iterable& over, Type counter) {
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

Value FunctionAnalyzer::element_at(const Iterable& over, ir::Value* k) {
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

// ---- loops ----

// The values of the variable, in order, if the loop is unrolled; empty if it becomes a loop in the IR.
std::optional<std::vector<Value>> FunctionAnalyzer::unrolled_values(const syntax::For& loop, const Iterable& over) {
    const std::optional<std::int64_t> length = length_of(over);
    if (is_counted(over)) {
        const bool leaves = (possible_exits(loop.body) & (kBreaks | kContinues)) != 0;
        if (!length || ((*length > module_.options.max_unroll || leaves) && !is_static_variable(loop)))
            return std::nullopt;
        // Nested loops multiply: a loop beyond the limit is not unrolled.
        if (unrolled_bodies_ + *length > kMostUnrolledBodies) return std::nullopt;
    }
    if (!length) {
        fail(over.span,
             "a loop cannot run over a tuple, a list or a vector beside an iterable whose length is known only at run "
             "time",
             {help("loop over range(n) and index")});
    }
    unrolled_bodies_ += *length;
    if (unrolled_bodies_ > kMostUnrolledBodies) {
        fail(over.span,
             "loops over sequences are written out, and there are more than " + std::to_string(kMostUnrolledBodies) +
                 " copies of loop bodies in this function",
             {help("loop over range(n), or pass the numbers as an array")}, ErrorCategory::value);
    }
    return elements_of(over);
}

}  // namespace weft::sema
