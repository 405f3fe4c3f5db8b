// Matches one call against one signature.
//
// Three rounds over the arguments. First the typed values and the static arguments are unified with their patterns,
// which binds S, F, n, T ... Then variables that only literals mention get a default: float32 if one of the literals is
// a float or the pattern requires one, else int32. Last the literals are checked against their resolved patterns. So
// `max(x, 0)` and `max(0, x)` both take the type of x.
#include <cmath>
#include <limits>

#include "builtins/pattern.h"
#include "support/error.h"

namespace weft::builtins {

namespace {

using Shape = Pattern::Shape;
using Class = ScalarPattern::Class;

bool is_in_class(Scalar scalar, Class cls) {
    const ScalarInfo& row = info(scalar);
    switch (cls) {
        case Class::number:
            return row.is_int() || row.is_float();
        case Class::floating:
            return row.is_float();
        case Class::integer:
            return row.is_int();
        case Class::fixed:
        case Class::named:
            return true;
    }
    return false;
}

bool fits(Number literal, Scalar to) {
    const ScalarInfo& row = info(to);
    if (row.is_float()) {
        const double value = literal.as_double();
        return !std::isfinite(value) || std::isfinite(convert(Number::real(value), Scalar::f64, to).f);
    }
    if (literal.is_float || !row.is_int()) return false;
    if (!row.is_signed()) return literal.i >= 0 && (row.bits == 64 || literal.i < (std::int64_t{1} << row.bits));
    if (row.bits == 64) return true;
    const std::int64_t limit = std::int64_t{1} << (row.bits - 1);
    return literal.i >= -limit && literal.i < limit;
}

std::string literal_text(Number literal) {
    if (!literal.is_float) return "the literal " + std::to_string(literal.i);
    std::string text = std::to_string(literal.f);
    text.erase(std::max(text.find_last_not_of('0'), text.find('.') + 1) + 1);
    return "the literal " + text;
}

// One call being matched: the bindings so far, and the parameter that made each.
class Matcher {
public:
    Matcher(const Entry& entry, std::span<const Argument> arguments)
        : signature_(parsed(entry)), arguments_(arguments) {
        match_.entry = &entry;
    }

    Match run() {
        match_.ok =
            check_count() && bind_typed() && bind_literals() && check_literals() && check_rule() && resolve_result();
        return std::move(match_);
    }

private:
    const Parameter& parameter(std::size_t i) const { return signature_.text.parameters[signature_.parameter_of(i)]; }
    const Pattern& pattern(std::size_t i) const { return signature_.parameters[signature_.parameter_of(i)]; }
    bool is_absent(std::size_t i) const {
        return i >= arguments_.size() || (arguments_[i].type.is_none() && !arguments_[i].is_literal);
    }
    // A Python number that adapts, from the call or from a default.
    std::optional<Number> literal(std::size_t i) const {
        if (is_absent(i)) return default_number(parameter(i));
        if (arguments_[i].is_literal && !arguments_[i].type.is_bool()) return arguments_[i].literal;
        return std::nullopt;
    }

    bool refuse(std::string why) {
        match_.why_not = std::move(why);
        return false;
    }
    std::string argument_name(std::size_t i) const {
        std::string name = parameter(i).name;
        if (parameter(i).is_variadic) {
            name.append("[").append(std::to_string(i + 1 - signature_.parameters.size())).append("]");
        }
        return "argument '" + name + "'";
    }

    bool check_count() {
        const auto& parameters = signature_.text.parameters;
        count_ = std::max(arguments_.size(), parameters.size());
        std::size_t required = 0;
        for (const Parameter& p : parameters) required += p.default_value.empty();
        const bool too_many = arguments_.size() > parameters.size() && !signature_.is_variadic();
        if (too_many || arguments_.size() < required) {
            std::string takes = std::to_string(required);
            if (signature_.is_variadic())
                takes += " or more";
            else if (required < parameters.size())
                takes += " to " + std::to_string(parameters.size());
            return refuse("takes " + takes + (takes == "1" ? " argument" : " arguments") + ", " +
                          std::to_string(arguments_.size()) + " given");
        }
        for (std::size_t i = 0; i < count_; ++i)
            if (is_absent(i) && parameter(i).default_value.empty()) return refuse(argument_name(i) + " is missing");
        if (signature_.is_variadic())
            match_.sizes[parameters.back().name] = static_cast<std::int64_t>(count_ - parameters.size() + 1);
        match_.parameter_types.assign(count_, Type::none());
        return true;
    }

