// The parser of the notation of registry.h.
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "builtins/pattern.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::builtins {

namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// A class letter, perhaps followed by digits: "S", "F2".
bool is_class_variable(std::string_view name, char letter) {
    return name[0] == letter && std::all_of(name.begin() + 1, name.end(),
                                            [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
}

class SignatureReader {
public:
    explicit SignatureReader(std::string_view text) : text_(text) {}

    ParsedSignature read() {
        expect("(");
        if (!accept(")")) {
            do read_parameter();
            while (accept(","));
            expect(")");
        }
        expect("->");
        const std::size_t start = skip_blanks();
        if (accept("(")) {
            out_.result.shape = Pattern::Shape::tuple;
            do out_.result.parts.push_back(read_pattern());
            while (accept(","));
            expect(")");
        } else {
            out_.result = read_pattern();
        }
        out_.text.result = trimmed(text_.substr(start, at_ - start));
        skip_blanks();
        if (at_ != text_.size()) fail("nothing more");
        return std::move(out_);
    }

private:
    void read_parameter() {
        if (out_.is_variadic()) fail("no parameter after the variadic one");
        Parameter parameter;
        parameter.is_variadic = accept("*");
        parameter.name = read_name();
        expect(":");
        Pattern pattern;
        std::size_t start = skip_blanks();
        if (accept_word("static")) {
            parameter.is_static = true;
            start = skip_blanks();
            const std::string kind = read_name();
            if (kind != "int" && kind != "type") fail("'int' or 'type' after 'static'");
            pattern.shape = kind == "int" ? Pattern::Shape::static_int : Pattern::Shape::static_type;
        } else {
            parameter.is_inout = accept_word("inout");
            start = skip_blanks();
            pattern = read_pattern();
            if (pattern.shape == Pattern::Shape::none) fail("a type");
        }
        parameter.pattern = trimmed(text_.substr(start, at_ - start));
        if (accept("=")) {
            start = skip_blanks();
            while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') ++at_;
            parameter.default_value = trimmed(text_.substr(start, at_ - start));
        }
        out_.text.parameters.push_back(std::move(parameter));
        out_.parameters.push_back(std::move(pattern));
    }

    Pattern read_pattern() {
        using Shape = Pattern::Shape;
        Pattern pattern;
        const std::size_t start = skip_blanks();
        const std::string name = read_name();
        if (name == "none" || name == "string") {
            pattern.shape = name == "none" ? Shape::none : Shape::string;
        } else if (is_class_variable(name, 'T') || is_class_variable(name, 'U')) {
            pattern.shape = Shape::any;
            pattern.variable = name;
        } else if (name == "Vec" || name == "Mat") {
            pattern.shape = name == "Vec" ? Shape::vector : Shape::matrix;
            expect("[");
            pattern.sizes.push_back(read_size());
            expect(",");
            if (name == "Mat") {
                pattern.sizes.push_back(read_size());
                expect(",");
            }
            pattern.scalar = read_scalar();
            expect("]");
        } else if (name == "Quat" || name == "Transform") {
            pattern.shape = name == "Quat" ? Shape::quaternion : Shape::transform;
            expect("[");
            pattern.scalar = read_scalar();
            expect("]");
        } else if (name == "Array") {
            pattern.shape = Shape::array;
            expect("[");
            pattern.parts.push_back(read_pattern());
            expect(",");
            pattern.sizes.push_back(read_size());
            expect("]");
        } else if (is_static_type_parameter(name)) {
            pattern.shape = Shape::any;
            pattern.variable = name;
        } else if (const KnownStruct* known = find_known_struct(name)) {
            pattern.shape = Shape::structure;
            pattern.type = known->type();
        } else {
            at_ = start;
            pattern.shape = Shape::scalar;
            pattern.scalar = read_scalar();
        }
        return pattern;
    }

    ScalarPattern read_scalar() {
        using Class = ScalarPattern::Class;
        const std::string name = read_name();
        if (is_class_variable(name, 'S')) return {Class::number, {}, name};
        if (is_class_variable(name, 'F')) return {Class::floating, {}, name};
        if (is_class_variable(name, 'I')) return {Class::integer, {}, name};
        if (name == "B") return {Class::fixed, Scalar::boolean, {}};
        if (auto fixed = scalar_by_python_name(name)) return {Class::fixed, *fixed, {}};
        if (is_static_type_parameter(name)) return {Class::named, {}, name};
        fail("a scalar (S, F, I, B, a scalar type or the name of a static type parameter)");
    }

    SizePattern read_size() {
        skip_blanks();
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
            SizePattern size;
            const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size.fixed);
            if (error != std::errc()) fail("a size");
            at_ = static_cast<std::size_t>(end - text_.data());
            return size;
        }
        return {0, read_name()};
    }

    bool is_static_type_parameter(std::string_view name) const {
        for (std::size_t i = 0; i < out_.parameters.size(); ++i)
            if (out_.parameters[i].shape == Pattern::Shape::static_type && out_.text.parameters[i].name == name)
                return true;
        return false;
    }

    std::string read_name() {
        const std::size_t start = skip_blanks();
        while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
        if (at_ == start) fail("a name");
        return std::string(text_.substr(start, at_ - start));
    }

    std::size_t skip_blanks() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        return at_;
    }

    bool accept(std::string_view token) {
        skip_blanks();
        if (text_.substr(at_, token.size()) != token) return false;
        at_ += token.size();
        return true;
    }

    bool accept_word(std::string_view word) {
        skip_blanks();
        const std::size_t end = at_ + word.size();
        if (text_.substr(at_, word.size()) != word || (end < text_.size() && is_name_character(text_[end])))
            return false;
        at_ = end;
        return true;
    }

    void expect(std::string_view token) {
        if (!accept(token)) fail("'" + std::string(token) + "'");
    }

    [[noreturn]] void fail(const std::string& expected) const {
        throw InternalError("builtin signature \"" + std::string(text_) + "\", column " + std::to_string(at_ + 1) +
                            ": expected " + expected);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    ParsedSignature out_;
};

}  // namespace

std::optional<Scalar> scalar_by_python_name(std::string_view name) {
    for (const ScalarInfo& scalar : all_scalars())
        if (name == scalar.python) return scalar.id;
    return std::nullopt;
}

ParsedSignature parse_signature(std::string_view text) { return SignatureReader(text).read(); }

// Parsing depends on the text alone, and texts are literals, so the address of the text is the key. Nodes of the map do
// not move, so a reference outlives the lock. A second thread that parsed the same text drops its copy.
const ParsedSignature& parsed(const Entry& entry) {
    static std::shared_mutex mutex;
    static std::unordered_map<const char*, ParsedSignature> cache;
    {
        std::shared_lock lock(mutex);
        if (auto found = cache.find(entry.signature); found != cache.end()) return found->second;
    }
    ParsedSignature fresh = parse_signature(entry.signature);
    std::unique_lock lock(mutex);
    return cache.try_emplace(entry.signature, std::move(fresh)).first->second;
}

const Signature& signature(const Entry& entry) { return parsed(entry).text; }

std::optional<Number> default_number(const Parameter& parameter) {
    const std::string& text = parameter.default_value;
    if (text.empty() || parameter.is_static) return std::nullopt;
    const bool is_float = text.find_first_of(".en") != std::string::npos;
    return is_float ? Number::real(std::strtod(text.c_str(), nullptr))
                    : Number::integer(std::strtoll(text.c_str(), nullptr, 10));
}

}  // namespace weft::builtins
