// Signatures, lambdas, functions within functions and comprehensions. Variables of the last three get a number: see
// syntax/tree.h.
#include "frontend/tree_reader.h"
#include "sema/walk.h"

namespace weft::frontend {

void TreeReader::signature(nb::handle arguments, Function& function) {
    const FieldNames& f = fields();
    for (const FieldName* list : {&f.posonlyargs, &f.args}) {
        for (nb::handle argument : nb::borrow<nb::list>(get(arguments, *list))) {
            function.parameters.push_back(
                {get_text(argument, f.arg), span(argument), !get(argument, f.annotation).is_none()});
        }
    }
    const std::size_t defaults = nb::len(get(arguments, f.defaults));
    for (std::size_t i = 0; i < defaults; ++i) {
        function.parameters[function.parameters.size() - 1 - i].has_default = true;
    }
    const auto own_defaults = nb::borrow<nb::list>(get(arguments, f.kw_defaults));
    std::size_t next = 0;
    for (nb::handle argument : nb::borrow<nb::list>(get(arguments, f.kwonlyargs))) {
        const bool has_default = !own_defaults[next++].is_none();
        function.parameters.push_back(
            {get_text(argument, f.arg), span(argument), !get(argument, f.annotation).is_none(), has_default, true});
    }
    if (!get(arguments, f.vararg).is_none()) function.unsupported = "*" + get_text(get(arguments, f.vararg), f.arg);
    if (!get(arguments, f.kwarg).is_none()) function.unsupported = "**" + get_text(get(arguments, f.kwarg), f.arg);
}

// Renames these variables to those of the scope, in all names read since there were `since` of them.
void TreeReader::number(const std::set<std::string>& variables, int scope, std::size_t since) {
    for (std::size_t i = since; i < names_.size(); ++i) {
        std::string& id = std::get<Name>(names_[i]->node).id;
        if (variables.contains(id)) id += "'" + std::to_string(scope);
    }
}

TreeReader::Content TreeReader::comprehension(nb::handle node) {
    const FieldNames& f = fields();
    Comprehension result;
    result.scope = ++scopes_;
    const auto parts = nb::borrow<nb::list>(get(node, f.generators));
    // The first iterable is evaluated in the enclosing function.
    ExpressionPtr first = expression(get(parts[0], f.iter));
    const std::size_t since = names_.size();
    std::set<std::string> variables;
    for (nb::handle part : parts) {
        if (get_int(part, f.is_async) != 0) return Unsupported{"async"};
        Generator generator;
        generator.iterable = first ? std::move(first) : expression(get(part, f.iter));
        generator.target = expression(get(part, f.target));
        generator.conditions = expressions(get(part, f.ifs));
        sema::target_names(*generator.target, variables);
        result.generators.push_back(std::move(generator));
    }
    result.element = expression(get(node, f.elt));
    number(variables, result.scope, since);
    return result;
}

// A lambda, or a `def` within a function.
TreeReader::Content TreeReader::lambda(nb::handle node, const std::string& name) {
    const FieldNames& f = fields();
    auto function = std::make_shared<Function>();
    function->name = name;
    function->span = span(node);
    function->scope = ++scopes_;
    this->signature(get(node, f.args), *function);
    Lambda result;
    // Annotations and defaults are evaluated in the enclosing function.
    const nb::object signature = get(node, f.args);
    for (const FieldName* list : {&f.posonlyargs, &f.args, &f.kwonlyargs})
        for (nb::handle argument : nb::borrow<nb::list>(get(signature, *list)))
            result.annotations.push_back(optional_expression(get(argument, f.annotation)));
    std::vector<ExpressionPtr> last = expressions(get(signature, f.defaults));
    const std::size_t by_keyword = nb::len(get(signature, f.kwonlyargs));
    result.defaults.resize(result.annotations.size() - by_keyword - last.size());
    for (ExpressionPtr& value : last) result.defaults.push_back(std::move(value));
    for (nb::handle value : nb::borrow<nb::list>(get(signature, f.kw_defaults)))
        result.defaults.push_back(optional_expression(value));
    const bool is_lambda = node_of(node) == Node::Lambda;
    if (!is_lambda) result.result = optional_expression(get(node, f.returns));
    const std::size_t since = names_.size();
    nb::object body = get(node, f.body);
    std::set<std::string> outer = std::exchange(nonlocal_, {});
    broke_.emplace_back();  // a break in it belongs to its own loops
    if (is_lambda) {
        Return value{expression(body)};
        const Span at = value.value->span;
        function->body.push_back(std::make_unique<Statement>(Statement{std::move(value), at}));
    } else {
        function->body = block(body);
    }
    broke_.pop_back();
    std::set<std::string> variables = sema::rebound_names(function->body);
    for (const std::string& other : std::exchange(nonlocal_, std::move(outer))) variables.erase(other);
    for (Parameter& parameter : function->parameters) {
        variables.insert(parameter.name);
        parameter.name += "'" + std::to_string(function->scope);
    }
    number(variables, function->scope, since);
    result.function = std::move(function);
    return result;
}

}  // namespace weft::frontend
