// sum(f(v) for v in a if c), any(...) and all(...) of what has a length that only a launch knows, or a long one: a
// loop.
//
//   sum(a[k] * b[k] for k in range(n))    →    for %k in 0 .. %n carry (%s0 = 0) { %s1 = add %s0, (mul ...); yield %s1
//   }
#include "sema/analyzer.h"

namespace weft::sema {

// Empty where the argument is no generator over one sequence. A short one, or of what has no number, is written out.
std::optional<Value> FunctionAnalyzer::fold_generator(const std::string& name, const syntax::Call& call, Span span) {
    if (call.arguments.size() != 1 || !call.keywords.empty() || (name != "sum" && name != "any" && name != "all"))
        return std::nullopt;
    const auto* generators = std::get_if<syntax::Comprehension>(&call.arguments[0]->node);
    if (!generators || generators->generators.size() != 1) return std::nullopt;
    const syntax::Generator& generator = generators->generators[0];
    const Iterable over = iterable(*generator.iterable);
    const std::optional<std::int64_t> length = length_of(over);
    if (!is_counted(over) || (length && *length <= module_.options.max_unroll)) {
        const Span place = call.arguments[0]->span;
        return fold_sequence(name, {Actual{comprehension(*generators, &over), place, {}, nullptr, nullptr}}, span);
    }

    const std::string result_name = "$" + name + "'" + std::to_string(generators->scope);
    const auto set_result = [&](Value value) {
        Local local;
        local.value = std::move(value);
        local.assigned = span;
        scope_.insert_or_assign(result_name, std::move(local));
    };
    // The result with the element at %k.
    const auto step = [&](ir::Value* k, const Value& before) {
        assign_to(*generator.target, element_at(over, k), generator.target->span);
        return with_element(name, *generators, 0, before, span);
    };
    const Type counter = counter_of(over);
    Value first = Value::boolean(name == "all");
    if (name == "sum") {
        // Its type is found by taking one element aside.
        const Scope saved = scope_;
        ir::Builder::Inside inside(builder_, *function_.new_region(nullptr));
        assign_to(*generator.target, element_at(over, function_.add_argument(&builder_.region(), counter, "")), span);
        first = settle(expression(*generators->element), generators->element->span);
        scope_ = saved;
    }
    if (name == "sum") first = zero_like(first);
    set_result(std::move(first));
    LoopNames names;
    names.assigned = assigned_names(*generators->element, inout_finder());
    names.assigned.insert(result_name);
    names.rebound = {result_name};
    const std::vector<ir::Value*> bounds = {builder_.integer(0, counter), counted_length(over, counter),
                                            builder_.integer(1, counter)};
    static const syntax::Block nothing;
    LoopBuild build = begin_loop(ir::Op::for_, nothing, std::move(names), span);
    build.operation->operands = bounds;
    ir::Region* body = function_.new_region(build.operation);
    ir::Value* k = function_.add_argument(body, counter, "");
    enter_region(build, body);
    {
        ir::Builder::Inside inside(builder_, *body);
        const Value before = find_local(result_name)->value;
        set_result(step(k, before));
    }
    finish_loop(build, body, bounds, kFalls);
    const Value result = find_local(result_name)->value;
    std::erase_if(scope_, [&](const auto& local) { return syntax::is_own(local.first, generators->scope); });
    return result;
}

// What the fold has after the element, if the conditions from this one on take it.
Value FunctionAnalyzer::with_element(const std::string& name, const syntax::Comprehension& generators,
                                     std::size_t condition, const Value& before, Span span) {
    const syntax::Generator& generator = generators.generators[0];
    if (condition < generator.conditions.size()) {
        const syntax::Expression& asked = *generator.conditions[condition];
        const Value holds = expression(asked);
        if (const std::optional<bool> known = constant_truth(holds))
            return *known ? with_element(name, generators, condition + 1, before, span) : before;
        Value result;
        branch(
            truth(holds, asked.span), span,
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
    const ir::Op op = name == "any" ? ir::Op::or_ : ir::Op::and_;
    return Value::runtime(builder_.binary(op, materialize(before, span), truth(element, place)));
}

}  // namespace weft::sema
