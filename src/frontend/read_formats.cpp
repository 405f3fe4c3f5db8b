// f-strings, and format() of a string literal: both are text and values in order.
#include "frontend/python_text.h"
#include "frontend/tree_reader.h"

namespace weft::frontend {

TreeReader::Content TreeReader::formatted(nb::handle node) {
    const FieldNames& f = fields();
    FormattedString result;
    for (nb::handle part : nb::borrow<nb::list>(get(node, f.values))) {
        if (node_of(part) != Node::FormattedValue) {
            result.parts.push_back(expression(part));
            continue;
        }
        const auto conversion = get_int(part, f.conversion);  // 'r', 's', 'a' or -1
        std::string format;
        if (nb::object spec = get(part, f.format_spec); !spec.is_none()) {
            for (nb::handle piece : nb::borrow<nb::list>(get(spec, f.values))) {
                if (node_of(piece) != Node::Constant) return Unsupported{"a computed format in an f-string"};
                format += utf8_text(get(piece, f.value));
            }
        }
        result.parts.push_back(expression(get(part, f.value)));
        result.formats.resize(result.parts.size());
        result.formats.back() = std::move(format);
        if (conversion == 'r' || conversion == 'a') result.quoted.insert(result.parts.size() - 1);
    }
    return result;
}

// "{} of {n:3d}".format(x, n=count)
TreeReader::Content TreeReader::formatted_by_call(nb::handle node, const std::string& text, Span at) {
    const FieldNames& f = fields();
    const auto arguments = nb::borrow<nb::list>(get(node, f.args));
    const auto keywords = nb::borrow<nb::list>(get(node, f.keywords));
    const auto find = [&](const std::string& name) -> nb::object {
        if (name.find_first_not_of("0123456789") == std::string::npos) {
            const std::size_t number = name.size() > 6 ? nb::len(arguments) : std::stoul(name);
            return number < nb::len(arguments) ? nb::object(arguments[number]) : nb::object();
        }
        for (nb::handle keyword : keywords) {
            const nb::object given = get(keyword, f.arg);
            if (!given.is_none() && name == nb::borrow<nb::str>(given).c_str()) return get(keyword, f.value);
        }
        return {};
    };
    for (nb::handle argument : arguments)
        if (node_of(argument) == Node::Starred) return Unsupported{"* in a call of format()"};
    FormattedString result;
    std::string literal;
    const auto add_literal = [&] {
        if (!literal.empty()) result.parts.push_back(made(StringLiteral{literal}, at));
        literal.clear();
    };
    std::size_t next = 0;
    bool has_numbers = false;
    for (std::size_t i = 0; i < text.size() && result.problem.empty(); ++i) {
        const char c = text[i];
        const bool is_twice = i + 1 < text.size() && text[i + 1] == c;
        if ((c != '{' && c != '}') || is_twice) {
            literal += c;
            i += c == '{' || c == '}';
            continue;
        }
        const std::size_t end = text.find('}', i);
        const std::string field = text.substr(i + 1, end - i - 1);
        if (c == '}' || end == std::string::npos || field.find('{') != std::string::npos) {
            result.problem = "the format has a brace without a partner; '{{' and '}}' show braces";
            break;
        }
        i = end;
        const std::size_t colon = field.find(':');
        std::string name = field.substr(0, colon);
        if (name.find_first_of("!.[") != std::string::npos) {
            result.problem = "'{" + field +
                             "}' is no field that kernels know: write {}, {0} or {name}, and a format "
                             "of a number behind a colon";
            break;
        }
        const bool is_counted = name.empty();
        if (is_counted) name = std::to_string(next++);
        has_numbers |= !is_counted && name.find_first_not_of("0123456789") == std::string::npos;
        const nb::object argument = find(name);
        if (next > 0 && has_numbers) {
            result.problem = "the format counts some fields by itself, {}, and has the numbers of others";
        } else if (!argument.is_valid()) {
            result.problem = "format() is given no argument " + (is_counted ? std::to_string(next) : "'" + name + "'") +
                             " that '{" + field + "}' asks for";
        } else {
            add_literal();
            result.parts.push_back(expression(argument));
            result.formats.resize(result.parts.size());
            if (colon != std::string::npos) result.formats.back() = field.substr(colon + 1);
        }
    }
    add_literal();
    return result;
}

}  // namespace weft::frontend
