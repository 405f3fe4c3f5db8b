// Prints the tree as the Python text it came from, except for layout and comments. Every operation is in parentheses,
// to show how the tree groups.
#include <charconv>

#include "syntax/tree.h"

namespace weft::syntax {
namespace {

const char* spelling(BinaryOperator op) {
    switch (op) {
        case BinaryOperator::add:
            return "+";
        case BinaryOperator::sub:
            return "-";
        case BinaryOperator::mul:
            return "*";
        case BinaryOperator::matmul:
            return "@";
        case BinaryOperator::div:
            return "/";
        case BinaryOperator::floordiv:
            return "//";
        case BinaryOperator::mod:
            return "%";
        case BinaryOperator::pow:
            return "**";
        case BinaryOperator::lshift:
            return "<<";
        case BinaryOperator::rshift:
            return ">>";
        case BinaryOperator::bit_or:
            return "|";
        case BinaryOperator::bit_xor:
            return "^";
        case BinaryOperator::bit_and:
            return "&";
    }
    return "?";
}

const char* spelling(UnaryOperator op) {
    switch (op) {
        case UnaryOperator::negate:
            return "-";
        case UnaryOperator::plus:
            return "+";
        case UnaryOperator::invert:
            return "~";
        case UnaryOperator::logical_not:
            return "not ";
    }
    return "?";
}

const char* spelling(CompareOperator op) {
    switch (op) {
        case CompareOperator::lt:
            return "<";
        case CompareOperator::le:
            return "<=";
        case CompareOperator::gt:
            return ">";
        case CompareOperator::ge:
            return ">=";
        case CompareOperator::eq:
            return "==";
        case CompareOperator::ne:
            return "!=";
        case CompareOperator::is:
            return "is";
        case CompareOperator::is_not:
            return "is not";
        case CompareOperator::in:
            return "in";
        case CompareOperator::not_in:
            return "not in";
    }
    return "?";
}

class Printer {
public:
    std::string function(const Function& function) {
        out_ = "def " + function.name + "(";
        for (std::size_t i = 0; i < function.parameters.size(); ++i) {
            const Parameter& parameter = function.parameters[i];
            if (i) out_ += ", ";
            if (parameter.keyword_only && (i == 0 || !function.parameters[i - 1].keyword_only)) out_ += "*, ";
            out_ += parameter.name;
            if (parameter.has_annotation) out_ += ": ...";
            if (parameter.has_default) out_ += " = ...";
        }
        out_ += "):\n";
        if (!function.unsupported.empty()) line(1, "<unsupported: " + function.unsupported + ">");
        block(function.body, 1);
        return std::move(out_);
    }
    std::string expression(const Expression& e) {
        std::visit([this](const auto& node) { (*this)(node); }, e.node);
        return std::move(out_);
    }

private:
    // ---- expressions ----

    void expression(const ExpressionPtr& e) {
        if (e) std::visit([this](const auto& node) { (*this)(node); }, e->node);
    }
    void list(const std::vector<ExpressionPtr>& expressions) {
        for (std::size_t i = 0; i < expressions.size(); ++i) {
            if (i) out_ += ", ";
            expression(expressions[i]);
        }
    }

public:
    void operator()(const Name& node) { out_ += spelled(node.id); }
    void operator()(const IntegerLiteral& node) { out_ += node.overflow ? node.text : std::to_string(node.value); }
    void operator()(const FloatLiteral& node) {
        char buffer[40];
        const char* end = std::to_chars(buffer, buffer + sizeof buffer, node.value).ptr;
        const std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
        out_ += digits;
        if (digits.find_first_of(".eni") == std::string_view::npos) out_ += ".0";
    }
    void operator()(const BoolLiteral& node) { out_ += node.value ? "True" : "False"; }
    void operator()(const StringLiteral& node) {
        out_ += '"';
        for (const char c : node.value) {
            if (c == '"' || c == '\\') out_ += '\\';
            if (c == '\n') {
                out_ += "\\n";
            } else {
                out_ += c;
            }
        }
        out_ += '"';
    }
    void operator()(const NoneLiteral&) { out_ += "None"; }
    void operator()(const Attribute& node) {
        expression(node.object);
        out_ += "." + node.name;
    }
    void operator()(const Subscript& node) {
        expression(node.object);
        out_ += '[';
        list(node.indices);
        out_ += ']';
    }
    void operator()(const Slice& node) {
        expression(node.start);
        out_ += ':';
        expression(node.stop);
        if (!node.step) return;
        out_ += ':';
        expression(node.step);
    }
    void operator()(const Call& node) {
        expression(node.function);
        out_ += '(';
        list(node.arguments);
        for (std::size_t i = 0; i < node.keywords.size(); ++i) {
            if (i || !node.arguments.empty()) out_ += ", ";
            out_ += node.keywords[i].name + "=";
            expression(node.keywords[i].value);
        }
        out_ += ')';
    }
    void operator()(const Unary& node) {
        out_ += '(';
        out_ += spelling(node.op);
        expression(node.operand);
        out_ += ')';
    }
    void operator()(const Binary& node) {
        out_ += '(';
        expression(node.left);
        out_ += std::string(" ") + spelling(node.op) + " ";
        expression(node.right);
        out_ += ')';
    }
    void operator()(const BoolOp& node) {
        out_ += '(';
        for (std::size_t i = 0; i < node.operands.size(); ++i) {
            if (i) out_ += node.is_and ? " and " : " or ";
            expression(node.operands[i]);
        }
        out_ += ')';
    }
    void operator()(const Compare& node) {
        out_ += '(';
        expression(node.left);
        for (std::size_t i = 0; i < node.ops.size(); ++i) {
            out_ += std::string(" ") + spelling(node.ops[i]) + " ";
            expression(node.operands[i]);
        }
        out_ += ')';
    }
    void operator()(const IfExpression& node) {
        out_ += '(';
        expression(node.then_value);
        out_ += " if ";
        expression(node.condition);
        out_ += " else ";
        expression(node.else_value);
        out_ += ')';
    }
    void operator()(const Tuple& node) {
        out_ += '(';
        list(node.elements);
        out_ += node.elements.size() == 1 ? ",)" : ")";
    }
    void operator()(const Starred& node) {
        out_ += '*';
        expression(node.value);
    }
    void operator()(const FormattedString& node) {
        out_ += "f\"";
        for (std::size_t i = 0; i < node.parts.size(); ++i) {
            const ExpressionPtr& part = node.parts[i];
            if (const StringLiteral* text = part ? std::get_if<StringLiteral>(&part->node) : nullptr) {
                out_ += text->value;
                continue;
            }
            out_ += '{';
            expression(part);
            if (i < node.formats.size() && !node.formats[i].empty()) out_ += ":" + node.formats[i];
            out_ += '}';
        }
        out_ += '"';
    }
    void operator()(const Named& node) {
        out_ += '(';
        expression(node.target);
        out_ += " := ";
        expression(node.value);
        out_ += ')';
    }
    void operator()(const Comprehension& node) {
        out_ += '[';
        expression(node.element);
        for (const Generator& generator : node.generators) {
            out_ += " for ";
            expression(generator.target);
            out_ += " in ";
            expression(generator.iterable);
            for (const ExpressionPtr& condition : generator.conditions) {
                out_ += " if ";
                expression(condition);
            }
        }
        out_ += ']';
    }
    void operator()(const LengthTest& node) {
        out_ += "len(";
        expression(node.object);
        out_ += std::string(node.or_more ? ") >= " : ") == ") + std::to_string(node.length);
    }
    void operator()(const ClassTest& node) {
        out_ += "isinstance(";
        expression(node.object);
        out_ += ", ";
        expression(node.type);
        out_ += ')';
    }
    void operator()(const PartByNumber& node) {
        expression(node.object);
        out_ += "." + std::to_string(node.number);
    }
    void operator()(const Lambda& node) {
        out_ += "lambda";
        for (std::size_t i = 0; i < node.function->parameters.size(); ++i)
            out_ += (i ? ", " : " ") + spelled(node.function->parameters[i].name);
        out_ += ": ...";
    }
    void operator()(const Unsupported& node) { out_ += "<unsupported: " + node.what + ">"; }

private:
    // ---- statements ----

