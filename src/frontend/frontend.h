// From a Python function to syntax and names. No other C++ room sees CPython's ast. All functions need the GIL.
//
// source_text finds the function's lines and lets CPython parse them, tree_reader copies the tree, python_environment
// resolves names, binding gives their objects a meaning. bindings/ answers questions about objects of Weft's own
// classes (objects.h).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/kernel_function.h"
#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// Finds the function's source, parses it and copies the tree. Its environment resolves names through the function's
// globals, closure and builtins when asked, not before. Throws CompileError if the source has an error, UsageError if
// Python cannot give the source.
std::shared_ptr<const sema::FunctionSource> read_function(nb::handle python_function, bool is_gradient = false);

// The same when the function is declared, if it has a wp.static(...): that is evaluated then, as far as Python knows
// its names. Null if it has none, or on an error, which the first launch reports.
std::shared_ptr<const sema::FunctionSource> read_when_declared(nb::handle python_function);

// A @wp.func. The source is read when a kernel first calls it, so that decorating costs nothing.
class PyFunction : public KernelFunction {
public:
    struct Snippets {
        nb::object forward = nb::none(), adjoint = nb::none(), replay = nb::none();  // strings of C++, or None
    };
    PyFunction(nb::object python_function, std::vector<nb::object> overloads, Snippets native, bool has_body)
        : function(std::move(python_function)),
          overloads(std::move(overloads)),
          native(std::move(native)),
          has_body(has_body) {}

    nb::object function;
    std::vector<nb::object> overloads;  // earlier definitions of the name, for parameters of other types
    Snippets native;                    // of a @wp.func_native
    bool has_body;                      // in Python; else only kernels can call it
    bool is_gradient = false;           // it is the @wp.func_grad of another function
    bool is_builtin() const override { return false; }
    sema::Binding binding() override;
    std::shared_ptr<const sema::FunctionSource> source();
    void read_early();  // see read_when_declared

    // @wp.func_grad and @wp.func_replay, or None. Setting one makes compiled kernels check their functions again.
    const nb::object& gradient() const { return gradient_; }
    const nb::object& replay() const { return replay_; }
    void set_gradient(nb::object function);
    void set_replay(nb::object function);

private:
    std::shared_ptr<const sema::FunctionSource> own_source();  // without the overloads

    nb::object gradient_ = nb::none(), replay_ = nb::none();

    std::shared_ptr<const sema::FunctionSource> source_, own_source_;
    std::shared_ptr<const sema::FunctionSource> early_;  // as read, without gradient and replay
    std::uint64_t read_at_ = 0;                          // function_redefinitions() when source_ was put together
};

struct HostCalls;  // bindings/values/builtin_call.cpp

// Counts redefinitions of functions, and new gradients and replays: a kernel that was compiled before may be out of
// date.
std::uint64_t function_redefinitions();

// `wp.dot` in Python: a name of the builtin table.
struct Builtin : KernelFunction {
    Builtin(std::string name, std::shared_ptr<HostCalls> calls) : name(std::move(name)), calls(std::move(calls)) {}

    bool is_builtin() const override { return true; }
    sema::Binding binding() override;

    std::string name;
    std::shared_ptr<HostCalls> calls;  // cached by calls from Python; null before the first
};

// _weft.Function and _weft.Builtin.
void bind_frontend(nb::module_& m);
// _weft.syntax, _weft.meaning ...: the results of the frontend for a function.
void bind_windows(nb::module_& m);

}  // namespace weft::frontend
