// Generic kernels: each combination of parameter types is a kernel of its own, an instance, which shares the function,
// its tree and the options. Launches of the generic kernel look up the instance for their arguments.
#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/generics.h"
#include "bindings/kernels/kernel.h"
#include "bindings/values/patterns.h"
#include "bindings/values/types.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

std::string subject(const PyKernel& kernel, const syntax::Parameter& parameter, std::size_t index) {
    return "argument " + std::to_string(index + 1) + " '" + parameter.name + "' of kernel '" + kernel.key + "'";
}

// "array2d[float32]" for an array, whose describe() would name its class.
std::string given_text(nb::handle value, Type type) { return type.is_array() ? type.python_name() : describe(value); }

// `, where T is float32`: the types that other arguments gave to the type variables of a pattern; "" for none.
std::string variables_text(const TypePattern& pattern, const TypeVariables& variables) {
    std::string text;
    if (const auto bound = variables.find(pattern.variable_identity);
        pattern.variable_identity && bound != variables.end())
        text = ", where " + pattern.variable + " is " + bound->second.python_name() + " for the other arguments";
    for (const TypePattern& part : pattern.parts) text += variables_text(part, variables);
    return text;
}

}  // namespace

// Checks the annotations of all kernels, and finds whether they leave a type open.
void PyKernel::decide_genericity() {
    const sema::FunctionSource& read = source();
    const auto& declared = read.tree->parameters;
    if (!read.tree->unsupported.empty()) {
        throw CompileError(read.tree->span,
                           "kernel '" + key + "' has " + read.tree->unsupported + ", which kernels cannot have",
                           {{Note::Kind::help, "use plain parameters with annotations", {}}}, ErrorCategory::syntax);
    }
    bool generic = false;
    for (std::size_t i = 0; i < declared.size(); ++i) {
        const std::string quoted = "parameter '" + declared[i].name + "' of kernel '" + key + "'";
        if (declared[i].keyword_only) {
            throw CompileError(
                declared[i].span, quoted + " is given by name only, and launches give arguments in order",
                {{Note::Kind::help, "leave out the '*' before it; functions may have one", {}}}, ErrorCategory::syntax);
        }
        if (!declared[i].has_annotation) {
            throw CompileError(declared[i].span, quoted + " has no type",
                               {{Note::Kind::help,
                                 "annotate it: " + declared[i].name + ": float, " + declared[i].name +
                                     ": wp.array[float], " + declared[i].name + ": wp.vec3",
                                 {}}});
        }
        if (read.annotations[i].shape == TypePattern::Shape::callable) {
            throw CompileError(
                declared[i].span, quoted + " is a function, which a launch cannot pass",
                {{Note::Kind::help,
                  "let the kernel close over the function: make it in a Python function that takes " + declared[i].name,
                  {}}});
        }
        generic |= !read.annotations[i].is_exact();
    }
    genericity_ = generic && types_.empty() ? Genericity::generic : Genericity::plain;
}

nb::object PyKernel::copy(const std::vector<Type>& types, const sema::Blocks& blocks) {
    nb::object made = nb::cast(new PyKernel(function, key, module, options), nb::rv_policy::take_ownership);
    PyKernel& kernel = *kernel_pointer(made);
    kernel.module_key = module_key;
    kernel.source_ = source_;
    kernel.types_ = types;
    kernel.blocks_ = blocks;
    for (const char* name : {"__doc__", "__name__", "__qualname__", "__wrapped__"})
        nb::setattr(made, name, nb::getattr(function, name, function));
    return made;
}

nb::object PyKernel::instance(const std::vector<Type>& types) {
    for (const auto& [known, made] : instances_)
        if (known == types) return made;
    nb::object made = copy(types, blocks_);
    instances_.emplace_back(types, made);
    return made;
}

nb::object PyKernel::with_blocks(const sema::Blocks& blocks) {
    for (const auto& [known, made] : blocked_)
        if (known == blocks) return made;
    source();
    nb::object made = copy(types_, blocks);
    blocked_.emplace_back(blocks, made);
    return made;
}

nb::object PyKernel::instance_for(std::span<PyObject* const> values) {
    nb::object declared;
    const std::vector<Type> types = types_for(values, declared);
    return declared.is_valid() ? declared : instance(types);
}

nb::list PyKernel::argument_types(std::span<PyObject* const> values) {
    std::vector<Type> types;
    if (is_generic()) {
        nb::object declared;
        types = types_for(values, declared);
        if (declared.is_valid()) types = kernel_pointer(declared)->types_;
    } else {
        for (const ParameterPlan& parameter : parameters()) types.push_back(parameter.type);
        if (types.size() != values.size()) {
            throw UsageError("infer_argument_types()", "got " + std::to_string(values.size()) + " arguments, kernel " +
                                                           signature() + " takes " + std::to_string(types.size()));
        }
    }
    nb::list annotations;
    for (Type type : types) {
        annotations.append(type.is_array() ? nb::steal(make_annotation(dtype_to_python(type.element()), type.ndim()))
                                           : dtype_to_python(type));
    }
    return annotations;
}

