#include "sema/constructors.h"

#include "sema/expected_types.h"
#include "sema/literals.h"
#include "sema/messages.h"
#include "sema/parts.h"

namespace weft::sema {

namespace {

void refuse_keywords(const std::vector<Actual>& arguments, const std::string& name) {
    for (const Actual& a : arguments) {
        if (!a.keyword.empty()) fail(a.span, name + "() has no parameter '" + a.keyword + "'");
    }
}

// mat32(c, shape=(3, 2)), quat(x, y, z, w, dtype=float): keywords that repeat the type.
bool repeats_type(Type type, const Actual& a) {
    if (a.keyword == "dtype")
        return a.value.is_binding(Binding::Kind::type) && a.value.binding->type == type.scalar_type();
    std::vector<std::int64_t> sizes;
    if (a.keyword == "length" && type.is_vector()) sizes = {type.rows()};
    if (a.keyword == "shape" && type.is_matrix()) sizes = {type.rows(), type.cols()};
    const std::vector<Value> given = a.value.is_tuple() ? a.value.elements : std::vector<Value>{a.value};
    if (sizes.empty() || given.size() != sizes.size()) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (!given[i].is_constant_integer() || given[i].numbers[0].i != sizes[i]) return false;
    return true;
}

bool same_shape(Type a, Type b) { return a.kind() == b.kind() && a.rows() == b.rows() && a.cols() == b.cols(); }

}  // namespace

Value Constructors::construct(Type type, const std::vector<Actual>& arguments, Span span) {
    const std::string name = type.python_name();
    if (type.is_scalar()) {
        refuse_keywords(arguments, name);
        if (arguments.empty())
            return Value::constant(type, {info(type.scalar()).is_float() ? Number::real(0.0) : Number::integer(0)});
        if (arguments.size() > 1) {
            fail(span, name + "() takes one value, got " + std::to_string(arguments.size()));
        }
        return convert_scalar(type, arguments[0].value, arguments[0].span);
    }
    if (type.is(Kind::transform)) return construct_transform(type, arguments, span);
    if (type.is_numeric_aggregate()) return construct_aggregate(type, arguments, span);
    if (type.is_struct()) return construct_struct(type, arguments);
    fail(span, name + " cannot be constructed in kernels", {help("pass arrays as arguments of the kernel")});
}

Value Constructors::convert_scalar(Type type, const Value& value, Span span) {
    const std::string name = type.python_name();
    if (!type_of(value).is_scalar()) {
        fail(span, name + "() converts from a scalar, not from " + describe(value),
             {help("components convert one by one; a vector by the constructor of its vector type")});
    }
    if (type.is_bool()) {
        if (const std::optional<bool> known = constant_truth(value)) return Value::boolean(*known);
        return Value::runtime(values_.truth(value, span));
    }
    if (value.is_constant()) {
        // An explicit conversion wraps, as that of a value does: wp.uint8(300) is 44.
        const Number n = value.numbers[0];
        const Scalar from = value.is_literal ? (n.is_float ? Scalar::f64 : Scalar::i64) : value.type.scalar();
        return Value::constant(type, {convert(n, from, type.scalar())});
    }
    if (value.type == type) return value;
    return Value::runtime(builder_.cast(values_.materialize(value, span), type.scalar()));
}

Value Constructors::construct_aggregate(Type type, const std::vector<Actual>& given, Span span) {
    const std::string name = type.python_name();
    // A tuple gives its elements.
    std::vector<Actual> arguments;
    for (const Actual& a : given) {
        if (repeats_type(type, a)) continue;
        refuse_keywords({a}, name);
        if (!a.value.is_tuple()) {
            arguments.push_back(a);
            continue;
        }
        for (const Value& element : a.value.elements) arguments.push_back(Actual{element, a.span});
    }
    if (arguments.empty()) return Value::runtime(builder_.zero(type));
    const Type scalar = type.scalar_type();
    const auto component = [&](const Actual& a, const std::string& what) {
        return values_.materialize(expect(a.value, scalar, a.span, what), a.span);
    };
    if (arguments.size() == 1) {
        const Value& only = arguments[0].value;
        const Type from = type_of(only);
        if (from.is_numeric_aggregate() && same_shape(from, type)) {
            if (from == type) return only;
            return Value::runtime(builder_.cast(values_.materialize(only, arguments[0].span), type.scalar()));
        }
        if (from.is_scalar() && !type.is(Kind::quaternion)) {
            return Value::runtime(builder_.splat(type, component(arguments[0], "the value of " + name)));
        }
    }
    // A spatial vector from its angular and its linear part.
    if (type.is_vector() && type.rows() == 6 && arguments.size() == 2) {
        const Type half = Type::vector(type.scalar(), 3);
        if (type_of(arguments[0].value) == half && type_of(arguments[1].value) == half) {
            std::vector<ir::Value*> parts;
            for (const Actual& a : arguments) {
                ir::Value* vector = values_.materialize(a.value, a.span);
                for (std::int64_t i = 0; i < 3; ++i) parts.push_back(builder_.extract(vector, {i}));
            }
            return Value::runtime(builder_.make(type, parts));
        }
    }
    // A quaternion from its vector part and its real part.
    if (type.is(Kind::quaternion) && arguments.size() == 2 &&
        type_of(arguments[0].value) == Type::vector(type.scalar(), 3)) {
        ir::Value* v = values_.materialize(arguments[0].value, arguments[0].span);
        std::vector<ir::Value*> parts = {builder_.extract(v, {0}), builder_.extract(v, {1}), builder_.extract(v, {2}),
                                         component(arguments[1], "the real part of " + name)};
        return Value::runtime(builder_.make(type, parts));
    }
    if (static_cast<int>(arguments.size()) != type.components()) {
        std::string takes = "nothing, ";
        if (!type.is(Kind::quaternion)) takes += "one value for all components, ";
        takes += std::to_string(type.components()) + " components, or another " +
                 (type.is_matrix()   ? "matrix"
                  : type.is_vector() ? "vector"
                                     : "quaternion") +
                 " of this shape";
        std::string found;
        for (const Actual& a : arguments) found += (found.empty() ? "" : ", ") + describe(a.value);
        fail(span, name + "() takes " + takes + "; got (" + found + ")");
    }
    std::vector<ir::Value*> parts;
    bool is_constant = true;
    std::vector<Number> numbers;
    std::vector<Value> values;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        values.push_back(
            expect(arguments[i].value, scalar, arguments[i].span, "component " + std::to_string(i) + " of " + name));
        is_constant &= values.back().is_constant();
        if (is_constant) numbers.push_back(values.back().numbers[0]);
    }
    if (is_constant) return Value::constant(type, std::move(numbers));
    for (std::size_t i = 0; i < values.size(); ++i) parts.push_back(values_.materialize(values[i], arguments[i].span));
    return Value::runtime(builder_.make(type, parts));
}

