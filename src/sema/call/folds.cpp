// sum(f(v) for v in a if c), min(...), max(...), any(...) and all(...) as loops. Used if the sequence is long, or if
// only a launch knows its length.
//
//   sum(a[k] for k in range(n))   →   for %k in 0 .. %n carry (%s0 = 0) { %s1 = add %s0, (load %a[%k]); yield %s1 }
//   min(a[k] for k in range(n))   →   the same, and whether there was an element before
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

bool is_choice(const std::string& name) { return name == "min" || name == "max"; }

}  // namespace

// Empty if the argument is no generator over one sequence. A short sequence, or one that is not counted, is unrolled.
std::optional<Value> FunctionAnalyzer::fold_generator(const std::string& name, const syntax::Call& call, Span span) {
    if (call.arguments.size() != 1) return std::nullopt;
    const auto* generators = std::get_if<syntax::Comprehension>(&call.arguments[0]->node);
    if (!generators) return std::nullopt;
    const syntax::Expression* otherwise = nullptr;  // min(..., default=x)
    for (const syntax::Keyword& keyword : call.keywords) {
        if (!is_choice(name) || keyword.name != "default") return std::nullopt;
        otherwise = keyword.value.get();
    }
    if (generators->generators.size() != 1 && !otherwise) return std::nullopt;
    const syntax::Generator& generator = generators->generators[0];
    const Iterable over = iterable(*generator.iterable);
    const std::optional<std::int64_t> length = known_length(over);
    const bool is_short = !is_counted(over) || (length && *length <= module_.options.max_unroll);
    if (generators->generators.size() != 1 || (is_short && generator.conditions.empty())) {
        const Value list = comprehension(*generators, &over);
        if (otherwise && list.elements.empty()) return expression(*otherwise);
        return fold_sequence(name, {Actual{list, call.arguments[0]->span, {}, nullptr, nullptr}}, span);
    }
    Value result = is_short ? fold_values(name, *generators, sequences_.elements_of(over), span)
                            : fold_loop(name, *generators, over, span);
    if (is_choice(name)) result = chosen(name, result, otherwise, span);
    std::erase_if(locals_.scope, [&](const auto& local) { return syntax::is_own(local.first, generators->scope); });
    return result;
}

// The start value of a fold. For sums and choices one element is analysed in a dropped region to find the type.
Value FunctionAnalyzer::start_of_fold(const std::string& name, const syntax::Comprehension& generators,
                                      const std::function<Value()>& element, Span span) {
    if (name == "any" || name == "all") return Value::boolean(name == "all");
    const Scope saved = locals_.scope;
    ir::Region* aside = function_.new_region(nullptr);
    Value first;
    {
        ir::Builder::Inside inside(builder_, *aside);
        assign_to(*generators.generators[0].target, element(), span);
        for (const auto& condition : generators.generators[0].conditions) expression(*condition);  // may assign names
        first = settle(expression(*generators.element), generators.element->span);
    }
    locals_.scope = saved;
    first = values_.zero_like(first);
    return is_choice(name) ? Value::tuple({first, Value::boolean(false)}) : first;
}

// Folds the elements one after the other, without a loop.
Value FunctionAnalyzer::fold_values(const std::string& name, const syntax::Comprehension& generators,
                                    const std::vector<Value>& values, Span span) {
    if (values.empty()) {
        if (is_choice(name)) fail(span, name + "() of nothing has no value", {}, ErrorCategory::value);
        return name == "sum" ? Value::literal(Number::integer(0)) : Value::boolean(name == "all");
    }
    Value result = start_of_fold(name, generators, [&] { return values[0]; }, span);
    for (const Value& value : values) {
        assign_to(*generators.generators[0].target, value, span);
        result = with_element(name, generators, 0, result, span);
    }
    return result;
}

