// From a Python function to syntax and names: the only C++ that sees CPython's ast. Everything below runs with the GIL.
//
// source_text finds the function's lines and lets CPython parse them, tree_reader copies the tree, python_environment
// answers what names mean. What Python objects of Weft's own classes are is asked of bindings/ (objects.h).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// Finds the function's source, parses it and copies the tree. Its environment resolves names
// through the function's globals, closure and builtins when asked, not before. Throws CompileError where the source
// has an error, UsageError where Python cannot give the source.
std::shared_ptr<const sema::FunctionSource> read_function(nb::handle python_function, bool is_gradient = false);

// The same when the function is declared, where it has a wp.static(...): that is evaluated then, as far as Python knows
// its names. Null where it has none, or a mistake.
std::shared_ptr<const sema::FunctionSource> read_when_declared(nb::handle python_function);

// The same of a method of a struct, whose first parameter is passed by reference; read once.
std::shared_ptr<const sema::FunctionSource> read_method(nb::handle python_function);

// What Python calls wp.Function: a @wp.func or a built-in function.
class KernelFunction {};

// A @wp.func. The source is read when a kernel first calls it, so that decorating costs nothing.
class PyFunction : public KernelFunction {
public:
    PyFunction(nb::object python_function, std::vector<nb::object> overloads, nb::object native, bool has_body)
        : function(std::move(python_function)),
          overloads(std::move(overloads)),
          native(std::move(native)),
          has_body(has_body) {}

    nb::object function;
    std::vector<nb::object> overloads;  // earlier definitions of the name, for parameters of other types
    nb::object native;                  // a string of C++ (@wp.func_native), or None
    bool has_body;                      // in Python, for calls from Python
    bool is_gradient = false;           // @wp.func_grad of another one
    std::shared_ptr<const sema::FunctionSource> source();
    void read_early();  // see read_when_declared

    // @wp.func_grad and @wp.func_replay; None where there is none. A new one makes compiled kernels look again.
    const nb::object& gradient() const { return gradient_; }
    const nb::object& replay() const { return replay_; }
    void set_gradient(nb::object function);
    void set_replay(nb::object function);

private:
    std::shared_ptr<const sema::FunctionSource> own_source();  // without the overloads

    nb::object gradient_ = nb::none(), replay_ = nb::none();

    std::shared_ptr<const sema::FunctionSource> source_, own_source_;
    std::shared_ptr<const sema::FunctionSource> early_;  // as it was read, without gradient and replay
    std::uint64_t read_at_ = 0;                          // function_redefinitions() when source_ was put together
};

struct HostCalls;  // objects.h

// Counts definitions of functions that replace an earlier one: kernels compiled before may mean the new one.
std::uint64_t function_redefinitions();

// `wp.dot`: a name of the builtin table, as Python sees it.
struct Builtin : KernelFunction {
    Builtin(std::string name, std::shared_ptr<HostCalls> calls) : name(std::move(name)), calls(std::move(calls)) {}

    std::string name;
    std::shared_ptr<HostCalls> calls;  // what calls from Python keep; null before the first
};

// _weft.Function and _weft.Builtin.
void bind_frontend(nb::module_& m);
// _weft.syntax, _weft.meaning ...: what the frontend made of a function.
void bind_windows(nb::module_& m);

}  // namespace weft::frontend
