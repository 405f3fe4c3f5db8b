// Derivatives that the user wrote (@wp.func_grad, @wp.func_replay), and wp.grad.
//
//   @wp.func_grad(f)                        func @f_gradient(%x: f32, %adj: f32) -> f32 {
//   def f_gradient(x: float, adj: float):     %0 = constant 0
//       wp.adjoint[x] += 2.0 * x * adj        %1 = mul 2, %x;  %2 = mul %1, %adj;  %3 = add %0, %2
//                                             return %3
//
// A gradient takes the function's parameters and one adjoint for each result of the function (gradient_body.h).
#include <algorithm>

#include "ir/typing.h"
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// The types of the values that a function returns.
std::vector<Type> returned(const ir::Function& function) {
    if (function.result.is_none()) return {};
    if (!function.result.is_tuple()) return {function.result};
    return {function.result.elements().begin(), function.result.elements().end()};
}

std::string shown(const std::vector<Type>& types) {
    std::string text;
    for (const Type type : types) text += (text.empty() ? "" : ", ") + type.python_name();
    return text;
}

}  // namespace

void FunctionAnalyzer::add_custom_derivatives(const BoundCall& call, ir::Function& instance) {
    const FunctionSource& callee = *call.callee;
    const syntax::Function& tree = *callee.tree;
    const Span place = tree.span;
    if ((callee.gradient || callee.replay) && !callee.references.empty()) {
        fail(place, "'" + tree.name + "' has parameters that are passed by reference, and a derivative of its own",
             {help("leave the derivative to Weft, or return the values instead")});
    }
    if (callee.gradient) {
        const syntax::Function& gradient = *callee.gradient->tree;
        module_.keep_source(gradient.source);
        reject_unusual_parameters(gradient);
        const std::size_t own = tree.parameters.size();
        const std::vector<Type> adjoints = returned(instance);
        if (gradient.parameters.size() != own + adjoints.size()) {
            fail(gradient.span,
                 "the gradient '" + gradient.name + "' has " + std::to_string(gradient.parameters.size()) +
                     " parameters, expected " + std::to_string(own + adjoints.size()) + ": those of '" + tree.name +
                     "' and one adjoint for each value that it returns (" + shown(adjoints) + ")",
                 {note("the function", place)});
        }
        std::vector<Value> values = call.values;
        TypeVariables variables;
        for (std::size_t i = 0; i < adjoints.size(); ++i) {
            const syntax::Parameter& parameter = gradient.parameters[own + i];
            Value adjoint;
            adjoint.kind = Value::Kind::runtime;
            adjoint.type = adjoints[i];
            values.push_back(accept(
                adjoint, callee.gradient->annotations[own + i], variables, parameter.span,
                "the adjoint '" + parameter.name + "', which has the type of what '" + tree.name + "' returns,"));
        }
        instance.gradient = new_instance(*callee.gradient, values, place, own);
        instance.gradient->sees_after = true;
    }
    if (callee.replay) {
        const syntax::Function& replay = *callee.replay->tree;
        module_.keep_source(replay.source);
        instance.replay = new_instance(*callee.replay, call.values, place);
        instance.replay->sees_after = true;
        if (!(instance.replay->result == instance.result)) {
            fail(replay.span,
                 "the replay '" + replay.name + "' returns " + shown(returned(*instance.replay)) + ", expected " +
                     shown(returned(instance)) + " as '" + tree.name + "' does",
                 {note("the function", place)});
        }
    }
}

void FunctionAnalyzer::reject_adjoint(const Binding& indexed, Span span) {
    if (indexed.kind != Binding::Kind::builtin || indexed.text != "adjoint") return;
    fail(span, "wp.adjoint[...] stands for a parameter's adjoint in a function made with @wp.func_grad",
         {help("its index is the name of a parameter: wp.adjoint[x]")});
}

