// print(a, b, ...) and wp.printf(format, ...): both become one `print` operation with a printf format, whose operands
// are scalars of a few wide types.
//
//   print("speed", v, n)   →   print "speed %g %g %g %d\n", v.x, v.y, v.z, n
#include <cctype>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// How a scalar is passed to printf: the type it is widened to and its conversion.
struct Printed {
    Scalar wide;
    const char* length;  // the length modifier of the integer conversions
    char letter;
};

Printed printed(Scalar scalar) {
    const ScalarInfo& s = info(scalar);
    if (s.is_float()) return {Scalar::f64, "", 'g'};
    if (s.bits < 32 || scalar == Scalar::i32) return {Scalar::i32, "", 'd'};
    if (scalar == Scalar::u32) return {Scalar::u32, "", 'u'};
    return {scalar, "ll", s.is_signed() ? 'd' : 'u'};
}

// Python's format of a number, as far as printf has it: [<>][+ ][#][0][width][.precision][dxXobeEfFgG]
struct Conversion {
    std::string text;
    Scalar wide;
};

Conversion python_format(const std::string& given, Type type, Span place) {
    const auto refuse = [&](const std::string& why) {
        fail(place, "the format '" + given + "' " + why,
             {help("formats are [<>][+][0][width][.precision] and one of d, x, X, o for integers, e, f, g for floats")},
             ErrorCategory::value);
    };
    std::size_t i = 0;
    const auto peek = [&] { return i < given.size() ? given[i] : '\0'; };
    std::string flags, digits;
    if (peek() == '<') flags += '-';
    if (peek() == '<' || peek() == '>') ++i;
    if (peek() == '+' || peek() == ' ') flags += given[i++];
    if (peek() == '-') ++i;  // Python's default
    if (peek() == '#') flags += given[i++];
    if (peek() == '0') flags += given[i++];
    while (std::isdigit(static_cast<unsigned char>(peek()))) digits += given[i++];
    const bool has_precision = peek() == '.';
    if (has_precision) {
        digits += given[i++];
        if (!std::isdigit(static_cast<unsigned char>(peek()))) refuse("has a point without a precision");
        while (std::isdigit(static_cast<unsigned char>(peek()))) digits += given[i++];
    }
    if (digits.size() > 6) refuse("is too wide");
    char letter = peek();
    if (letter) ++i;
    if (i < given.size()) refuse("is not one that kernels know");
    const bool is_float = type.is_float();
    if (!letter) letter = is_float || has_precision ? 'g' : 'd';
    if (std::string("eEfFgG").find(letter) != std::string::npos) {
        return {"%" + flags + digits + letter, Scalar::f64};
    }
    if (std::string("dxXo").find(letter) == std::string::npos) refuse("is not one that kernels know");
    if (is_float) refuse("is for integers, and this is " + type.python_name());
    if (has_precision) refuse("has a precision, which integers do not take");
    const Printed p = printed(type.scalar());
    // Python writes the sign before hexadecimal digits; printf would show two's complement.
    if (letter != 'd' && p.letter == 'd') refuse("needs an unsigned integer: convert with wp.uint32(...)");
    return {"%" + flags + digits + p.length + (letter == 'd' ? p.letter : letter), p.wide};
}

std::string escape_percent(const std::string& text) {
    std::string result;
    for (const char c : text) {
        result += c;
        if (c == '%') result += c;
    }
    return result;
}

}  // namespace

Value FunctionAnalyzer::call_print(const syntax::Call& call, Span span) {
    std::string format;
    std::vector<ir::Value*> scalars;
    std::string given;  // the format of an f-string's part
    const auto add_scalar = [&](ir::Value* value, Span place) {
        if (!given.empty()) {
            const Conversion conversion = python_format(given, value->type, place);
            format += conversion.text;
            scalars.push_back(value->type.scalar() == conversion.wide ? value : builder_.cast(value, conversion.wide));
            return;
        }
        const Printed p = printed(value->type.scalar());
        format += std::string("%") + p.length + p.letter;
        scalars.push_back(value->type.scalar() == p.wide ? value : builder_.cast(value, p.wide));
    };
    const std::function<void(ir::Value*, Span)> add_value = [&](ir::Value* value, Span place) {
        const Type type = value->type;
        if (type.is_scalar()) return add_scalar(value, place);
        std::vector<std::vector<std::int64_t>> paths;
        if (type.is_numeric_aggregate()) {
            for (std::int64_t row = 0; row < type.rows(); ++row) {
                for (std::int64_t col = 0; col < type.cols(); ++col) {
                    paths.push_back(type.is_matrix() ? std::vector<std::int64_t>{row, col}
                                                     : std::vector<std::int64_t>{row});
                }
            }
        } else if (type.is_struct()) {
            for (std::size_t field = 0; field < type.fields().size(); ++field)
                paths.push_back({static_cast<std::int64_t>(field)});
        } else {
            fail(place, "print() cannot show " + type.python_name(), {help("print elements, or the shape")});
        }
        for (std::size_t i = 0; i < paths.size(); ++i) {
            if (i) format += ' ';
            add_value(builder_.extract(value, paths[i]), place);
        }
    };
    const std::function<void(const Value&, Span)> add = [&](const Value& value, Span place) {
        const bool is_text = value.is_binding() || value.is_constant_bool();
        if (is_text && !given.empty()) {
            fail(place, "the format '" + given + "' is for numbers, not for " + describe(value), {},
                 ErrorCategory::value);
        }
        if (value.is_binding(Binding::Kind::string)) {
            format += escape_percent(value.binding->text);
        } else if (value.is_binding(Binding::Kind::none)) {
            format += "None";
        } else if (value.is_constant_bool()) {
            format += value.numbers[0].i != 0 ? "True" : "False";
        } else if (value.is_tuple()) {
            for (std::size_t i = 0; i < value.elements.size(); ++i) {
                if (i) format += ' ';
                add(value.elements[i], place);
            }
        } else {
            add_value(materialize(value, place), place);
        }
    };
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
    bool is_first = true;
    for (const auto& argument : call.arguments) {
        if (!is_first) format += separator;
        is_first = false;
        const auto* text = std::get_if<syntax::FormattedString>(&argument->node);
        if (!text && std::holds_alternative<syntax::Starred>(argument->node)) {
            const std::vector<Value> values = starred_values(std::get<syntax::Starred>(argument->node));
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (i) format += separator;
                add(values[i], argument->span);
            }
        } else if (!text) {
            add(expression(*argument), argument->span);
        } else {
            for (std::size_t i = 0; i < text->parts.size(); ++i) {
                given = i < text->formats.size() ? text->formats[i] : "";
                add(expression(*text->parts[i]), text->parts[i]->span);
                given.clear();
            }
        }
    }
    builder_.span = span;
    builder_.print(format + end, scalars);
    return {};
}

