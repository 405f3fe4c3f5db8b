// Syntax trees for tests, written close to the Python they stand for:
//
//   kernel("scale", {{"x", array1}, {"s", f32}}, block(
//       set("i", call("wp.tid")),
//       set(sub("x", "i"), sub("x", "i") * "s")))
//
// is
//
//   def scale(x: wp.array[float], s: float):   # line 1
//       i = wp.tid()                           # line 2
//       x[i] = x[i] * s                        # line 3
//
// Strings in place of an expression are names, with dots for attributes. Statements get line numbers in source order.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "builtins/registry.h"
#include "sema/environment.h"
#include "sema/sema.h"
#include "sema/walk.h"
#include "support/error.h"
#include "syntax/tree.h"

namespace weft::sema::test {

struct X {
    syntax::ExpressionPtr node;

    template <class T>
    static X of(T value) {
        X x;
        x.node = std::make_unique<syntax::Expression>();
        x.node->node = std::move(value);
        return x;
    }
    X() = default;
    X(int value) : X(of(syntax::IntegerLiteral{value, false, std::to_string(value)})) {}
    X(double value) : X(of(syntax::FloatLiteral{value})) {}
    X(bool value) : X(of(syntax::BoolLiteral{value})) {}
    X(const char* dotted) {
        std::string text = dotted, part;
        for (std::size_t i = 0; i <= text.size(); ++i) {
            if (i < text.size() && text[i] != '.') {
                part += text[i];
                continue;
            }
            *this = node ? of(syntax::Attribute{std::move(node), part}) : of(syntax::Name{part});
            part.clear();
        }
    }
};

template <class... T>
std::vector<syntax::ExpressionPtr> list(T&&... items) {
    std::vector<syntax::ExpressionPtr> result;
    (result.push_back(X(std::forward<T>(items)).node), ...);
    return result;
}

inline X binary(syntax::BinaryOperator op, X a, X b) {
    return X::of(syntax::Binary{op, std::move(a.node), std::move(b.node)});
}
inline X operator+(X a, X b) { return binary(syntax::BinaryOperator::add, std::move(a), std::move(b)); }
inline X operator-(X a, X b) { return binary(syntax::BinaryOperator::sub, std::move(a), std::move(b)); }
inline X operator*(X a, X b) { return binary(syntax::BinaryOperator::mul, std::move(a), std::move(b)); }
inline X operator/(X a, X b) { return binary(syntax::BinaryOperator::div, std::move(a), std::move(b)); }
inline X operator%(X a, X b) { return binary(syntax::BinaryOperator::mod, std::move(a), std::move(b)); }
inline X operator-(X a) { return X::of(syntax::Unary{syntax::UnaryOperator::negate, std::move(a.node)}); }
inline X not_(X a) { return X::of(syntax::Unary{syntax::UnaryOperator::logical_not, std::move(a.node)}); }

inline X compare(X a, syntax::CompareOperator op, X b) {
    syntax::Compare c;
    c.left = std::move(a.node);
    c.ops = {op};
    c.operands.push_back(std::move(b.node));
    return X::of(std::move(c));
}
inline X operator<(X a, X b) { return compare(std::move(a), syntax::CompareOperator::lt, std::move(b)); }
inline X operator>(X a, X b) { return compare(std::move(a), syntax::CompareOperator::gt, std::move(b)); }
inline X operator>=(X a, X b) { return compare(std::move(a), syntax::CompareOperator::ge, std::move(b)); }
inline X operator==(X a, X b) { return compare(std::move(a), syntax::CompareOperator::eq, std::move(b)); }
// a < b < c
inline X chained_less(X a, X b, X c) {
    X result = std::move(a) < std::move(b);
    auto& chain = std::get<syntax::Compare>(result.node->node);
    chain.ops.push_back(syntax::CompareOperator::lt);
    chain.operands.push_back(std::move(c.node));
    return result;
}

inline X text(const char* value) { return X::of(syntax::StringLiteral{value}); }
inline X none() { return X::of(syntax::NoneLiteral{}); }
inline X attr(X object, const char* name) { return X::of(syntax::Attribute{std::move(object.node), name}); }
template <class... T>
X sub(X object, T&&... indices) {
    return X::of(syntax::Subscript{std::move(object.node), list(std::forward<T>(indices)...)});
}
template <class... T>
X call(X function, T&&... arguments) {
    return X::of(syntax::Call{std::move(function.node), list(std::forward<T>(arguments)...), {}});
}
inline X with(X made, const char* keyword, X value) {
    std::get<syntax::Call>(made.node->node).keywords.push_back({keyword, std::move(value.node)});
    return made;
}
template <class... T>
X tuple(T&&... elements) {
    return X::of(syntax::Tuple{list(std::forward<T>(elements)...)});
}
template <class... T>
X all_of(T&&... operands) {
    return X::of(syntax::BoolOp{true, list(std::forward<T>(operands)...)});
}
template <class... T>
X any_of(T&&... operands) {
    return X::of(syntax::BoolOp{false, list(std::forward<T>(operands)...)});
}
inline X either(X condition, X then_value, X else_value) {
    return X::of(
        syntax::IfExpression{std::move(condition.node), std::move(then_value.node), std::move(else_value.node)});
}

struct S {
    std::unique_ptr<syntax::Statement> node;