Value Constructors::construct_transform(Type type, const std::vector<Actual>& arguments, Span span) {
    const std::string name = type.python_name();
    const Scalar scalar = type.scalar();
    const Type position = Type::vector(scalar, 3), rotation = Type::quaternion(scalar);
    const Actual *p = nullptr, *q = nullptr;
    std::vector<const Actual*> positional;
    for (const Actual& a : arguments) {
        if (a.keyword == "p")
            p = &a;
        else if (a.keyword == "q")
            q = &a;
        else if (repeats_type(type, a))
            continue;
        else if (!a.keyword.empty())
            fail(a.span, name + "() has no parameter '" + a.keyword + "'", {help("it has p and q")});
        else
            positional.push_back(&a);
    }
    if (positional.size() == 1 && type_of(positional[0]->value).is(Kind::transform)) {
        if (type_of(positional[0]->value) == type) return positional[0]->value;
        return Value::runtime(builder_.cast(values_.materialize(positional[0]->value, positional[0]->span), scalar));
    }
    if (positional.size() == 1 && !p && !q && type_of(positional[0]->value).is_scalar()) {
        const Actual& a = *positional[0];
        return Value::runtime(builder_.splat(
            type, values_.materialize(expect(a.value, type.scalar_type(), a.span, "the value of " + name), a.span)));
    }
    if (positional.size() == 7 && !p && !q) {
        std::vector<ir::Value*> parts;
        for (const Actual* a : positional) {
            parts.push_back(
                values_.materialize(expect(a->value, type.scalar_type(), a->span, "a component of " + name), a->span));
        }
        return Value::runtime(builder_.make(type, parts));
    }
    if (positional.size() > 2 || (positional.size() > 0 && p) || (positional.size() > 1 && q)) {
        fail(span, name + "() takes a position p and a rotation q, or seven components; got " +
                       std::to_string(arguments.size()) + " arguments");
    }
    if (positional.size() > 0) p = positional[0];
    if (positional.size() > 1) q = positional[1];
    ir::Value* p_value =
        p ? values_.materialize(expect(p->value, position, p->span, "p of " + name), p->span) : builder_.zero(position);
    // Without a rotation: the identity if a position is given, else zeros, as every type's empty constructor gives.
    ir::Value* q_value = nullptr;
    if (q)
        q_value = values_.materialize(expect(q->value, rotation, q->span, "q of " + name), q->span);
    else if (p)
        q_value = builder_.constant(rotation, {Number::real(0), Number::real(0), Number::real(0), Number::real(1)});
    else
        q_value = builder_.zero(rotation);
    std::vector<ir::Value*> parts;
    for (std::int64_t i = 0; i < 3; ++i) parts.push_back(builder_.extract(p_value, {i}));
    for (std::int64_t i = 0; i < 4; ++i) parts.push_back(builder_.extract(q_value, {i}));
    return Value::runtime(builder_.make(type, parts));
}

