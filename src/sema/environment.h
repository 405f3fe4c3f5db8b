// The interface by which sema looks up names that are not locals: globals, closure variables, attributes of modules and
// classes. frontend/ implements it on Python objects, tests on a map. This room does not use Python.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/tree.h"
#include "types/pattern.h"
#include "types/type.h"

namespace weft::sema {

class Environment;
struct FunctionSource;

// The meaning of a free name (or an attribute of one).
struct Binding {
    enum class Kind {
        unknown,   // no such name
        constant,  // a number, bool, vector or matrix known at compile time
        string,
        none,         // None
        type,         // wp.vec3, float, MyStruct: constructs or converts when called
        builtin,      // an entry of the builtin table, by name
        function,     // a user's @wp.func
        closure,      // a lambda or a def within the function: `lambda`
        exception,    // a class of Python's exceptions, `text` its name
        object,       // module, class, other object: only its attributes can be used
        tuple,        // a tuple or list of bindings; with a `type`, an instance of this struct: its fields
        unsupported,  // exists, but kernels cannot use it; `text` describes it
    } kind = Kind::unknown;

    Type type;                    // constant, type, struct
    std::vector<Number> numbers;  // constant: one per component
    bool is_literal = false;      // constant: a plain Python number, untyped like a literal in the source
    std::string text;             // string; builtin: its name; unsupported: "a list", "an open file"
    std::shared_ptr<const FunctionSource> function;
    const syntax::Lambda* lambda = nullptr;  // closure
    bool is_gradient = false;                // function, builtin: wp.grad(function)
    std::shared_ptr<void> object;            // opaque to sema, handed back to Environment::attribute
    std::vector<Binding> elements;
    bool takes_self = false, is_property = false;  // function: a method of a struct
    bool takes_class = false;                      // function: a class method, `type` the struct it is called on
};

// How @dataclass makes instances of a struct, if not just from each field in order, or its default.
struct Construction {
    struct Parameter {
        std::string name;
        bool keyword_only = false;
        bool required = false;      // without a default, or with one that only Python can make
        bool has_factory = false;   // required for the latter reason
        bool is_init_only = false;  // dataclasses.InitVar: no field, an argument of __post_init__
    };
    std::vector<Parameter> parameters;  // fields with init=False are not among them
    std::vector<std::string> compared;  // the fields that == compares; none if eq=False
    bool has_equality = false;
    bool is_frozen = false;
    bool has_post_init = false;
};

// A @wp.func or @wp.kernel: tree, names, and the types that its parameters accept.
struct FunctionSource {
    std::shared_ptr<const syntax::Function> tree;
    std::shared_ptr<Environment> environment;
    std::vector<TypePattern> annotations;  // one per parameter; "any" for one without
    std::set<std::string> references;      // names of the parameters that are passed by reference (wp.ref)
    std::string key;                       // tells two functions apart: module, qualified name, identity
    std::vector<Binding> defaults;         // one per parameter, kind unknown for one without; may be left empty
    std::optional<Type> result;  // as annotated behind `->`; Type::none() for None, empty without an annotation
    SourcePtr native;            // @wp.func_native: the body in C++
    SourcePtr native_adjoint, native_replay;  // its adj_snippet and replay_snippet, or null
    // Earlier definitions of the same name with parameters of other types.
    std::vector<std::shared_ptr<const FunctionSource>> overloads;
    // @wp.func_grad and @wp.func_replay of this function, or null.
    std::shared_ptr<const FunctionSource> gradient, replay;
};

// The names of one function that are constants.
class NameWatch {
public:
    virtual ~NameWatch() = default;
    // Empty if each name still has the value that it had when the watch was made. Else the text names one, with its
    // former and present value. Takes nanoseconds if nothing has changed.
    virtual std::string changed() = 0;
};

class Environment {
public:
    virtual ~Environment() = default;
    // Called before each statement. It may throw, which ends the analysis.
    virtual void go_on() {}
    virtual Binding lookup(std::string_view name) = 0;
    virtual Binding attribute(const Binding& object, std::string_view name) = 0;
    // The method of this name of a struct's class; kind unknown if there is none.
    virtual Binding method(Type, std::string_view) { return {}; }
    // How instances are made; empty for a struct that is no dataclass.
    virtual std::optional<Construction> construction(Type) { return {}; }
    // The importable name of the module that defines the struct, if it has a @wp.func of this name; else "".
    virtual std::string module_with_operator(Type, std::string_view) { return {}; }
    // Whether the class of one struct is derived from that of the other.
    virtual bool is_derived(Type, Type) { return false; }
    // The value of a Python expression of this function (wp.static(...)), by the syntax node's id. `constants` are
    // locals known at compile time (variables of unrolled loops). Throws UsageError with Python's own message if it
    // fails.
    struct Local {
        std::string name;
        Binding value;
        std::optional<std::int64_t> length;  // instead of the value: only its length is known
    };
    virtual Binding evaluate(int expression_id, const std::vector<Local>& constants) = 0;
    // Names that lookup() would find, for "did you mean".
    virtual std::vector<std::string> names() = 0;
    virtual std::vector<std::string> attribute_names(const Binding& object) = 0;
    // For the constants that lookup() and attribute() have given; null if none can change.
    virtual std::shared_ptr<NameWatch> watch() { return nullptr; }
};

}  // namespace weft::sema
