// What a for loop runs over: range(...) and reversed(range(...)), or a tuple or vector that is taken apart.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Iterations of range(start, stop, step).
std::int64_t trip_count(__int128 start, __int128 stop, __int128 step) {
    const __int128 n = (stop - start + (step > 0 ? step - 1 : step + 1)) / step;
    return n < 0 ? 0 : static_cast<std::int64_t>(n);
}

}  // namespace

std::optional<FunctionAnalyzer::Range> FunctionAnalyzer::range(const syntax::Expression& iterable) {
    const auto* call = std::get_if<syntax::Call>(&iterable.node);
    const std::optional<Binding> callee = call ? static_binding(*call->function) : std::nullopt;
    if (!callee || callee->kind != Binding::Kind::builtin) return std::nullopt;
    const Span span = iterable.span;
    if (callee->text == "reversed") {
        std::optional<Range> inner;
        if (call->arguments.size() == 1 && call->keywords.empty()) inner = range(*call->arguments[0]);
        if (!inner) fail(span, "reversed() takes a range() in kernels", {help("write reversed(range(n))")});
        inner->reversed = !inner->reversed;
        return inner;
    }
    if (callee->text != "range") return std::nullopt;
    const std::vector<Actual> arguments = actuals(*call);
    if (arguments.empty() || arguments.size() > 3 || !call->keywords.empty()) {
        fail(span, "range() takes a stop, a start and a stop, or a start, a stop and a step");
    }
    // One integer type for all; literals follow, alone they are int32.
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
        result.trip_count = trip_count(known(result.start), known(result.stop), known(result.step));
    }
    return result;
}

// The bounds of the `for_`. A range that counts up by a known step is counted as it is:
//   range(a, b, 2)             →  for %k in %a .. %b step 2
// Any other one is counted from 0 to its number of iterations, and the variable computed:
//   range(a, b, s)             →  n = (b - a + (s > 0 ? s - 1 : s + 1)) / s;  for %k in 0 .. %n { i = a + k * s }
//   reversed(range(a, b, s))   →  the same n;  for %k in 0 .. %n { i = a + (n - 1) * s - k * s }
FunctionAnalyzer::Counted FunctionAnalyzer::count(const Range& r) {
    const Type type = r.type;
    const bool is_signed = info(type.scalar()).is_signed();
    Counted counted{};
    ir::Value* start = materialize(r.start, r.span);
    ir::Value* step = materialize(r.step, r.span);
    const bool counts_up = !is_signed || (r.step.is_constant() && r.step.numbers[0].i > 0);
    if (counts_up && !r.reversed) {
        counted.lo = start;
        counted.hi = materialize(r.stop, r.span);
        counted.step = step;
        return counted;
    }
    ir::Value* one = builder_.integer(1, type);
    ir::Value* zero = builder_.integer(0, type);
    const auto op = [&](ir::Op o, ir::Value* x, ir::Value* y) { return builder_.binary(o, x, y); };
    ir::Value* n = nullptr;
    if (r.trip_count) {
        n = builder_.integer(*r.trip_count, type);
    } else {
        ir::Value* stop = materialize(r.stop, r.span);
        ir::Value* toward_start = op(ir::Op::sub, step, one);
        if (!counts_up) {
            ir::Value* is_up = builder_.compare(ir::Op::cmp_gt, step, zero);
            toward_start = builder_.select(is_up, toward_start, op(ir::Op::add, step, one));
        }
        n = op(ir::Op::div, op(ir::Op::add, op(ir::Op::sub, stop, start), toward_start), step);
        // Unsigned differences wrap where the range is empty.
        if (!is_signed) n = builder_.select(builder_.compare(ir::Op::cmp_lt, start, stop), n, zero);
    }
    counted.lo = zero;
    counted.hi = n;
    counted.step = one;
    counted.first = r.reversed ? op(ir::Op::add, start, op(ir::Op::mul, op(ir::Op::sub, n, one), step)) : start;
    counted.stride = step;
    counted.backwards = r.reversed;
    return counted;
}

ir::Value* FunctionAnalyzer::loop_variable(const Counted& counted, ir::Value* k) {
    if (!counted.first) return k;
    ir::Value* distance = builder_.binary(ir::Op::mul, k, counted.stride);
    return builder_.binary(counted.backwards ? ir::Op::sub : ir::Op::add, counted.first, distance);
}

// The values of the variable where the loop is taken apart, in order; empty optional where it is a loop in the IR too.
std::optional<std::vector<Value>> FunctionAnalyzer::unrolled_values(const syntax::For& loop,
                                                                    const std::optional<Range>& r) {
    const bool leaves = (possible_exits(loop.body) & (kBreaks | kContinues)) != 0;
    std::vector<Value> values;
    if (r) {
        if (!r->trip_count || *r->trip_count > module_.options.max_unroll || leaves) return std::nullopt;
        // Loops in loops multiply: what would make the function longer than this stays a loop.
        if (unrolled_bodies_ + *r->trip_count > kMostUnrolledBodies) return std::nullopt;
        unrolled_bodies_ += *r->trip_count;
        const std::int64_t first = r->start.numbers[0].i, step = r->step.numbers[0].i;
        for (std::int64_t k = 0; k < *r->trip_count; ++k) {
            const std::int64_t at = r->reversed ? *r->trip_count - 1 - k : k;
            values.push_back(Value::integer(first + at * step, r->type));
        }
        return values;
    }
    const Span span = loop.iterable->span;
    const Value iterable = expression(*loop.iterable);
    const Type type = type_of(iterable);
    if (iterable.is_tuple()) {
        values = iterable.elements;
    } else if (!iterable.is_binding() && (type.is_vector() || type.is(Kind::quaternion))) {
        for (std::int64_t i = 0; i < type.rows(); ++i) {
            PartStep step;
            step.path = {i};
            step.type = type.scalar_type();
            values.push_back(read_part(iterable, step));
        }
    } else {
        fail(span, "a for loop runs over range(), a tuple or a vector in kernels, not over " + describe(iterable),
             {help(type.is_array() ? "write for i in range(len(a)) and use a[i]" : "write for i in range(n)")});
    }
    if (leaves) {
        fail(span, "a loop over a tuple or vector cannot use break or continue",
             {help("loop over range(n), where n is the number of elements")}, ErrorCategory::syntax);
    }
    return values;
}

}  // namespace weft::sema
