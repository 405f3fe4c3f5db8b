// For functions that are given to CPython directly, without nanobind in between: parsing of their arguments, and C++
// exceptions as Python's. For calls that must cost only some dozens of nanoseconds.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <span>
#include <string_view>

namespace weft::bindings {

namespace nb = nanobind;

// Sets Python's error from the exception being handled, as nanobind's functions do.
// Call it inside a catch block.
void set_python_error() noexcept;

// Runs `body`; an exception becomes Python's error, and the result is `failed`.
template <typename Body, typename Result = PyObject*>
Result guarded(Body&& body, Result failed = nullptr) noexcept {
    try {
        return body();
    } catch (...) {
        set_python_error();
        return failed;
    }
}

// The rare paths of Signature, which are the same for all.
[[noreturn]] void throw_too_many(std::string_view api, Py_ssize_t most, Py_ssize_t got);
[[noreturn]] void throw_unknown_keyword(std::string_view api, PyObject* keyword, const char* const* names,
                                        std::size_t count);
[[noreturn]] void throw_given_twice(std::string_view api, const char* name);
[[noreturn]] void throw_missing(std::string_view api, const char* name);

// The parameters of one function, all of which may be given by position or by name. Absent ones are null. Keep it in a
// `static const` inside the function: it interns the names.
template <std::size_t kCount>
class Signature {
public:
    using Values = std::array<PyObject*, kCount>;

    Signature(const char* api, const std::array<const char*, kCount>& names, std::size_t required = 0,
              std::size_t positional = kCount)
        : api_(api), names_(names), required_(required), positional_(positional) {
        for (std::size_t i = 0; i < kCount; ++i) keys_[i] = PyUnicode_InternFromString(names[i]);
    }

    // In the form of METH_FASTCALL | METH_KEYWORDS and vectorcall.
    Values parse(PyObject* const* args, Py_ssize_t count, PyObject* keywords) const {
        Values values{};
        take_positional(values, args, count);
        if (keywords) {
            Py_ssize_t named = PyTuple_GET_SIZE(keywords);
            for (Py_ssize_t i = 0; i < named; ++i) take_named(values, PyTuple_GET_ITEM(keywords, i), args[count + i]);
        }
        check_required(values);
        return values;
    }

    // In the form of tp_new.
    Values parse(PyObject* args, PyObject* keywords) const {
        Values values{};
        take_positional(values, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args));
        if (keywords) {
            PyObject *key, *value;
            for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &key, &value);) take_named(values, key, value);
        }
        check_required(values);
        return values;
    }

    const char* api() const { return api_; }

private:
    void take_positional(Values& values, PyObject* const* args, Py_ssize_t count) const {
        if (count > static_cast<Py_ssize_t>(positional_)) {
            throw_too_many(api_, static_cast<Py_ssize_t>(positional_), count);
        }
        for (Py_ssize_t i = 0; i < count; ++i) values[i] = args[i];
    }

    void take_named(Values& values, PyObject* key, PyObject* value) const {
        std::size_t i = 0;
        while (i < kCount && keys_[i] != key) ++i;
        // A name built at run time is not interned: compare the text.
        if (i == kCount) {
            i = 0;
            while (i < kCount && PyUnicode_Compare(keys_[i], key) != 0) ++i;
        }
        if (i == kCount) throw_unknown_keyword(api_, key, names_.data(), kCount);
        if (values[i]) throw_given_twice(api_, names_[i]);
        values[i] = value;
    }

    void check_required(const Values& values) const {
        for (std::size_t i = 0; i < required_; ++i) {
            if (!values[i]) throw_missing(api_, names_[i]);
        }
    }

    const char* api_;
    std::array<const char*, kCount> names_;
    std::array<PyObject*, kCount> keys_;
    std::size_t required_;
    std::size_t positional_;
};

// A function as PyType_Slot has it.
template <class Function>
void* type_slot(Function* function) {
    return reinterpret_cast<void*>(function);
}

// Adds such a table, which must live for ever, to the module `warp`.
void add_functions(nb::module_& m, std::span<PyMethodDef> functions);

// Readings of optional arguments: null and None mean `otherwise`.
inline bool is_given(PyObject* value) { return value && value != Py_None; }
bool flag(PyObject* value, bool otherwise);
// The items of a list, a tuple or another object of a known length, as a tuple. Null if it has no length, or more items
// than its length says: pointers of ctypes, generators and the like are no sequences, and some never end.
nb::object sequence_items(PyObject* object);
// Anything with __index__ (Python and NumPy integers); not bool.
std::int64_t integer(PyObject* value, std::string_view api, const char* name);

}  // namespace weft::bindings
