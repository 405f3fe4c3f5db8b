#include "bindings/python/fastcall.h"

#include <nanobind/stl/string.h>

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "bindings/python/describe.h"
#include "bindings/python/errors.h"
#include "support/error.h"

namespace weft::bindings {

void set_python_error() noexcept {
    try {
        throw;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const Error& error) {
        nb::object exception = exception_from(error);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

void throw_too_many(std::string_view api, Py_ssize_t most, Py_ssize_t got) {
    throw UsageError(api, "takes at most " + std::to_string(most) + " positional arguments, got " + std::to_string(got),
                     ErrorCategory::type);
}

void throw_unknown_keyword(std::string_view api, PyObject* keyword, const char* const* names, std::size_t count) {
    std::vector<std::string> candidates(names, names + count);
    std::string given = nb::cast<std::string>(nb::handle(keyword));
    std::vector<std::string> close = nearest(given, candidates);
    throw UsageError(
        api,
        "there is no argument '" + given + "'. help: " +
            (close.empty() ? "the arguments are " + join_or(candidates) : "did you mean " + join_or(close)),
        ErrorCategory::type);
}

void throw_given_twice(std::string_view api, const char* name) {
    throw UsageError(api, "argument '" + std::string(name) + "' is given twice", ErrorCategory::type);
}

void throw_missing(std::string_view api, const char* name) {
    throw UsageError(api, "argument '" + std::string(name) + "' is missing", ErrorCategory::type);
}

bool flag(PyObject* value, bool otherwise) {
    if (!is_given(value)) return otherwise;
    if (PyUnicode_Check(value)) {  // "no" is true, which is never meant
        throw UsageError("an argument that is on or off", "expected True or False, got " + describe(value),
                         ErrorCategory::type);
    }
    int truth = PyObject_IsTrue(value);
    if (truth < 0) throw nb::python_error();
    return truth == 1;
}

nb::object sequence_items(PyObject* object) {
    const auto checked = [](PyObject* made) {
        nb::object result = nb::steal(made);
        if (!result.is_valid()) throw nb::python_error();
        return result;
    };
    // A copy of a list: converting an item may run Python code, which may change it.
    if (PyTuple_Check(object) || PyList_Check(object)) return checked(PySequence_Tuple(object));
    const Py_ssize_t count = PyObject_Size(object);
    nb::object iterator = count < 0 ? nb::object() : nb::steal(PyObject_GetIter(object));
    if (!iterator.is_valid()) {
        PyErr_Clear();
        return {};
    }
    nb::object items = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i <= count; ++i) {
        PyObject* item = PyIter_Next(iterator.ptr());
        if (!item && PyErr_Occurred()) throw nb::python_error();
        if (!item) return i == count ? items : nb::object();
        if (i < count) {
            PyTuple_SET_ITEM(items.ptr(), i, item);
        } else {
            Py_DECREF(item);
        }
    }
    return {};
}

std::int64_t integer(PyObject* value, std::string_view api, const char* name) {
    if (!PyIndex_Check(value) || PyBool_Check(value)) {
        throw UsageError(api, "'" + std::string(name) + "' must be an integer, got " + describe(value),
                         ErrorCategory::type);
    }
    nb::object index = nb::steal(PyNumber_Index(value));
    if (!index.is_valid()) {
        // NumPy's arrays have __index__, which may fail.
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();
        throw UsageError(api, "'" + std::string(name) + "' must be an integer, got " + describe(value),
                         ErrorCategory::type);
    }
    int overflow = 0;
    long long result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow) {
        throw UsageError(api,
                         "'" + std::string(name) + "' does not fit 64 bits: " + nb::cast<std::string>(nb::str(index)),
                         ErrorCategory::value);
    }
    if (result == -1 && PyErr_Occurred()) throw nb::python_error();
    return result;
}

void add_functions(nb::module_& m, std::span<PyMethodDef> functions) {
    const nb::str module("warp");
    for (PyMethodDef& function : functions) {
        nb::object object = nb::steal(PyCFunction_NewEx(&function, m.ptr(), module.ptr()));
        if (!object.is_valid()) throw nb::python_error();
        m.attr(function.ml_name) = object;
    }
}

}  // namespace weft::bindings