    void line(int depth, const std::string& text) {
        indent(depth);
        out_ += text + "\n";
    }
    void indent(int depth) { out_.append(static_cast<std::size_t>(depth) * 4, ' '); }

    void block(const Block& statements, int depth) {
        if (statements.empty()) line(depth, "pass");
        for (const auto& statement : statements) {
            indent(depth);
            std::visit([&](const auto& node) { this->statement(node, depth); }, statement->node);
        }
    }

    void statement(const Assign& node, int) {
        for (const ExpressionPtr& target : node.targets) {
            expression(target);
            out_ += " = ";
        }
        expression(node.value);
        out_ += '\n';
    }
    void statement(const AnnotatedAssign& node, int) {
        expression(node.target);
        out_ += ": ";
        expression(node.annotation);
        if (node.value) out_ += " = ";
        expression(node.value);
        out_ += '\n';
    }
    void statement(const AugmentedAssign& node, int) {
        expression(node.target);
        out_ += std::string(" ") + spelling(node.op) + "= ";
        expression(node.value);
        out_ += '\n';
    }
    void statement(const ExpressionStatement& node, int) {
        expression(node.value);
        out_ += '\n';
    }
    void statement(const If& node, int depth) {
        out_ += "if ";
        expression(node.condition);
        out_ += ":\n";
        block(node.then_block, depth + 1);
        if (node.else_block.empty()) return;
        line(depth, "else:");
        block(node.else_block, depth + 1);
    }
    void statement(const For& node, int depth) {
        out_ += "for ";
        expression(node.target);
        out_ += " in ";
        expression(node.iterable);
        out_ += ":\n";
        block(node.body, depth + 1);
    }
    void statement(const While& node, int depth) {
        out_ += "while ";
        expression(node.condition);
        out_ += ":\n";
        block(node.body, depth + 1);
    }
    void statement(const Return& node, int) {
        out_ += node.value ? "return " : "return";
        expression(node.value);
        out_ += '\n';
    }
    void statement(const Break&, int) { out_ += "break\n"; }
    void statement(const Continue&, int) { out_ += "continue\n"; }
    void statement(const Pass&, int) { out_ += "pass\n"; }
    void statement(const Assert& node, int) {
        out_ += "assert ";
        expression(node.condition);
        if (node.message) out_ += ", ";
        expression(node.message);
        out_ += '\n';
    }
    void statement(const Raise& node, int) {
        out_ += node.exception ? "raise " : "raise";
        expression(node.exception);
        out_ += '\n';
    }
    void statement(const UnsupportedStatement& node, int) { out_ += "<unsupported: " + node.what + ">\n"; }

    std::string out_;
};

}  // namespace

std::string print(const Function& function) { return Printer().function(function); }
std::string print(const Expression& expression) { return Printer().expression(expression); }

}  // namespace weft::syntax