// The types of the instance for these arguments; or the one that was declared for them, in `declared_instance`.
std::vector<Type> PyKernel::types_for(std::span<PyObject* const> values, nb::object& declared_instance) {
    const sema::FunctionSource& read = source();
    const auto& declared = read.tree->parameters;
    if (values.size() != declared.size()) {
        std::vector<std::string> names;
        for (const syntax::Parameter& parameter : declared) names.push_back(parameter.name);
        throw_wrong_count(*this, values.size(), names);
    }
    // Typed arguments first: plain numbers take the types that stay open.
    std::vector<Type> types(declared.size());
    std::vector<bool> is_literal(declared.size());
    TypeVariables variables;
    const auto fail = [&](std::size_t i, const std::string& why) {
        throw UsageError("launch()",
                         subject(*this, declared[i], i) + " is " + given_text(values[i], types[i]) + ", expected " +
                             python_name(read.annotations[i]) + why,
                         ErrorCategory::type);
    };
    for (std::size_t i = 0; i < declared.size(); ++i) {
        const TypePattern& pattern = read.annotations[i];
        if (pattern.is_exact()) {
            types[i] = pattern.type;
            continue;
        }
        const ArgumentType argument = argument_type(values[i], pattern);
        if (argument.type.is_none())
            fail(i, ": " + argument.why_not + ". help: wp.overload(" + key + ", [...]) gives the types");
        types[i] = argument.type;
        is_literal[i] = argument.is_literal;
        if (is_literal[i] || fits(pattern, argument.type, variables)) continue;
        fail(i, variables_text(pattern, variables));
    }
    // A declared instance for another type than the numbers have by themselves is meant, if it is the only one that
    // fits.
    for (const auto& [known, made] : instances_) {
        bool agrees = true, exact = true;
        for (std::size_t i = 0; i < types.size() && agrees; ++i) {
            exact = exact && known[i] == types[i];
            alignas(16) std::byte bytes[16];
            agrees = known[i] == types[i] ||
                     (is_literal[i] && known[i].is_scalar() && write_value(values[i], known[i], bytes));
        }
        if (exact && agrees) {
            declared_instance = made;
            return types;
        }
        if (!agrees) continue;
        if (declared_instance.is_valid()) {
            declared_instance.reset();
            break;
        }
        declared_instance = made;
    }
    if (declared_instance.is_valid()) return types;
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (!is_literal[i]) continue;
        const TypePattern& pattern = read.annotations[i];
        if (const auto bound = variables.find(pattern.variable_identity);
            pattern.variable_identity && bound != variables.end() && bound->second.is_scalar()) {
            types[i] = bound->second;  // packing checks whether the number fits
        } else if (!fits(pattern, types[i], variables)) {
            fail(i, "");
        }
    }
    return types;
}

nb::object PyKernel::overload(nb::handle given) { return instance(overload_types(given)); }

nb::object PyKernel::find_overload(nb::handle given) {
    const std::vector<Type> types = overload_types(given);
    for (const auto& [known, made] : instances_)
        if (known == types) return made;
    return nb::none();
}

std::vector<Type> PyKernel::overload_types(nb::handle given) {
    constexpr const char* api = "overload()";
    if (!is_generic()) {
        throw UsageError(api,
                         "kernel " + signature() + " is not generic: it has no parameter annotated with typing.Any",
                         ErrorCategory::type);
    }
    const sema::FunctionSource& read = source();
    const auto& declared = read.tree->parameters;
    std::vector<nb::object> chosen(declared.size());
    if (PyDict_Check(given.ptr())) {
        for (auto [name, type] : nb::borrow<nb::dict>(given)) {
            const std::string text = nb::str(name).c_str();
            const auto found = std::find_if(declared.begin(), declared.end(),
                                            [&](const syntax::Parameter& parameter) { return parameter.name == text; });
            if (found == declared.end())
                throw UsageError(api, "kernel " + signature() + " has no parameter '" + text + "'", ErrorCategory::key);
            chosen[static_cast<std::size_t>(found - declared.begin())] = nb::borrow(type);
        }
    } else {
        if (!PyList_Check(given.ptr()) && !PyTuple_Check(given.ptr())) {
            throw UsageError(api,
                             "the types are " + describe(given) +
                                 ", expected a list with one type per parameter, or a dict {\"parameter\": type}",
                             ErrorCategory::type);
        }
        if (nb::len(given) != declared.size()) {
            throw UsageError(api,
                             "got " + std::to_string(nb::len(given)) + " types, kernel " + signature() + " takes " +
                                 std::to_string(declared.size()),
                             ErrorCategory::type);
        }
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = nb::object(given[i]);
    }
    std::vector<Type> types;
    TypeVariables variables;
    for (std::size_t i = 0; i < declared.size(); ++i) {
        const TypePattern& pattern = read.annotations[i];
        const std::string quoted = "parameter '" + declared[i].name + "' of kernel '" + key + "'";
        if (!chosen[i].is_valid()) {
            if (!pattern.is_exact())
                throw UsageError(api, quoted + " is " + python_name(pattern) + ": its type is missing",
                                 ErrorCategory::type);
            types.push_back(pattern.type);
            continue;
        }
        const std::optional<TypePattern> type = pattern_from_python(chosen[i]);
        if (!type || !type->is_exact()) {
            throw UsageError(api,
                             quoted + " needs a type such as float or wp.array(dtype=float), got " +
                                 (type ? python_name(*type) : describe(chosen[i])),
                             ErrorCategory::type);
        }
        if (!fits(pattern, type->type, variables)) {
            throw UsageError(api,
                             quoted + " is " + python_name(pattern) + ", which cannot be " + type->type.python_name() +
                                 variables_text(pattern, variables),
                             ErrorCategory::type);
        }
        types.push_back(type->type);
    }
    return types;
}

}  // namespace weft::bindings
