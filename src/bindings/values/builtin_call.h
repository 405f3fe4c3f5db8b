// Builtins called from Python: wp.dot(a, b), wp.rand_init(3), the products behind `*` and `@` of typed values.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "builtins/resolve.h"
#include "program/launch/host_call.h"

namespace weft::bindings {

namespace nb = nanobind;

// One builtin for calls from Python: each combination of argument types is resolved and compiled at its first call and
// found in a table afterwards.
class HostBuiltin {
public:
    explicit HostBuiltin(std::string name);

    // Arguments in vectorcall's form; a new reference. Throws UsageError, which lists the overloads, if none fits.
    nb::object call(PyObject* const* arguments, std::size_t count, PyObject* keywords = nullptr);

private:
    // The properties of an argument that decide on the overload: its type; that it is a plain Python int or float; that
    // it is a class. 0: these are not enough.
    using Key = std::uintptr_t;
    struct Plan {
        bool is_reusable = true;  // false if compile-time numbers decide: the key does not contain them
        std::vector<Key> key;
        std::vector<nb::object> keywords;  // interned names
        std::shared_ptr<const program::HostFunction> function;
        std::vector<int> slots;  // argument of the call for each of function->arguments(); -1: none
    };

    const Plan* find(std::span<const Key> key, std::size_t count, PyObject* keywords) const;
    Plan resolve(PyObject* const* arguments, std::size_t count, PyObject* keywords);
    bool fill(const Plan& plan, PyObject* const* arguments, std::byte* block, bool in_range) const;
    nb::object run(const Plan& plan, PyObject* const* arguments, std::byte* block) const;
    nb::object call_printf(PyObject* const* arguments, std::size_t count, PyObject* keywords);
    [[noreturn]] void throw_no_overload(PyObject* const* arguments, std::size_t count, PyObject* keywords,
                                        const std::vector<std::string>& refusals) const;

    std::string name_;
    std::vector<Plan> plans_;
    std::map<std::string, std::shared_ptr<const program::HostFunction>> functions_;
};

// The builtin of this name for the bindings' own use, made at the first call and kept.
HostBuiltin& host_builtin(const char* name);

// wp.vector(...) and wp.matrix(...) on the host: the value that the same call makes in kernels.
nb::object anonymous_value(bool is_matrix, PyObject* const* arguments, std::size_t count, PyObject* keywords);

}  // namespace weft::bindings
