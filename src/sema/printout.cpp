#include "sema/printout.h"

#include <cctype>
#include <functional>

#include "ir/typing.h"
#include "ir/unroll_limit.h"
#include "sema/messages.h"
#include "sema/value_writer.h"

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
void Printout::add_truth(ir::Value* value) {
    format += "%c%c%c%c%.0x";
    const auto letter = [&](std::int64_t if_true, std::int64_t if_false) {
        scalars.push_back(builder_.select(value, builder_.integer(if_true), builder_.integer(if_false)));
    };
    letter('T', 'F');
    letter('r', 'a');
    letter('u', 'l');
    letter('e', 's');
    letter(0, 0xe);
}

// Prints the array's shape and type, as it may have any number of elements: array(shape=(3, 4), dtype=float32).
void Printout::add_array(ir::Value* array, Span place, const std::string& specification) {
    if (!specification.empty())
        fail(place, "the format '" + specification + "' is for numbers, not for " + array->type.python_name(), {},
             ErrorCategory::value);
    format += "array(shape=(";
    const int ndim = array->type.ndim();
    for (int axis = 0; axis < ndim; ++axis) {
        if (axis) format += ", ";
        add_scalar(builder_.dim(array, axis), place, {});
    }
    format += std::string(ndim == 1 ? "," : "") + "), dtype=" + array->type.element().python_name() + ")";
}

void Printout::add_scalar(ir::Value* value, Span place, const std::string& specification) {
    const Type type = value->type;
    if (type.is_bool() && specification.empty()) return add_truth(value);
    const Printed p = printed(type.scalar());
    const Conversion conversion = specification.empty() ? Conversion{std::string("%") + p.length + p.letter, p.wide}
                                                        : python_format(specification, type, place);
    format += conversion.text;
    scalars.push_back(type.scalar() == conversion.wide ? value : builder_.cast(value, conversion.wide));
}

// One operand, with a conversion for each of its components.
void Printout::add_large(ir::Value* value, Span place, const std::string& specification) {
    const Type type = value->type;
    Printout one(builder_);
    one.add_scalar(builder_.zero(type.scalar_type()), place, specification);
    for (int i = 0; i < type.components(); ++i) format += (i ? " " : "") + one.format;
    const Scalar wide = one.scalars[0]->type.scalar();
    scalars.push_back(type.scalar() == wide ? value : builder_.cast(value, wide));
}

void Printout::add(const Value& value, Span place, const std::string& specification) {
    const bool is_text = value.is_binding() || value.is_constant_bool();
    if (is_text && !specification.empty())
        fail(place, "the format '" + specification + "' is for numbers, not for " + describe(value), {},
             ErrorCategory::value);
    const auto add_parts = [&](std::size_t count, const auto& part) {
        for (std::size_t i = 0; i < count; ++i) {
            if (i) format += ' ';
            add(part(i), place, specification);
        }
    };
    if (value.is_binding(Binding::Kind::string)) {
        format += escape_percent(value.binding->text);
    } else if (value.is_binding(Binding::Kind::none)) {
        format += "None";
    } else if (value.is_constant_bool()) {
        format += value.numbers[0].i != 0 ? "True" : "False";
    } else if (value.is_tuple()) {
        add_parts(value.elements.size(), [&](std::size_t i) { return value.elements[i]; });
    } else if (value.type.is_tile()) {
        add_tile(value, place, specification);
    } else {
        ir::Value* whole = values_.materialize(value, place);
        const Type type = whole->type;
        const auto extract = [&](std::vector<std::int64_t> path) {
            return Value::runtime(builder_.extract(whole, std::move(path)));
        };
        if (type.is_scalar()) {
            add_scalar(whole, place, specification);
        } else if (ir::most_components(type) > ir::kMostUnrolled && !type.is_struct() && !type.is_bool()) {
            add_large(whole, place, specification);
        } else if (type.is_numeric_aggregate()) {
            const auto count = static_cast<std::size_t>(type.components());
            add_parts(count,
                      [&](std::size_t i) { return extract(component_path(type, static_cast<std::int64_t>(i))); });
        } else if (type.is_struct()) {
            add_parts(type.fields().size(), [&](std::size_t i) { return extract({static_cast<std::int64_t>(i)}); });
        } else if (type.is_array()) {
            add_array(whole, place, specification);
        } else {
            fail(place, "print() cannot show " + type.python_name(), {help("print elements, or the shape")});
        }
    }
}

// The elements as nested lists, then the type.
void Printout::add_tile(const Value& value, Span place, const std::string& specification) {
    shows_tiles = true;
    constexpr std::int64_t kMostPrinted = 1024;
    const std::vector<std::int64_t>& shape = value.type.shape();
    if (value.type.size() > kMostPrinted) {
        fail(place,
             "print() cannot show " + value.type.python_name() + ", which has more than " +
                 std::to_string(kMostPrinted) + " elements",
             {help("print elements, or a part of it")});
    }
    std::int64_t next = 0;
    const std::function<void(std::size_t)> along = [&](std::size_t axis) {
        if (axis == shape.size()) {
            add(Value::runtime(builder_.extract_at(value.ir, {builder_.integer(next++)})), place, specification);
            return;
        }
        format += '[';
        for (std::int64_t i = 0; i < shape[axis]; ++i) {
            if (i) format += axis + 1 == shape.size() ? " " : ",\n ";
            along(axis + 1);
        }
        format += ']';
    };
    along(0);
    std::string extents;
    for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    format += " = tile(shape=(" + extents + "), storage=" + (value.is_shared ? "shared" : "register") + ")";
}

void Printout::add_printf(const std::vector<Actual>& arguments, Span span) {
    if (arguments.empty() || !arguments[0].value.is_binding(Binding::Kind::string)) {
        fail(span, "wp.printf() needs a format string first", {help("write wp.printf(\"%d %f\\n\", i, x)")});
    }
    const std::string& given = arguments[0].value.binding->text;
    const Span format_span = arguments[0].span;
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
        ir::Value* value = values_.materialize(a.value, a.span);
        const Printed p = printed(type.scalar());
        scalars.push_back(type.scalar() == p.wide ? value : builder_.cast(value, p.wide));
        format += flags + (letter == 'c' ? "" : p.length) + letter;
    }
    if (next < arguments.size()) {
        fail(arguments[next].span, "the format has no conversion for this value", {note("the format", format_span)},
             ErrorCategory::value);
    }
}

}  // namespace weft::sema