    bool bind_typed() {
        for (std::size_t i = 0; i < count_; ++i) {
            if (parameter(i).is_static) {
                if (!bind_static(i)) return false;
                continue;
            }
            if (literal(i)) continue;
            const Argument& argument = arguments_[i];
            if (argument.is_type)
                return refuse(argument_name(i) + " is the type " + argument.type.python_name() + ", expected a value");
            conflict_.clear();
            binder_ = parameter(i).name;
            if (!unify(pattern(i), argument.type))
                return refuse(argument_name(i) + " is " + argument.type.python_name() + ", expected " +
                              describe(pattern(i)) + as_in());
            match_.parameter_types[i] = argument.type;
            ++match_.agreed;
        }
        return true;
    }

    bool bind_static(std::size_t i) {
        const std::string& name = parameter(i).name;
        if (pattern(i).shape == Shape::static_type) {
            if (is_absent(i)) {
                const auto scalar = scalar_by_python_name(parameter(i).default_value);
                WEFT_CHECK(scalar, "the default of " + argument_name(i) + " must be a scalar type");
                match_.types[name] = Type::scalar(*scalar);
            } else {
                if (!arguments_[i].is_type)
                    return refuse(argument_name(i) + " is a value of type " + arguments_[i].type.python_name() +
                                  ", expected a type");
                match_.types[name] = arguments_[i].type;
            }
        } else {
            Number value;
            if (is_absent(i)) {
                value = Number::integer(std::strtoll(parameter(i).default_value.c_str(), nullptr, 10));
            } else {
                const Argument& argument = arguments_[i];
                const bool is_known = argument.is_literal || argument.is_constant;
                if (argument.is_type || !is_known || argument.literal.is_float || argument.type.is_bool())
                    return refuse(argument_name(i) + " is " +
                                  (argument.is_type          ? "a type"
                                   : !is_known               ? argument.type.python_name() + " known only at run time"
                                   : argument.type.is_bool() ? std::string("bool")
                                                             : literal_text(argument.literal)) +
                                  ", expected an integer known at compile time");
                value = argument.literal;
            }
            if (value.i < 0)
                return refuse(argument_name(i) + " is " + std::to_string(value.i) + ", expected 0 or more");
            match_.sizes[name] = value.i;
        }
        binders_[name] = name;
        return true;
    }

    // Variables that no typed value has bound: one type for all literals that share a variable.
    bool bind_literals() {
        for (std::size_t i = 0; i < count_; ++i) {
            if (parameter(i).is_static || !literal(i)) continue;
            const std::string variable = literal_variable(pattern(i));
            if (variable.empty() || match_.types.count(variable)) continue;
            bool is_float = pattern(i).shape == Shape::scalar && pattern(i).scalar.cls == Class::floating;
            for (std::size_t k = i; k < count_; ++k)
                if (!parameter(k).is_static && literal_variable(pattern(k)) == variable)
                    if (auto other = literal(k)) is_float |= other->is_float;
            if (is_float && pattern(i).shape == Shape::scalar && pattern(i).scalar.cls == Class::integer) {
                if (!literal(i)->is_float) continue;
                return refuse(argument_name(i) + " is " + literal_text(*literal(i)) + ", expected an integer");
            }
            match_.types[variable] = is_float ? f32_type() : i32_type();
            binders_[variable] = parameter(i).name;
        }
        return true;
    }