Value FunctionAnalyzer::call_printf(const std::vector<Actual>& arguments, Span span) {
    if (arguments.empty() || !arguments[0].value.is_binding(Binding::Kind::string)) {
        fail(span, "wp.printf() needs a format string first", {help("write wp.printf(\"%d %f\\n\", i, x)")});
    }
    const std::string& given = arguments[0].value.binding->text;
    const Span format_span = arguments[0].span;
    std::string format;
    std::vector<ir::Value*> scalars;
    std::size_t next = 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        format += given[i];
        if (given[i] != '%') continue;
        if (i + 1 < given.size() && given[i + 1] == '%') {
            format += given[++i];
            continue;
        }
        // Flags, width and precision are taken over, the length modifier follows from the argument.
        std::string flags;
        for (++i; i < given.size() && (std::isdigit(static_cast<unsigned char>(given[i])) ||
                                       std::string("-+ #0.").find(given[i]) != std::string::npos);
             ++i) {
            flags += given[i];
        }
        while (i < given.size() && std::string("hlzjt").find(given[i]) != std::string::npos) ++i;
        const char letter = i < given.size() ? given[i] : '\0';
        const bool is_printable = std::isprint(static_cast<unsigned char>(letter));
        const std::string conversion = "%" + flags + (is_printable ? std::string(1, letter) : "");
        if (!letter || std::string("diuxXocfFeEgGs").find(letter) == std::string::npos) {
            fail(format_span, "'" + conversion + "' is no conversion of wp.printf()",
                 {help(
                     "use %d, %u or %x for integers, %f, %g or %e for floats, %s for strings, %% for the sign itself")},
                 ErrorCategory::value);
        }
        if (next >= arguments.size()) {
            fail(format_span,
                 "the format asks for more values than the " + std::to_string(arguments.size() - 1) + " given", {},
                 ErrorCategory::value);
        }
        const Actual& a = arguments[next++];
        const bool wants_float = std::string("fFeEgG").find(letter) != std::string::npos;
        if (letter == 's') {
            if (!a.value.is_binding(Binding::Kind::string)) {
                fail(a.span, "'" + conversion + "' needs a string known at compile time, not " + describe(a.value));
            }
            if (!flags.empty()) fail(format_span, "'" + conversion + "' cannot have a width", {help("write %s")});
            format.pop_back();
            format += escape_percent(a.value.binding->text);
            continue;
        }
        const Type type = type_of(a.value);
        if (!type.is_scalar() || type.is_float() != wants_float) {
            fail(
                a.span,
                "'" + conversion + "' needs " + (wants_float ? "a float" : "an integer") + ", not " + describe(a.value),
                {note("the format", format_span),
                 help(type.is_numeric_aggregate() ? "give the components one by one, or use print()"
                      : wants_float               ? "write %d, or convert with float(...)"
                                                  : "write %g, or convert with int(...)")});
        }
        ir::Value* value = materialize(a.value, a.span);
        const Printed p = printed(type.scalar());
        scalars.push_back(type.scalar() == p.wide ? value : builder_.cast(value, p.wide));
        format += flags + (letter == 'c' ? "" : p.length) + letter;
    }
    if (next < arguments.size()) {
        fail(arguments[next].span, "the format has no conversion for this value", {note("the format", format_span)},
             ErrorCategory::value);
    }
    builder_.span = span;
    builder_.print(format, scalars);
    return {};
}

}  // namespace weft::sema