    template <class T>
    static S of(T value) {
        S s;
        s.node = std::make_unique<syntax::Statement>();
        s.node->node = std::move(value);
        return s;
    }
};

template <class... T>
syntax::Block block(T... statements) {
    syntax::Block result;
    (result.push_back(std::move(statements.node)), ...);
    return result;
}
inline S set(X target, X value) { return S::of(syntax::Assign{list(std::move(target)), std::move(value.node)}); }
inline S declare(X target, X annotation, X value) {
    return S::of(syntax::AnnotatedAssign{std::move(target.node), std::move(annotation.node), std::move(value.node)});
}
inline S augment(X target, syntax::BinaryOperator op, X value) {
    return S::of(syntax::AugmentedAssign{std::move(target.node), op, std::move(value.node)});
}
inline S add_to(X target, X value) { return augment(std::move(target), syntax::BinaryOperator::add, std::move(value)); }
inline S do_(X value) { return S::of(syntax::ExpressionStatement{std::move(value.node)}); }
inline S if_(X condition, syntax::Block then_block, syntax::Block else_block = {}) {
    return S::of(syntax::If{std::move(condition.node), std::move(then_block), std::move(else_block)});
}
inline S for_(X target, X iterable, syntax::Block body) {
    return S::of(syntax::For{std::move(target.node), std::move(iterable.node), std::move(body)});
}
inline S while_(X condition, syntax::Block body) {
    return S::of(syntax::While{std::move(condition.node), std::move(body)});
}
inline S return_(X value = {}) { return S::of(syntax::Return{std::move(value.node)}); }
inline S break_() { return S::of(syntax::Break{}); }
inline S continue_() { return S::of(syntax::Continue{}); }
inline S assert_(X condition, const char* message) {
    return S::of(syntax::Assert{std::move(condition.node), std::move(text(message).node)});
}
inline S unsupported(const char* what) { return S::of(syntax::UnsupportedStatement{what}); }

// ---- names outside the kernel ----
inline Binding builtin(const std::string& name) {
    Binding b;
    b.kind = Binding::Kind::builtin;
    b.text = name;
    return b;
}
inline Binding type_binding(Type type) {
    Binding b;
    b.kind = Binding::Kind::type;
    b.type = type;
    return b;
}
inline Binding literal(Number number) {
    Binding b;
    b.kind = Binding::Kind::constant;
    b.type = number.is_float ? f32_type() : i32_type();
    b.numbers = {number};
    b.is_literal = true;
    return b;
}
inline Binding boolean(bool value) {
    Binding b;
    b.kind = Binding::Kind::constant;
    b.type = bool_type();
    b.numbers = {Number::integer(value)};
    return b;
}

// Knows `wp.<builtin>`, the Python names of functions and types, and what a test puts into `globals`. wp.static(name)
// gives a constant local or a global.
class FakeEnvironment : public Environment {
public:
    std::map<std::string, Binding> globals;
    const syntax::Function* tree = nullptr;

