// Statements. `else` of loops: see syntax/tree.h.
#include "frontend/tree_reader.h"

namespace weft::frontend {

Block TreeReader::block(nb::handle list) {
    Block result;
    for (nb::handle node : nb::borrow<nb::list>(list)) {
        const Node kind = node_of(node);
        if (kind == Node::For || kind == Node::While) {
            loop(node, result);
            continue;
        }
        if (kind == Node::Match) {
            match(node, result);
            continue;
        }
        if (kind == Node::Break && !broke_.empty() && !broke_.back().empty()) {
            result.push_back(set_flag(broke_.back(), true, span(node)));
        }
        ask_for_signals();
        result.push_back(std::make_unique<Statement>(Statement{statement(node), span(node)}));
    }
    return result;
}

TreeReader::StatementContent TreeReader::statement(nb::handle node) {
    const FieldNames& f = fields();
    const Node kind = node_of(node);
    switch (kind) {
        case Node::Assign: {
            auto targets = expressions(get(node, f.targets));
            return Assign{std::move(targets), expression(get(node, f.value))};
        }
        case Node::AnnAssign: {
            auto target = expression(get(node, f.target));
            auto annotation = expression(get(node, f.annotation));
            return AnnotatedAssign{std::move(target), std::move(annotation), optional_expression(get(node, f.value))};
        }
        case Node::AugAssign: {
            auto target = expression(get(node, f.target));
            return AugmentedAssign{std::move(target), binary_operator(get(node, f.op)), expression(get(node, f.value))};
        }
        case Node::Expr: {
            nb::object value = get(node, f.value);
            if (node_of(value) == Node::Constant && get(value, f.value).ptr() == Py_Ellipsis) return Pass{};
            return ExpressionStatement{expression(value)};
        }
        case Node::If: {
            auto condition = expression(get(node, f.test));
            auto then_block = block(get(node, f.body));
            return If{std::move(condition), std::move(then_block), block(get(node, f.orelse))};
        }
        case Node::For: {
            auto target = expression(get(node, f.target));
            auto iterable = expression(get(node, f.iter));
            return For{std::move(target), std::move(iterable), block(get(node, f.body))};
        }
        case Node::While: {
            auto condition = expression(get(node, f.test));
            return While{std::move(condition), block(get(node, f.body))};
        }
        case Node::Return:
            return Return{optional_expression(get(node, f.value))};
        case Node::Break:
            return Break{};
        case Node::Continue:
            return Continue{};
        case Node::Pass:
            return Pass{};
        case Node::Assert: {
            auto condition = expression(get(node, f.test));
            return Assert{std::move(condition), optional_expression(get(node, f.msg))};
        }
        case Node::Raise:
            if (!get(node, f.cause).is_none()) return UnsupportedStatement{"raise ... from"};
            return Raise{optional_expression(get(node, f.exc))};
        case Node::FunctionDef: {
            if (nb::len(get(node, f.decorator_list)) > 0)
                return UnsupportedStatement{"a decorator of a function within a function"};
            Assign assign;
            const std::string name = get_text(node, f.name);
            assign.targets.push_back(made(Name{name}, span(node)));
            names_.push_back(assign.targets[0].get());
            assign.value = made(lambda(node, name), span(node));
            return assign;
        }
        case Node::Nonlocal:
            for (nb::handle name : nb::borrow<nb::list>(get(node, f.names)))
                nonlocal_.insert(nb::borrow<nb::str>(name).c_str());
            return Pass{};
        default:
            break;
    }
    if (const char* what = unsupported_statement(kind)) return UnsupportedStatement{what};
    return UnsupportedStatement{"the statement '" + std::string(nb::str(node.type().attr("__name__")).c_str()) + "'"};
}

std::unique_ptr<Statement> TreeReader::set_flag(const std::string& name, bool value, Span span) {
    Assign assign;
    assign.targets.push_back(made(Name{name}, span));
    assign.value = made(BoolLiteral{value}, span);
    return std::make_unique<Statement>(Statement{std::move(assign), span});
}

void TreeReader::loop(nb::handle node, Block& result) {
    nb::object otherwise = get(node, fields().orelse);
    const bool has_else = nb::len(otherwise) > 0;
    const std::string flag = has_else ? "$broke" + std::to_string(flags_++) : "";
    const Span at = span(node);
    if (has_else) result.push_back(set_flag(flag, false, at));
    broke_.push_back(flag);
    result.push_back(std::make_unique<Statement>(Statement{statement(node), at}));
    broke_.pop_back();
    if (!has_else) return;
    If branch{made(Unary{UnaryOperator::logical_not, made(Name{flag}, at)}, at), block(otherwise), {}};
    result.push_back(std::make_unique<Statement>(Statement{std::move(branch), at}));
}

}  // namespace weft::frontend
