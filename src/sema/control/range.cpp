// range(...) and reversed(range(...)) as sequences of loops; tuples and vectors as elements known at compile time.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Iterations of range(start, stop, step).
std::int64_t iterations_of(__int128 start, __int128 stop, __int128 step) {
    const __int128 n = (stop - start + (step > 0 ? step - 1 : step + 1)) / step;
    return n < 0 ? 0 : static_cast<std::int64_t>(n);
}

}  // namespace

std::optional<FunctionAnalyzer::Range> FunctionAnalyzer::range(const syntax::Expression& iterable) {
    const auto* call = std::get_if<syntax::Call>(&iterable.node);
    const std::optional<Binding> callee = call ? names_.static_binding(*call->function) : std::nullopt;
    if (!callee || callee->kind != Binding::Kind::builtin) return std::nullopt;
    const Span span = iterable.span;
    if (callee->text == "reversed") {
        std::optional<Range> inner;
        if (call->arguments.size() == 1 && call->keywords.empty()) inner = range(*call->arguments[0]);
        if (!inner) return std::nullopt;  // of a sequence: see iterable.cpp
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

// The bounds of the `for_`. A range that counts up by a known step keeps its bounds:
//   range(a, b, 2)             →  for %k in %a .. %b step 2
// Any other one is counted from 0 to its number of iterations, and the variable computed:
//   range(a, b, s)             →  n = (b - a + (s > 0 ? s - 1 : s + 1)) / s;  for %k in 0 .. %n { i = a + k * s }
//   reversed(range(a, b, s))   →  the same n;  for %k in 0 .. %n { i = a + (n - 1) * s - k * s }
FunctionAnalyzer::Counted FunctionAnalyzer::count(const Range& r) {
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
ir::Value* FunctionAnalyzer::trip_count(const Range& r, ir::Value* start, ir::Value* step) {
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

ir::Value* FunctionAnalyzer::loop_variable(const Counted& counted, ir::Value* k) {
    if (!counted.first) return k;
    ir::Value* distance = builder_.binary(ir::Op::mul, k, counted.stride);
    return builder_.binary(counted.backwards ? ir::Op::sub : ir::Op::add, counted.first, distance);
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

}  // namespace weft::sema