    bool check_literals() {
        for (std::size_t i = 0; i < count_; ++i) {
            if (parameter(i).is_static) continue;
            const auto value = literal(i);
            if (!value) continue;
            const std::string found = argument_name(i) + " is " + literal_text(*value);
            if (parameter(i).is_inout) return refuse(found + ", expected a variable that the call can assign");
            const Pattern& p = pattern(i);
            Type type;
            if (p.shape == Shape::scalar) {
                type = p.scalar.variable.empty() ? Type::scalar(p.scalar.fixed) : bound(p.scalar.variable);
            } else if (p.shape == Shape::any) {
                type = bound(p.variable);
            }
            conflict_ = literal_variable(p);
            binder_ = parameter(i).name;
            if (!type.is_scalar()) return refuse(found + ", expected " + describe(p) + as_in());
            if (!fits(*value, type.scalar())) {
                const bool wrong_kind = !info(type.scalar()).is_float() && (value->is_float || type.is_bool());
                return refuse(found + (wrong_kind ? ", expected " : ", which does not fit ") + type.python_name() +
                              as_in());
            }
            match_.parameter_types[i] = type;
        }
        return true;
    }

    bool check_rule() {
        if (match_.entry->refuse) match_.why_not = match_.entry->refuse(match_);
        return match_.why_not.empty();
    }

    bool resolve_result() {
        if (auto result = resolve(signature_.result)) {
            match_.result = *result;
            const Type type = *result;
            const bool is_aggregate = type.is_numeric_aggregate();
            if (is_aggregate && std::int64_t{type.rows()} * std::max<std::int64_t>(type.cols(), 1) > kMostComponents)
                return refuse("the result would be " + type.python_name() + ", and vectors and matrices have at most " +
                              std::to_string(kMostComponents) + " components");
            return true;
        }
        // The only pattern that can fail here is a static type that is no scalar.
        for (const auto& [name, type] : match_.types)
            if (!type.is_scalar() && binders_[name] == name)
                return refuse("argument '" + name + "' is the type " + type.python_name() + ", expected a scalar type");
        throw InternalError("the result of builtin " + std::string(match_.entry->name) + match_.entry->signature +
                            " does not follow from its arguments");
    }

    // The variable that gives a literal for this pattern its type.
    static std::string literal_variable(const Pattern& p) {
        return p.shape == Shape::scalar ? p.scalar.variable : p.shape == Shape::any ? p.variable : std::string();
    }

    Type bound(const std::string& variable) const {
        const auto found = match_.types.find(variable);
        return found == match_.types.end() ? Type::none() : found->second;
    }

    // ---- unification. A failure leaves the name of the variable that disagreed, if one did, in conflict_. ----
    bool unify(const Pattern& p, Type type) {
        switch (p.shape) {
            case Shape::scalar:
                return type.is_scalar() && unify(p.scalar, type.scalar());
            case Shape::vector:
                return type.is_vector() && unify_aggregate(p, type, {type.rows()});
            case Shape::matrix:
                return type.is_matrix() && unify_aggregate(p, type, {type.rows(), type.cols()});
            case Shape::quaternion:
                return type.is(Kind::quaternion) && unify(p.scalar, type.scalar());
            case Shape::transform:
                return type.is(Kind::transform) && unify(p.scalar, type.scalar());
            case Shape::structure:
                return type == p.type;
            case Shape::array:
                return type.is_array() && unify(p.sizes[0], type.ndim()) && unify(p.parts[0], type.element());
            case Shape::any:
                return !type.is_none() && !type.is(Kind::string) && bind(p.variable, type);
            case Shape::string:
                return type.is(Kind::string);
            default:
                return false;
        }
    }
    bool unify_aggregate(const Pattern& p, Type type, std::initializer_list<std::int64_t> sizes) {
        std::size_t i = 0;
        for (std::int64_t size : sizes)
            if (!unify(p.sizes[i++], size)) return false;
        return unify(p.scalar, type.scalar());
    }
    bool unify(const ScalarPattern& p, Scalar scalar) {
        if (p.cls == Class::fixed) return scalar == p.fixed;
        return is_in_class(scalar, p.cls) && bind(p.variable, Type::scalar(scalar));
    }
    bool unify(const SizePattern& p, std::int64_t size) {
        if (p.variable.empty()) return size == p.fixed;
        const auto [place, is_new] = match_.sizes.try_emplace(p.variable, size);
        if (is_new)
            binders_[p.variable] = binder_;
        else if (place->second != size)
            conflict_ = p.variable;
        return place->second == size;
    }
    bool bind(const std::string& variable, Type type) {
        const auto [place, is_new] = match_.types.try_emplace(variable, type);
        if (is_new)
            binders_[variable] = binder_;
        else if (place->second != type)
            conflict_ = variable;
        return place->second == type;
    }

