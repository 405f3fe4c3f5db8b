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
    const auto add_scalar = [&](ir::Value* value) {
        const Printed p = printed(value->type.scalar());
        format += std::string("%") + p.length + p.letter;
        scalars.push_back(value->type.scalar() == p.wide ? value : builder_.cast(value, p.wide));
    };
    const std::function<void(ir::Value*, Span)> add_value = [&](ir::Value* value, Span place) {
        const Type type = value->type;
        if (type.is_scalar()) return add_scalar(value);
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
    if (!call.keywords.empty()) {
        fail(call.keywords[0].value->span, "print() takes no '" + call.keywords[0].name + "' in kernels",
             {help("use wp.printf()")});
    }
    bool is_first = true;
    for (const auto& argument : call.arguments) {
        if (!is_first) format += ' ';
        is_first = false;
        if (const auto* text = std::get_if<syntax::FormattedString>(&argument->node)) {
            for (const auto& part : text->parts) add(expression(*part), part->span);
        } else {
            add(expression(*argument), argument->span);
        }
    }
    builder_.span = span;
    builder_.print(format + "\n", scalars);
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
