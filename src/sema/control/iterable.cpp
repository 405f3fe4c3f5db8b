// The sequence of a for loop or a comprehension: range(...), tuples, lists, vectors and arrays, and enumerate(), zip()
// and reversed() of these. If the length is known at compile time, the loop is unrolled, with elements of any types.
// Over arrays and ranges, whose elements are found by number, it can also be a loop in the IR:
//
//   for i, v in enumerate(a):                     for %k in 0 .. dim %a { i = %k;  v = load %a[%k];  ... }
//   for v, j in zip(reversed(a), range(3, n)):    for %k in 0 .. min (dim %a), (n - 3) { v = load %a[dim - 1 - %k]; ...
//   }
#include <algorithm>

#include "sema/analyzer.h"
#include "types/objects.h"

namespace weft::sema {

namespace {

// Iterations of range(start, stop, step).
std::int64_t iterations_of(__int128 start, __int128 stop, __int128 step) {
    const __int128 n = (stop - start + (step > 0 ? step - 1 : step + 1)) / step;
    return n < 0 ? 0 : static_cast<std::int64_t>(n);
}

}  // namespace

std::optional<Range> FunctionAnalyzer::range(const syntax::Expression& iterable) {
    const auto* call = std::get_if<syntax::Call>(&iterable.node);
    const std::optional<Binding> callee = call ? names_.static_binding(*call->function) : std::nullopt;
    if (!callee || callee->kind != Binding::Kind::builtin) return std::nullopt;
    const Span span = iterable.span;
    if (callee->text == "reversed") {
        std::optional<Range> inner;
        if (call->arguments.size() == 1 && call->keywords.empty()) inner = range(*call->arguments[0]);
        if (!inner) return std::nullopt;  // of another sequence
        inner->reversed = !inner->reversed;
        return inner;
    }
    if (callee->text != "range") return std::nullopt;
    const std::vector<Actual> arguments = actuals(*call);
    if (arguments.empty() || arguments.size() > 3 || !call->keywords.empty()) {
        fail(span, "range() takes a stop, a start and a stop, or a start, a stop and a step");
    }
    // One integer type for all; literals adapt to it, and are int32 alone.
    Type type = i32_type();
    const Actual* typed = nullptr;
    for (const Actual& a : arguments) {
        if (!type_of(a.value).is_int() || a.value.is_binding()) {
            fail(a.span, "the bounds of range() must be integers, not " + describe(a.value),
                 type_of(a.value).is_float() ? std::vector<Note>{help("write int(...) to convert")}
                                             : std::vector<Note>{});
        }
        if (a.value.is_literal || typed) continue;
        typed = &a;
        type = a.value.type;
    }
    std::vector<Value> values;
    for (const Actual& a : arguments) values.push_back(expect(a.value, type, a.span, "a bound of range()"));
    Range result;
    result.type = type;
    result.span = span;
    result.start = arguments.size() > 1 ? values[0] : Value::integer(0, type);
    result.stop = arguments.size() > 1 ? values[1] : values[0];
    result.step = arguments.size() > 2 ? values[2] : Value::integer(1, type);
    const auto known = [&](const Value& v) -> __int128 {
        return type == u64_type() ? static_cast<__int128>(static_cast<std::uint64_t>(v.numbers[0].i)) : v.numbers[0].i;
    };
    if (result.step.is_constant() && known(result.step) == 0) {
        fail(arguments.back().span, "the step of range() must not be 0", {}, ErrorCategory::value);
    }
    if (result.start.is_constant() && result.stop.is_constant() && result.step.is_constant()) {
        result.trip_count = iterations_of(known(result.start), known(result.stop), known(result.step));
    }
    return result;
}

// Whether a wp.static(...) of the body uses the variable of the loop, which must be a constant then.
bool FunctionAnalyzer::is_static_variable(const syntax::For& loop) {
    const auto* variable = std::get_if<syntax::Name>(&loop.target->node);
    bool found = false;
    const auto find_variable = [&](const syntax::Expression& e) {
        const auto* name = std::get_if<syntax::Name>(&e.node);
        found |= name && name->id == variable->id;
    };
    const auto find_static = [&](const syntax::Expression& e) {
        const auto* call = std::get_if<syntax::Call>(&e.node);
        if (!call || call->arguments.size() != 1) return;
        const std::optional<Binding> callee = names_.static_binding(*call->function);
        if (callee && callee->kind == Binding::Kind::builtin && callee->text == "static")
            walk(*call->arguments[0], find_variable);
    };
    if (variable) walk(loop.body, [](const syntax::Statement&) {}, find_static);
    return found;
}

Iterable FunctionAnalyzer::iterable(const syntax::Expression& e) {
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

// ---- loops ----

// The values of the variable, in order, if the loop is unrolled; empty if it becomes a loop in the IR.
std::optional<std::vector<Value>> FunctionAnalyzer::unrolled_values(const syntax::For& loop, const Iterable& over) {
    const std::optional<std::int64_t> length = known_length(over);
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
    return sequences_.elements_of(over);
}

}  // namespace weft::sema