// wp.grad(f) as a value: f, marked as its gradient.
Value FunctionAnalyzer::gradient_of_argument(const std::vector<Actual>& arguments, Span span) {
    if (arguments.size() != 1 || !arguments[0].keyword.empty())
        fail(span, "wp.grad() takes one function, got " + std::to_string(arguments.size()) + " arguments");
    const Value& value = arguments[0].value;
    const bool is_builtin = value.is_binding(Binding::Kind::builtin);
    const bool is_function = value.is_binding(Binding::Kind::function) && !value.binding->function->native;
    if (!(is_builtin || is_function) || value.binding->is_gradient) {
        std::vector<Note> notes = {
            help("wp.grad() takes a function made with @wp.func or a built-in one; wrap the gradient of a function in "
                 "one")};
        fail(arguments[0].span, "wp.grad() cannot take " + describe(value), std::move(notes));
    }
    Binding binding = *value.binding;
    binding.is_gradient = true;
    return Value::of_binding(std::move(binding));
}

// wp.grad(wp.atan2)(y, x): the gradient of a function that only calls it.
//
//     def atan2(a0, a1):
//         return wp.atan2(a0, a1)
Value FunctionAnalyzer::call_builtin_gradient(const std::string& name, const std::vector<Actual>& arguments,
                                              Span span) {
    // Knows no names, so that look-up finds the built-in function.
    class NoNames final : public Environment {
        Binding lookup(std::string_view) override { return {}; }
        Binding attribute(const Binding&, std::string_view) override { return {}; }
        Binding evaluate(int, const std::vector<Local>&) override { return {}; }
        std::vector<std::string> names() override { return {}; }
        std::vector<std::string> attribute_names(const Binding&) override { return {}; }
    };
    const auto made = [&](decltype(syntax::Expression::node) node) {
        auto expression = std::make_unique<syntax::Expression>();
        expression->node = std::move(node);
        expression->span = span;
        return expression;
    };
    auto tree = std::make_shared<syntax::Function>();
    tree->name = name;
    tree->span = span;
    syntax::Call call;
    call.function = made(syntax::Name{name});
    for (const Actual& a : arguments) {
        if (!a.keyword.empty())
            fail(a.span, "wp.grad(wp." + name + ") takes its arguments without keywords", {}, ErrorCategory::syntax);
        const std::string parameter = "a" + std::to_string(tree->parameters.size());
        tree->parameters.push_back({parameter, span});
        call.arguments.push_back(made(syntax::Name{parameter}));
    }
    syntax::Return result{made(std::move(call))};
    tree->body.push_back(std::make_unique<syntax::Statement>(syntax::Statement{std::move(result), span}));
    auto source = std::make_shared<FunctionSource>();
    source->annotations.resize(tree->parameters.size());
    source->key = "wp." + name + "/" + std::to_string(arguments.size());
    source->tree = std::move(tree);
    source->environment = std::make_shared<NoNames>();
    return call_gradient(source, arguments, span);
}

// wp.grad(f)(x, y): the derivatives of f's results by each of its differentiable parameters.
Value FunctionAnalyzer::call_gradient(const std::shared_ptr<const FunctionSource>& function,
                                      const std::vector<Actual>& arguments, Span span) {
    module_.keep_source(function->tree->source);
    const BoundCall call = choose_overload(module_, function, arguments, span);
    const syntax::Function& tree = *call.callee->tree;
    const Note signature = note("the function", tree.span);
    ir::Function* const instance = instance_of(call, span, signature);
    const Type result = instance->result;
    if (!result.is_scalar() || !ir::is_smooth(result)) {
        fail(span,
             "wp.grad() takes functions that return one floating-point number, and '" + tree.name + "' returns " +
                 (result.is_none() ? "nothing" : result.python_name()),
             {signature});
    }
    if (ir::gradient_type(*instance).is_none())
        fail(span, "no parameter of '" + tree.name + "' has a derivative", {signature});
    ir::Function* gradient = instance->gradient;
    if (!gradient) {
        ir::Function*& known = module_.gradients[instance];
        if (!known) {
            known = module_.module.add(module_.unique_name(instance->name + "_gradient"));
            known->span = tree.span;
            known->reverse_of = instance;
            known->result = ir::gradient_type(*instance);
            for (const ir::Value* parameter : instance->parameters())
                known->add_argument(&known->body, parameter->type, parameter->name);
            known->add_argument(&known->body, result, "adjoint");
        }
        gradient = known;
    }
    std::vector<ir::Value*> operands = operands_of(call);
    builder_.span = span;
    operands.push_back(builder_.one(result));
    return values_.from_ir(builder_.call(gradient, std::move(operands)));
}

}  // namespace weft::sema