// The value of a field without an argument. An array is null, as for None.
ir::Value* Constructors::default_of(const Type::Field& field) {
    if (!field.default_value.empty()) return builder_.constant(field.type, field.default_value);
    if (!field.type.is_struct()) return builder_.zero(field.type);
    std::vector<ir::Value*> parts;
    for (const Type::Field& part : field.type.fields()) parts.push_back(default_of(part));
    return builder_.make(field.type, parts);
}

Value Constructors::construct_struct(Type type, const std::vector<Actual>& arguments) {
    const std::string& name = type.struct_name();
    const auto& fields = type.fields();
    std::vector<const Actual*> by_field(fields.size(), nullptr);
    std::size_t next = 0;
    for (const Actual& a : arguments) {
        std::size_t field = next;
        if (!a.keyword.empty()) {
            const std::optional<int> found = type.field_index(a.keyword);
            if (!found) {
                fail(a.span, name + " has no field '" + a.keyword + "'",
                     did_you_mean(a.keyword, attribute_candidates(type)), ErrorCategory::attribute);
            }
            field = static_cast<std::size_t>(*found);
        } else if (next++ >= fields.size()) {
            fail(a.span, name + " has " + std::to_string(fields.size()) + " fields, got more arguments");
        }
        if (by_field[field]) fail(a.span, "field '" + fields[field].name + "' of " + name + " is given twice");
        by_field[field] = &a;
    }
    return struct_of(type, by_field);
}

// The struct with these fields, and the defaults of the others.
Value Constructors::struct_of(Type type, const std::vector<const Actual*>& by_field) {
    const auto& fields = type.fields();
    std::vector<ir::Value*> parts;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (by_field[i]) {
            const Value value = expect(by_field[i]->value, fields[i].type, by_field[i]->span,
                                       "field '" + fields[i].name + "' of " + type.struct_name());
            parts.push_back(values_.materialize(value, by_field[i]->span));
        } else {
            parts.push_back(default_of(fields[i]));
        }
    }
    return Value::runtime(builder_.make(type, parts));
}

