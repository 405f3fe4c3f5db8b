// Lambdas, functions within functions, and comprehensions. All are inlined at the place of their use: the locals that
// they capture have their values of that time. No two of them have a variable of the same name (syntax/tree.h), so all
// share one scope.
//
//   scale = lambda v: v * s                       x = a * s0
//   x = scale(a); s += 1.0; y = scale(b)     →    s1 = s0 + 1.0; y = b * s1
//
//   [w * w for w in v if ...]                     a tuple: of a length known at compile time, elements of any types
#include <algorithm>
#include <utility>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

std::string shown(const syntax::Function& function) {
    return function.name == "lambda" ? "this lambda" : "'" + function.name + "'";
}

}  // namespace

// Default values are evaluated at the place of the lambda.
Value FunctionAnalyzer::lambda(const syntax::Lambda& lambda) {
    reject_unusual_parameters(*lambda.function);
    Binding binding;
    binding.kind = Binding::Kind::closure;
    binding.lambda = &lambda;
    Value value = Value::of_binding(std::move(binding));
    for (const auto& expression : lambda.defaults)
        if (expression) value.elements.push_back(bound(this->expression(*expression), expression->span));
    return value;
}

Value FunctionAnalyzer::call_closure(const Value& closure, const std::vector<Actual>& arguments, Span span) {
    const syntax::Lambda& lambda = *closure.binding->lambda;
    const syntax::Function& function = *lambda.function;
    const Note place = note("the function", function.span);
    if (std::find(locals_.inlined.begin(), locals_.inlined.end(), &lambda) != locals_.inlined.end()) {
        fail(span, "functions cannot call themselves, directly or through others: " + shown(function) + " does",
             {place, help("use a loop")});
    }
    if (locals_.inlined.size() >= kMostNestedCalls)
        fail(span, "functions call each other more than " + std::to_string(kMostNestedCalls) + " deep here", {place});
    const std::vector<const Actual*> slots = match_parameters(function, arguments, place);
    std::size_t next_default = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const syntax::Parameter& parameter = function.parameters[i];
        const std::string argument = "argument '" + syntax::spelled(parameter.name) + "' of " + shown(function);
        const Value* otherwise = lambda.defaults[i] ? &closure.elements[next_default++] : nullptr;
        if (!slots[i] && !otherwise) fail(span, argument + " is missing", {place});
        Value value = slots[i] ? slots[i]->value : *otherwise;
        const Span at = slots[i] ? slots[i]->span : parameter.span;
        if (lambda.annotations[i]) value = expect(value, annotated_type(*lambda.annotations[i]), at, argument);
        locals_.assign(parameter.name, std::move(value), at);
    }

    locals_.inlined.push_back(&lambda);
    const Value result = body_of(lambda);
    locals_.inlined.pop_back();
    std::erase_if(locals_.scope, [&](const auto& local) { return syntax::is_own(local.first, function.scope); });
    return result;
}

// Inlines the body and returns its result.
Value FunctionAnalyzer::body_of(const syntax::Lambda& lambda) {
    const syntax::Function& function = *lambda.function;
    if (function.name == "lambda") {
        const Value value = expression(*std::get<syntax::Return>(function.body[0]->node).value);
        if (holds_closure(value)) fail(function.span, "a lambda cannot give another one in kernels");
        return value;
    }
    // The way in which control leaves the body does not concern the enclosing function.
    Scope flags;
    for (const char* flag : {kSkip, kGo, kReturned, kResult})
        if (const auto found = locals_.scope.find(flag); found != locals_.scope.end())
            flags.insert(locals_.scope.extract(found));
    std::vector<Locals::Loop> loops = std::exchange(locals_.loops, {});
    const bool skip_needed = std::exchange(locals_.skip_needed, false);
    const std::optional<Type> result_type = std::exchange(locals_.result.type, std::nullopt);
    const Span result_place = locals_.result.place;
    if (lambda.result) {
        const Value annotation = expression(*lambda.result);
        locals_.result.type =
            annotation.is_binding(Binding::Kind::none) ? Type::none() : annotated_type(*lambda.result);
        locals_.result.place = lambda.result->span;
    }
    run({Work{&function.body}});
    const Local* result = locals_.find(kResult);
    Value value = result ? result->value : Value{};
    if (!result && locals_.result.type && !locals_.result.type->is_none()) {
        fail(function.span, shown(function) + " does not return a value",
             {note("it is annotated with " + locals_.result.type->python_name(), locals_.result.place)});
    }
    locals_.result.place = result_place;
    locals_.result.type = result_type;
    locals_.skip_needed = skip_needed;
    locals_.loops = std::move(loops);
    for (const char* flag : {kSkip, kGo, kReturned, kResult}) locals_.scope.erase(flag);
    locals_.scope.merge(flags);
    return value;
}

// `first`: the sequence of the first generator, if it has been evaluated.
Value FunctionAnalyzer::comprehension(const syntax::Comprehension& comprehension, const Iterable* first) {
    std::vector<Value> elements;
    generate(comprehension, 0, first ? *first : iterable(*comprehension.generators[0].iterable), elements);
    // As in Python, a lambda sees the variables of the comprehension as the last element left them.
    if (std::none_of(elements.begin(), elements.end(), holds_closure))
        std::erase_if(locals_.scope,
                      [&](const auto& local) { return syntax::is_own(local.first, comprehension.scope); });
    return Value::list(std::move(elements));
}

// Appends the elements for all values of the generators from `number` on.
void FunctionAnalyzer::generate(const syntax::Comprehension& comprehension, std::size_t number, const Iterable& over,
                                std::vector<Value>& elements) {
    const syntax::Generator& generator = comprehension.generators[number];
    const Span span = generator.iterable->span;
    const std::optional<std::int64_t> length = known_length(over);
    if (!length) {
        fail(span, "the length of a comprehension must be known at compile time",
             {help("write a loop; wp.zeros(shape=16, dtype=float) makes a small array of this thread")});
    }
    unrolled_bodies_ += *length;
    if (unrolled_bodies_ > kMostUnrolledBodies) {
        fail(span,
             "comprehensions are written out, and there are more than " + std::to_string(kMostUnrolledBodies) +
                 " copies of loop bodies in this function",
             {help("write a loop")}, ErrorCategory::value);
    }
    for (const Value& value : sequences_.elements_of(over)) {
        assign_to(*generator.target, value, span);
        bool is_taken = true;
        for (const syntax::ExpressionPtr& condition : generator.conditions) {
            if (!is_taken) break;
            const std::optional<bool> known = constant_truth(expression(*condition));
            if (!known) {
                fail(condition->span,
                     "whether a comprehension takes an element must be known at compile time, as its length is",
                     {help("write a loop, or choose the element: x if condition else 0.0")});
            }
            is_taken = *known;
        }
        if (!is_taken) continue;
        if (number + 1 == comprehension.generators.size())
            elements.push_back(expression(*comprehension.element));
        else
            generate(comprehension, number + 1, iterable(*comprehension.generators[number + 1].iterable), elements);
    }
}

}  // namespace weft::sema