Value FunctionAnalyzer::fold_loop(const std::string& name, const syntax::Comprehension& generators,
                                  const Iterable& over, Span span) {
    const syntax::Generator& generator = generators.generators[0];
    const std::string result_name = "$" + name + "'" + std::to_string(generators.scope);
    const auto set_result = [&](Value value) {
        Local local;
        local.value = std::move(value);
        local.assigned = span;
        locals_.scope.insert_or_assign(result_name, std::move(local));
    };
    const Type counter = counter_of(over);
    // The argument belongs to the region that start_of_fold() drops.
    const auto element = [&] {
        return sequences_.element_at(over, function_.add_argument(&builder_.region(), counter, ""));
    };
    set_result(start_of_fold(name, generators, element, span));
    LoopNames names;
    names.assigned = assigned_names(*generators.element, names_.inout_finder());
    for (const syntax::ExpressionPtr& condition : generator.conditions)
        names.assigned.merge(assigned_names(*condition, names_.inout_finder()));
    names.assigned.insert(result_name);
    names.rebound = {result_name};
    const std::vector<ir::Value*> bounds = {builder_.integer(0, counter), sequences_.counted_length(over, counter),
                                            builder_.integer(1, counter)};
    static const syntax::Block nothing;
    LoopWriter build = begin_loop(ir::Op::for_, bounds, nothing, std::move(names), span);
    ir::Region* body = build.new_region();
    ir::Value* k = function_.add_argument(body, counter, "");
    build.enter(body);
    {
        ir::Builder::Inside inside(builder_, *body);
        const Value before = locals_.find(result_name)->value;
        assign_to(*generator.target, sequences_.element_at(over, k), generator.target->span);
        set_result(with_element(name, generators, 0, before, span));
    }
    build.finish(body, kFalls);
    return locals_.find(result_name)->value;
}

// The value of the fold after the element, if the conditions from this one on hold.
Value FunctionAnalyzer::with_element(const std::string& name, const syntax::Comprehension& generators,
                                     std::size_t condition, const Value& before, Span span) {
    const syntax::Generator& generator = generators.generators[0];
    if (condition < generator.conditions.size()) {
        const syntax::Expression& asked = *generator.conditions[condition];
        const Value holds = expression(asked);
        if (const std::optional<bool> known = constant_truth(holds))
            return *known ? with_element(name, generators, condition + 1, before, span) : before;
        Value result;
        branches_.write(
            values_.truth(holds, asked.span), span,
            [&](Value& r) {
                r = with_element(name, generators, condition + 1, before, span);
                return kFalls;
            },
            [&](Value& r) {
                r = before;
                return kFalls;
            },
            &result);
        return result;
    }
    const Span place = generators.element->span;
    const Value element = expression(*generators.element);
    if (name == "sum") return binary(syntax::BinaryOperator::add, before, element, span, span, place);
    if (is_choice(name)) {
        const Value& best = before.elements[0];
        ir::Value* value = values_.materialize(settle(element, place), place);
        const Value better = call_builtin(
            name, {Actual{best, span, {}, nullptr}, Actual{Value::runtime(value), place, {}, nullptr}}, span);
        ir::Value* is_later = values_.materialize(before.elements[1], span);
        ir::Value* kept = builder_.select(is_later, values_.materialize(better, span), value);
        return Value::tuple({Value::runtime(kept), Value::boolean(true)});
    }
    const ir::Op op = name == "any" ? ir::Op::or_ : ir::Op::and_;
    return Value::runtime(builder_.binary(op, values_.materialize(before, span), values_.truth(element, place)));
}

// The result of min() or max() from `found`: the best element, and whether there was any. If there was none, it is
// `otherwise`, or the launch ends with a ValueError.
Value FunctionAnalyzer::chosen(const std::string& name, const Value& found, const syntax::Expression* otherwise,
                               Span span) {
    ir::Value *best = values_.materialize(found.elements[0], span),
              *is_there = values_.materialize(found.elements[1], span);
    if (!otherwise) {
        raise_value_error(builder_.unary(ir::Op::invert, is_there), name + "() of nothing has no value", span);
        return Value::runtime(best);
    }
    const Value given = expect(expression(*otherwise), best->type, otherwise->span, "default of " + name + "()");
    return Value::runtime(builder_.select(is_there, best, values_.materialize(given, otherwise->span)));
}

}  // namespace weft::sema
