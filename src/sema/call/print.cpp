// print(a, b, ...) and wp.printf(format, ...): both become one `print` operation with a printf format, whose operands
// are scalars of a few wide types.
//
//   print("speed", v, n)   →   print "speed %g %g %g %d\n", v.x, v.y, v.z, n
#include <cctype>
#include <utility>

#include "ir/typing.h"
#include "ir/unroll_limit.h"
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

std::string escape_percent(const std::string& text) {
    std::string result;
    for (const char c : text) {
        result += c;
        if (c == '%') result += c;
    }
    return result;
}

// Writes True or False as letters, since the operands of a print are numbers. The last letter of False is the
// hexadecimal digit e; "%.0x" omits it if the number is 0.
void FunctionAnalyzer::add_truth(Printout& to, ir::Value* value) {
    to.format += "%c%c%c%c%.0x";
    const auto letter = [&](std::int64_t if_true, std::int64_t if_false) {
        to.scalars.push_back(builder_.select(value, builder_.integer(if_true), builder_.integer(if_false)));
    };
    letter('T', 'F');
    letter('r', 'a');
    letter('u', 'l');
    letter('e', 's');
    letter(0, 0xe);
}

// Prints the array's shape and type, as it may have any number of elements: array(shape=(3, 4), dtype=float32).
void FunctionAnalyzer::add_array(Printout& to, ir::Value* array, Span place, const std::string& format) {
    if (!format.empty())
        fail(place, "the format '" + format + "' is for numbers, not for " + array->type.python_name(), {},
             ErrorCategory::value);
    to.format += "array(shape=(";
    const int ndim = array->type.ndim();
    for (int axis = 0; axis < ndim; ++axis) {
        if (axis) to.format += ", ";
        add_scalar(to, builder_.dim(array, axis), place, {});
    }
    to.format += std::string(ndim == 1 ? "," : "") + "), dtype=" + array->type.element().python_name() + ")";
}

void FunctionAnalyzer::add_scalar(Printout& to, ir::Value* value, Span place, const std::string& format) {
    const Type type = value->type;
    if (type.is_bool() && format.empty()) return add_truth(to, value);
    const Printed p = printed(type.scalar());
    const Conversion conversion = format.empty() ? Conversion{std::string("%") + p.length + p.letter, p.wide}
                                                 : python_format(format, type, place);
    to.format += conversion.text;
    to.scalars.push_back(type.scalar() == conversion.wide ? value : builder_.cast(value, conversion.wide));
}

// One operand, with a conversion for each of its components.
void FunctionAnalyzer::add_large(Printout& to, ir::Value* value, Span place, const std::string& format) {
    const Type type = value->type;
    Printout one;
    add_scalar(one, builder_.zero(type.scalar_type()), place, format);
    for (int i = 0; i < type.components(); ++i) to.format += (i ? " " : "") + one.format;
    const Scalar wide = one.scalars[0]->type.scalar();
    to.scalars.push_back(type.scalar() == wide ? value : builder_.cast(value, wide));
}

// `format` is the specification after the colon of an f-string: f"{x:.3f}".
void FunctionAnalyzer::add_printed(Printout& to, const Value& value, Span place, const std::string& format) {
    const bool is_text = value.is_binding() || value.is_constant_bool();
    if (is_text && !format.empty())
        fail(place, "the format '" + format + "' is for numbers, not for " + describe(value), {}, ErrorCategory::value);
    const auto add_parts = [&](std::size_t count, const auto& part) {
        for (std::size_t i = 0; i < count; ++i) {
            if (i) to.format += ' ';
            add_printed(to, part(i), place, format);
        }
    };
    if (value.is_binding(Binding::Kind::string)) {
        to.format += escape_percent(value.binding->text);
    } else if (value.is_binding(Binding::Kind::none)) {
        to.format += "None";
    } else if (value.is_constant_bool()) {
        to.format += value.numbers[0].i != 0 ? "True" : "False";
    } else if (value.is_tuple()) {
        add_parts(value.elements.size(), [&](std::size_t i) { return value.elements[i]; });
    } else {
        ir::Value* whole = materialize(value, place);
        const Type type = whole->type;
        const auto extract = [&](std::vector<std::int64_t> path) {
            return Value::runtime(builder_.extract(whole, std::move(path)));
        };
        if (type.is_scalar()) {
            add_scalar(to, whole, place, format);
        } else if (ir::most_components(type) > ir::kMostUnrolled && !type.is_struct() && !type.is_bool()) {
            add_large(to, whole, place, format);
        } else if (type.is_numeric_aggregate()) {
            const auto count = static_cast<std::size_t>(type.components());
            add_parts(count,
                      [&](std::size_t i) { return extract(component_path(type, static_cast<std::int64_t>(i))); });
        } else if (type.is_struct()) {
            add_parts(type.fields().size(), [&](std::size_t i) { return extract({static_cast<std::int64_t>(i)}); });
        } else if (type.is_array()) {
            add_array(to, whole, place, format);
        } else {
            fail(place, "print() cannot show " + type.python_name(), {help("print elements, or the shape")});
        }
    }
}

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
            add_printed(to, value, text->parts[i]->span, format);
        }
    } else if (const auto* starred = std::get_if<syntax::Starred>(&e.node)) {
        bool is_first = true;
        for (const Value& value : starred_values(*starred)) {
            if (!std::exchange(is_first, false)) to.format += separator;
            add_printed(to, value, e.span, {});
        }
    } else {
        add_printed(to, expression(e), e.span, {});
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
    Printout text;
    bool is_first = true;
    for (const auto& argument : call.arguments) {
        if (!std::exchange(is_first, false)) text.format += separator;
        add_printed(text, *argument, separator);
    }
    builder_.span = span;
    builder_.print(text.format + end, std::move(text.scalars));
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
        // Flags, width and precision are kept; the length modifier follows from the argument.
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
