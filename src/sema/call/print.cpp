// print(a, b, ...) and wp.printf(format, ...): both become one `print` operation with a printf format, whose operands
// are scalars of a few wide types.
//
//   print("speed", v, n)   →   print "speed %g %g %g %d\n", v.x, v.y, v.z, n
#include <utility>

#include "sema/analyzer.h"
#include "sema/printout.h"

namespace weft::sema {

namespace {

// repr() of a string.
std::string in_quotes(const std::string& text) {
    const char mark = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
    std::string result(1, mark);
    for (const char c : text) {
        if (c == '\n' || c == '\t' || c == '\r') {
            result += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
            continue;
        }
        if (c == '\\' || c == mark) result += '\\';
        result += c;
    }
    return result + mark;
}

}  // namespace

void FunctionAnalyzer::add_printed(Printout& to, const syntax::Expression& e, const std::string& separator) {
    if (const auto* text = std::get_if<syntax::FormattedString>(&e.node)) {
        if (!text->problem.empty()) fail(e.span, text->problem, {}, ErrorCategory::value);
        for (std::size_t i = 0; i < text->parts.size(); ++i) {
            const std::string format = i < text->formats.size() ? text->formats[i] : "";
            Value value = expression(*text->parts[i]);
            if (text->quoted.contains(i) && value.is_binding(Binding::Kind::string)) {
                Binding quoted = *value.binding;
                quoted.text = in_quotes(quoted.text);
                value = Value::of_binding(std::move(quoted));
            }
            to.add(value, text->parts[i]->span, format);
        }
    } else if (const auto* starred = std::get_if<syntax::Starred>(&e.node)) {
        bool is_first = true;
        for (const Value& value : starred_values(*starred)) {
            if (!std::exchange(is_first, false)) to.format += separator;
            to.add(value, e.span, {});
        }
    } else {
        to.add(expression(e), e.span, {});
    }
}

Value FunctionAnalyzer::call_print(const syntax::Call& call, Span span) {
    std::string separator = " ", end = "\n";
    for (const syntax::Keyword& keyword : call.keywords) {
        if (keyword.name != "sep" && keyword.name != "end") {
            fail(keyword.value->span, "print() has no '" + keyword.name + "' in kernels", {help("it has sep and end")});
        }
        const Value text = expression(*keyword.value);
        if (!text.is_binding(Binding::Kind::string)) {
            fail(keyword.value->span,
                 keyword.name + " of print() must be a string known at compile time, not " + describe(text));
        }
        (keyword.name == "sep" ? separator : end) = escape_percent(text.binding->text);
    }
    Printout text(builder_);
    bool is_first = true;
    for (const auto& argument : call.arguments) {
        if (!std::exchange(is_first, false)) text.format += separator;
        add_printed(text, *argument, separator);
    }
    builder_.span = span;
    if (!text.shows_tiles || lanes() == 1) {
        builder_.print(text.format + end, std::move(text.scalars));
        return {};
    }
    // A tile is the block's: its first lane prints.
    ir::Operation* const first =
        builder_.if_(builder_.compare(ir::Op::cmp_eq, builder_.lane(), builder_.integer(0)), {});
    {
        ir::Builder::Inside then(builder_, first->body(0));
        builder_.print(text.format + end, std::move(text.scalars));
        builder_.yield({});
    }
    ir::Builder::Inside otherwise(builder_, first->body(1));
    builder_.yield({});
    return {};
}

Value FunctionAnalyzer::call_printf(const std::vector<Actual>& arguments, Span span) {
    Printout text(builder_);
    text.add_printf(arguments, span);
    builder_.span = span;
    builder_.print(std::move(text.format), std::move(text.scalars));
    return {};
}

}  // namespace weft::sema