    // ---- patterns with the bindings so far ----
    std::optional<Scalar> resolve(const ScalarPattern& p) const {
        if (p.cls == Class::fixed) return p.fixed;
        const Type type = bound(p.variable);
        return type.is_scalar() ? std::optional(type.scalar()) : std::nullopt;
    }
    std::optional<int> resolve(const SizePattern& p) const {
        if (p.variable.empty()) return static_cast<int>(p.fixed);
        const auto found = match_.sizes.find(p.variable);
        return found == match_.sizes.end() ? std::nullopt : std::optional(static_cast<int>(found->second));
    }
    std::optional<Type> resolve(const Pattern& p) const {
        std::vector<int> sizes;
        for (const SizePattern& s : p.sizes) {
            const auto size = resolve(s);
            if (!size) return std::nullopt;
            sizes.push_back(*size);
        }
        std::vector<Type> parts;
        for (const Pattern& part : p.parts) {
            const auto type = resolve(part);
            if (!type) return std::nullopt;
            parts.push_back(*type);
        }
        switch (p.shape) {
            case Shape::none:
                return Type::none();
            case Shape::string:
                return Type::string();
            case Shape::any: {
                const Type type = bound(p.variable);
                return type.is_none() ? std::nullopt : std::optional(type);
            }
            case Shape::tuple:
                return Type::tuple(std::move(parts));
            case Shape::structure:
                return p.type;
            case Shape::array:
                return Type::array(parts[0], sizes[0]);
            case Shape::static_int:
            case Shape::static_type:
                return std::nullopt;
            default:
                break;
        }
        const auto scalar = resolve(p.scalar);
        if (!scalar) return std::nullopt;
        switch (p.shape) {
            case Shape::vector:
                return Type::vector(*scalar, sizes[0]);
            case Shape::matrix:
                return Type::matrix(*scalar, sizes[0], sizes[1]);
            case Shape::quaternion:
                return Type::quaternion(*scalar);
            case Shape::transform:
                return Type::transform(*scalar);
            default:
                return Type::scalar(*scalar);
        }
    }

    // "vec3f", or "a vector of length 3 of floats" if not all of the type is known.
    std::string describe(const Pattern& p) const {
        if (const auto type = resolve(p)) return type->python_name();
        const auto scalar = resolve(p.scalar);
        const std::string of = " of " + (scalar                            ? std::string(info(*scalar).python)
                                         : p.scalar.cls == Class::floating ? "floats"
                                         : p.scalar.cls == Class::integer  ? "integers"
                                                                           : "numbers");
        const auto size = [&](std::size_t i) {
            const auto known = resolve(p.sizes[i]);
            return known ? std::to_string(*known) : p.sizes[i].variable;
        };
        switch (p.shape) {
            case Shape::scalar:
                return p.scalar.cls == Class::floating  ? "a float"
                       : p.scalar.cls == Class::integer ? "an integer"
                                                        : "a number";
            case Shape::vector:
                return "a vector" + (resolve(p.sizes[0]) ? " of length " + size(0) : std::string()) + of;
            case Shape::matrix:
                return "a matrix of shape (" + size(0) + ", " + size(1) + ")" + of;
            case Shape::quaternion:
                return "a quaternion" + of;
            case Shape::transform:
                return "a transform" + of;
            case Shape::array:
                return "an array with " + size(0) + " dimensions, elements " + describe(p.parts[0]);
            default:
                return "a value";
        }
    }
    // " as in 'a'" if another argument had fixed the conflicting variable.
    std::string as_in() const {
        const auto found = binders_.find(conflict_);
        return found == binders_.end() || found->second == binder_ ? "" : " as in '" + found->second + "'";
    }

    const ParsedSignature& signature_;
    std::span<const Argument> arguments_;
    std::size_t count_ = 0;
    Match match_;
    std::map<std::string, std::string> binders_;  // variable -> the parameter that bound it
    std::string binder_;                          // the parameter being unified
    std::string conflict_;
};

}  // namespace

Match match(const Entry& entry, std::span<const Argument> arguments) { return Matcher(entry, arguments).run(); }

}  // namespace weft::builtins