    Binding lookup(std::string_view name) override {
        if (const auto found = globals.find(std::string(name)); found != globals.end()) return found->second;
        if (name == "wp") {
            Binding module;
            module.kind = Binding::Kind::object;
            module.text = "module 'warp'";
            return module;
        }
        for (const char* python : {"range", "reversed", "print", "len", "min", "max", "abs"}) {
            if (name == python) return builtin(python);
        }
        return python_type(name);
    }
    Binding attribute(const Binding&, std::string_view name) override {
        const std::map<std::string, Type, std::less<>> types = {
            {"vec2", Type::vector(Scalar::f32, 2)},
            {"vec3", Type::vector(Scalar::f32, 3)},
            {"vec3d", Type::vector(Scalar::f64, 3)},
            {"mat22", Type::matrix(Scalar::f32, 2, 2)},
            {"float16", Type::scalar(Scalar::f16)},
            {"float32", f32_type()},
            {"float64", f64_type()},
            {"int8", Type::scalar(Scalar::i8)},
            {"int32", i32_type()},
            {"int64", i64_type()},
            {"uint32", u32_type()},
            {"transform", Type::transform(Scalar::f32)},
        };
        if (const auto found = types.find(name); found != types.end()) return type_binding(found->second);
        for (const char* language : {"static", "tid", "printf", "vector", "matrix"}) {
            if (name == language) return builtin(language);
        }
        return builtins::overloads(name).empty() ? Binding{} : builtin(std::string(name));
    }
    Binding evaluate(int id, const std::vector<Local>& constants) override {
        std::string wanted;
        walk(
            tree->body, [](const syntax::Statement&) {},
            [&](const syntax::Expression& e) {
                if (e.id == id) wanted = std::get<syntax::Name>(e.node).id;
            });
        for (const Local& local : constants) {
            if (local.name == wanted) return local.value;
        }
        if (const auto found = globals.find(wanted); found != globals.end()) return found->second;
        throw UsageError("wp.static()", "NameError: name '" + wanted + "' is not defined", ErrorCategory::name);
    }
    std::vector<std::string> names() override {
        std::vector<std::string> result;
        for (const auto& [name, _] : globals) result.push_back(name);
        return result;
    }
    std::vector<std::string> attribute_names(const Binding&) override { return builtins::names(); }

private:
    static Binding python_type(std::string_view name) {
        if (name == "int") return type_binding(i32_type());
        if (name == "float") return type_binding(f32_type());
        if (name == "bool") return type_binding(bool_type());
        return {};
    }
};

struct Parameter {
    std::string name;
    Type type;  // none: not annotated
};

inline std::shared_ptr<FunctionSource> function(const std::string& name, const std::vector<Parameter>& parameters,
                                                syntax::Block body, std::map<std::string, Binding> globals = {}) {
    auto tree = std::make_shared<syntax::Function>();
    auto source = std::make_shared<Source>();
    source->path = name + ".py";
    tree->name = name;
    tree->body = std::move(body);
    tree->source = source;
    int line = 1, id = 0;
    tree->span = {source.get(), line, 0, 3};
    auto result = std::make_shared<FunctionSource>();
    for (const Parameter& p : parameters) {
        tree->parameters.push_back({p.name, tree->span, !p.type.is_none(), false});
        result->annotations.push_back(p.type.is_none() ? TypePattern() : TypePattern::exactly(p.type));
    }
    walk(
        tree->body,
        [&](const syntax::Statement& s) { const_cast<syntax::Statement&>(s).span = {source.get(), ++line, 4, 5}; },
        [&](const syntax::Expression& e) {
            const_cast<syntax::Expression&>(e).span = {source.get(), line, 4, 5};
            const_cast<syntax::Expression&>(e).id = id++;
        });
    source->lines.resize(static_cast<std::size_t>(line));
    auto environment = std::make_shared<FakeEnvironment>();
    environment->globals = std::move(globals);
    environment->tree = tree.get();
    result->tree = tree;
    result->environment = environment;
    result->key = name;
    return result;
}

inline Binding function_binding(std::shared_ptr<const FunctionSource> source) {
    Binding b;
    b.kind = Binding::Kind::function;
    b.function = std::move(source);
    return b;
}

}  // namespace weft::sema::test
