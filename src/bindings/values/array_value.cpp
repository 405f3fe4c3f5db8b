#include "bindings/values/array_value.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <set>
#include <string>

#include "bindings/python/fastcall.h"
#include "bindings/python/log.h"
#include "bindings/values/types.h"
#include "ir/typing.h"
#include "program/tape/stopped_gradients.h"
#include "runtime/device.h"
#include "support/error.h"

namespace weft::bindings {

PyTypeObject* array_type = nullptr;

PyArray* array_pointer(nb::handle object) {
    if (Py_TYPE(object.ptr()) != array_type && !PyType_IsSubtype(Py_TYPE(object.ptr()), array_type)) return nullptr;
    return &value_of(object.ptr());
}

PyArray& memory_of(PyObject* self, const char* api) {
    PyArray& array = value_of(self);
    if (array.pending) throw UsageError(api, "this is " + pending_text(array), ErrorCategory::value);
    if (array.is_annotation) {
        throw UsageError(api,
                         "this is the annotation " + nb::cast<std::string>(nb::str(nb::handle(self))) +
                             ", which has no memory. help: wp.empty() and wp.zeros() make arrays",
                         ErrorCategory::type);
    }
    runtime::require_memory(array.array, api);
    return array;
}

nb::object object_of(const program::Variable& variable) {
    auto* const value = const_cast<PyArray*>(static_cast<const PyArray*>(&variable));
    return nb::borrow(reinterpret_cast<PyObject*>(reinterpret_cast<std::byte*>(value) - sizeof(ArrayHead)));
}

PyObject* make_array(runtime::Array array, PyTypeObject* type) {
    ArrayObject* object;
    if (type == array_type) {
        object = PyObject_GC_New(ArrayObject, array_type);
        if (!object) throw nb::python_error();
        object->attributes = nullptr;
        object->weak_references = nullptr;
        new (&object->value) PyArray(std::move(array));
        PyObject_GC_Track(object);
        return reinterpret_cast<PyObject*>(object);
    }
    // Subclasses may have further fields.
    object = reinterpret_cast<ArrayObject*>(type->tp_alloc(type, 0));
    if (!object) throw nb::python_error();
    new (&object->value) PyArray(std::move(array));
    return reinterpret_cast<PyObject*>(object);
}

nb::object dtype_of(PyArray& array) {
    if (!array.dtype.is_valid()) array.dtype = dtype_to_python(array.array.dtype);
    return array.dtype;
}

nb::object wrap_array(runtime::Array array, nb::handle dtype) {
    nb::object result = nb::steal(make_array(std::move(array)));
    if (dtype.is_valid()) value_of(result.ptr()).dtype = nb::borrow(dtype);
    return result;
}

std::string pending_text(const PyArray& array) {
    const runtime::Array& old = array.array;
    const runtime::Shape shape = array.pending->shape.value_or(runtime::Shape(old.shape().begin(), old.shape().end()));
    const runtime::Shape strides =
        array.pending->strides.value_or(runtime::Shape(old.strides().begin(), old.strides().end()));
    const int ndim = array.pending->ndim.value_or(static_cast<int>(shape.size()));
    return "an array in the middle of a change: shape is " + runtime::shape_text(shape) + ", strides are " +
           runtime::shape_text(strides) + ", ndim is " + std::to_string(ndim) +
           ". help: set shape, strides and ndim so that they have as many dimensions";
}

PyArray& array_argument(PyObject* object, const char* api, const char* name) {
    if (!array_pointer(object)) {
        throw UsageError(api, "'" + std::string(name) + "' must be an array, got " + describe(object),
                         ErrorCategory::type);
    }
    return memory_of(object, api);
}

namespace {

// Structs that hold the array already do not see the gradient that it gets now, nor do its views.
void note_gradient(const PyArray& array) {
    const runtime::BufferPtr& buffer = array.array.buffer;
    if (!buffer) return;
    if (buffer->marks & kKeptWithoutGradient) buffer->marks |= kGotGradientLater;
    if (buffer.use_count() > 1) program::note_gradient_beside(buffer, array.gradient);
}

}  // namespace

// Warns once a dtype: programs that ask for gradients of all their arrays may go on.
static void warn_of_integers(Type dtype) {
    static std::set<std::string> told;
    if (dtype.is_none() || ir::is_smooth(dtype) || ir::holds_array(dtype)) return;
    if (!is_logged(LogLevel::warning) || !told.insert(dtype.python_name()).second) return;
    log(LogLevel::warning, "an array of " + dtype.python_name() +
                               " is made with requires_grad=True: integers pass no gradient, and this one stays zero. "
                               "help: a dtype of floats, or no requires_grad=True");
}

void allocate_gradient(PyArray& array) {
    warn_of_integers(array.array.dtype);
    program::make_gradient(array);
    array.gradient->zeros.know_all();
    note_gradient(array);
}

nb::handle PyArray::grad() const {
    if (!requires_grad || grad_.is_valid()) return grad_;
    return grad_ = nb::steal(make_array(gradient_of(*this)));
}

void set_retain_grad(PyArray& array, bool retains, const char* api) {
    if (retains && !array.requires_grad) {
        throw UsageError(api, "retain_grad=True is for an array with a gradient. help: requires_grad=True",
                         ErrorCategory::value);
    }
    array.retain_grad = retains;
}

void set_gradient(PyArray& array, PyObject* gradient, const char* api) {
    if (!is_given(gradient)) {
        array.set_grad({});
        array.gradient.reset();
        array.array.view.grad = nullptr;
        array.requires_grad = false;
        array.retain_grad = false;
        return;
    }
    const runtime::Array& values = array.array;
    const runtime::Array& given = array_argument(gradient, api, "grad").array;
    auto same = [](auto a, auto b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
    if (given.dtype != values.dtype || !same(given.shape(), values.shape())) {
        throw UsageError(api,
                         "the gradient must have the shape and dtype of the array, " + values.dtype.python_name() +
                             " " + runtime::shape_text(values.shape()) + ", got " + given.dtype.python_name() + " " +
                             runtime::shape_text(given.shape()),
                         ErrorCategory::value);
    }
    if (given.device != values.device) {
        throw UsageError(api,
                         "the gradient is on '" + given.device->alias + "', the array on '" + values.device->alias +
                             "'; expected one device. help: .to('" + values.device->alias + "')",
                         ErrorCategory::runtime);
    }
    if (!same(given.strides(), values.strides()) && !(given.is_contiguous() && values.is_contiguous())) {
        throw UsageError(api,
                         "the gradient must have the strides of the array, " + runtime::shape_text(values.strides()) +
                             ", got " + runtime::shape_text(given.strides()) + ". help: contiguous()",
                         ErrorCategory::value);
    }
    array.array.view.grad = given.view.data;
    array.gradient = given.buffer;
    array.set_grad(nb::borrow(gradient));
    array.requires_grad = true;
    note_gradient(array);
}

}  // namespace weft::bindings