namespace {

// The arguments of wp.vector and wp.matrix: components, and the keywords that give the type.
struct Anonymous {
    std::vector<Actual> components;
    std::optional<Type> dtype;
    std::vector<std::int64_t> shape;
};

Anonymous split(const std::vector<Actual>& arguments, const std::string& name, const std::string& size_keyword) {
    Anonymous result;
    const auto too_many = [&](Span span) {
        fail(span, "wp." + name + "() makes at most " + std::to_string(kMostComponents) + " components",
             {help("keep larger data in arrays")}, ErrorCategory::value);
    };
    for (const Actual& a : arguments) {
        if (a.keyword.empty()) {
            result.components.push_back(a);
        } else if (a.keyword == "dtype") {
            if (!a.value.is_binding(Binding::Kind::type) || !a.value.binding->type.is_scalar()) {
                fail(a.span, "dtype of wp." + name + "() must be a scalar type, not " + describe(a.value));
            }
            result.dtype = a.value.binding->type;
        } else if (a.keyword == size_keyword) {
            const std::vector<Value> sizes = a.value.is_tuple() ? a.value.elements : std::vector<Value>{a.value};
            for (const Value& size : sizes) {
                if (!size.is_constant_integer() || size.numbers[0].i < 1) {
                    fail(a.span, size_keyword + " of wp." + name + "() must be known at compile time and positive");
                }
                result.shape.push_back(size.numbers[0].i);
            }
            std::int64_t count = 1;
            for (std::int64_t extent : result.shape) {
                if (extent > kMostComponents / count) too_many(a.span);
                count *= extent;
            }
        } else {
            fail(a.span, "wp." + name + "() has no parameter '" + a.keyword + "'",
                 {help("it has " + size_keyword + " and dtype")});
        }
    }
    if (std::ssize(result.components) > kMostComponents) too_many(result.components.back().span);
    if (!result.dtype && !result.components.empty()) {
        // The first typed component decides; literals alone make float32 or int32.
        bool is_float = false;
        for (const Actual& a : result.components) {
            const Type type = type_of(a.value);
            const bool is_aggregate = type.is_numeric_aggregate();
            if (!type.is_scalar() && !is_aggregate) {
                fail(a.span, "a component of wp." + name + "() must be a number, not " + describe(a.value));
            }
            if (!a.value.is_literal) {
                result.dtype = is_aggregate ? type.scalar_type() : type;
                break;
            }
            is_float |= a.value.numbers[0].is_float;
        }
        if (!result.dtype) result.dtype = is_float ? f32_type() : i32_type();
    }
    if (!result.dtype) result.dtype = f32_type();
    return result;
}

}  // namespace

Value Constructors::anonymous_vector(const std::vector<Actual>& arguments, Span span) {
    const Anonymous parts = split(arguments, "vector", "length");
    std::int64_t length = 0;
    if (parts.shape.size() > 1) fail(span, "length of wp.vector() must be one number");
    if (!parts.shape.empty())
        length = parts.shape[0];
    else if (parts.components.size() == 1 && type_of(parts.components[0].value).is_vector())
        length = type_of(parts.components[0].value).rows();
    else if (parts.components.size() > 1)
        length = static_cast<std::int64_t>(parts.components.size());
    else
        fail(span, "wp.vector() needs its length", {help("write wp.vector(length=3, dtype=float)")});
    return construct_aggregate(Type::vector(parts.dtype->scalar(), static_cast<int>(length)), parts.components, span);
}

Value Constructors::anonymous_matrix(const std::vector<Actual>& arguments, Span span) {
    const Anonymous parts = split(arguments, "matrix", "shape");
    if (parts.shape.size() != 2) {
        fail(span, "wp.matrix() needs its shape", {help("write wp.matrix(..., shape=(3, 2))")});
    }
    const Type type =
        Type::matrix(parts.dtype->scalar(), static_cast<int>(parts.shape[0]), static_cast<int>(parts.shape[1]));
    return construct_aggregate(type, parts.components, span);
}

// wp.quaternion(...) and wp.transformation(...): constructors whose arguments, or dtype, give the type.
Value Constructors::anonymous_rotation(Kind kind, const std::vector<Actual>& arguments, Span span) {
    const std::string name = kind == Kind::quaternion ? "wp.quaternion()" : "wp.transformation()";
    Type scalar = Type::none();
    std::vector<Actual> parts;
    for (const Actual& a : arguments) {
        if (a.keyword != "dtype") {
            parts.push_back(a);
            continue;
        }
        if (!a.value.is_binding(Binding::Kind::type) || !a.value.binding->type.is_float())
            fail(a.span, "dtype of " + name + " must be a floating-point type, not " + describe(a.value));
        scalar = a.value.binding->type;
    }
    for (const Actual& a : parts) {
        const Type type = type_of(a.value);
        const bool is_typed = (type.is_scalar() && !a.value.is_literal) || type.is_numeric_aggregate();
        if (scalar.is_none() && is_typed && type.scalar_type().is_float()) scalar = type.scalar_type();
    }
    if (scalar.is_none()) scalar = f32_type();
    const Type type = kind == Kind::quaternion ? Type::quaternion(scalar.scalar()) : Type::transform(scalar.scalar());
    return construct(type, parts, span);
}

}  // namespace weft::sema
