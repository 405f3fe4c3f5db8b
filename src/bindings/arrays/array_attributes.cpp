#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "runtime/memory_pool.h"
#include "runtime/pinned.h"

namespace weft::bindings {
namespace {

template <typename Read>
PyObject* read(PyObject* self, const char* api, Read&& get) {
    return guarded([&] { return get(memory_of(self, api)); });
}

// For attributes that annotations have too: no elements, and any shape that was set.
template <typename Read>
PyObject* inspect(PyObject* self, Read&& get) {
    return guarded([&] { return get(value_of(self)); });
}

PyObject* tuple_of(std::span<const std::int64_t> values) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
    if (!tuple) throw nb::python_error();
    for (std::size_t i = 0; i < values.size(); ++i) {
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
    }
    return tuple;
}

PyObject* get_dtype(PyObject* self, void*) {
    return guarded([&] { return dtype_of(value_of(self)).release().ptr(); });
}

// reprlib before Python 3.12 writes "array('" + typecode + "', [" and the elements for every class called `array`;
// pytest shows values with it.
PyObject* get_typecode(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) { return nb::str(a.array.dtype.python_name().c_str()).release().ptr(); });
}

PyObject* get_ndim(PyObject* self, void*) {
    const PyArray& array = value_of(self);
    return PyLong_FromLong(array.pending ? array.pending->ndim.value_or(array.array.ndim) : array.array.ndim);
}

// Programs note the expected shape at annotations: there it is an attribute like any other.
constexpr const char* kNotedShape = "shape";

PyObject* get_shape(PyObject* self, void*) {
    const PyArray& array = value_of(self);
    if (array.pending && array.pending->shape) return tuple_of(*array.pending->shape);
    if (array.is_annotation && !array.pending) {
        PyObject* attributes = reinterpret_cast<ArrayObject*>(self)->attributes;
        PyObject* noted = attributes ? PyDict_GetItemString(attributes, kNotedShape) : nullptr;
        if (noted) return Py_NewRef(noted);
    }
    return inspect(self, [](PyArray& a) { return tuple_of(a.array.shape()); });
}

int set_shape(PyObject* self, PyObject* value, void*) {
    return guarded(
        [&] {
            if (!value || !value_of(self).is_annotation || value_of(self).pending) return array_set_shape(self, value);
            const nb::object attributes = nb::steal(PyObject_GenericGetDict(self, nullptr));
            if (!attributes.is_valid() || PyDict_SetItemString(attributes.ptr(), kNotedShape, value) != 0)
                throw nb::python_error();
            return 0;
        },
        -1);
}

PyObject* get_strides(PyObject* self, void*) {
    const PyArray& array = value_of(self);
    if (array.pending && array.pending->strides) return tuple_of(*array.pending->strides);
    return inspect(self, [](PyArray& a) { return tuple_of(a.array.strides()); });
}

PyObject* get_size(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) { return PyLong_FromLongLong(a.array.size()); });
}

PyObject* get_length(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) { return PyLong_FromLongLong(a.array.view.shape[0]); });
}

PyObject* get_capacity(PyObject* self, void*) {
    return inspect(self,
                   [](PyArray& a) { return PyLong_FromLongLong(a.array.buffer ? a.array.buffer->size_bytes : 0); });
}

PyObject* get_ptr(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) -> PyObject* {
        if (!a.array.view.data) Py_RETURN_NONE;
        runtime::require_memory(a.array, "array.ptr");
        return PyLong_FromSize_t(a.array.address());
    });
}

PyObject* get_device(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) {
        return a.is_annotation && !a.pending ? nb::none().release().ptr()
                                             : device_to_python(*a.array.device).release().ptr();
    });
}

PyObject* get_pinned(PyObject* self, void*) { return PyBool_FromLong(value_of(self).pinned); }

PyObject* get_is_contiguous(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) { return PyBool_FromLong(!a.is_annotation && a.array.is_contiguous()); });
}

PyObject* get_deleter(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) { return deleter_of(a.array).release().ptr(); });
}

PyObject* get_transposed(PyObject* self, void*) {
    return read(self, "array.T", [](PyArray& a) {
        return make_view(a, [](const runtime::Array& array) {
            int axes[kMaxDims];
            for (int i = 0; i < array.ndim; ++i) axes[i] = array.ndim - 1 - i;
            return runtime::transpose(array, {axes, static_cast<std::size_t>(array.ndim)});
        });
    });
}

PyObject* get_vars(PyObject* self, void*) {
    return inspect(self, [](PyArray& a) -> PyObject* {
        nb::dict fields;
        if (a.array.dtype.is_struct()) {
            for (const Type::Field& field : a.array.dtype.fields()) {
                fields[field.name.c_str()] = dtype_to_python(field.type);
            }
        }
        return fields.release().ptr();
    });
}

PyObject* get_grad(PyObject* self, void*) {
    return guarded([&] {
        const nb::handle grad = value_of(self).grad();
        return (grad.is_valid() ? nb::borrow(grad) : nb::none()).release().ptr();
    });
}

// True and False, NumPy's too; the truth of any other value would be an accident.
bool truth(PyObject* value, const char* api) {
    if (!value) throw UsageError(api, "cannot be deleted. help: set it to False", ErrorCategory::attribute);
    if (PyBool_Check(value)) return value == Py_True;
    if (std::strncmp(Py_TYPE(value)->tp_name, "numpy.bool", 10) == 0) return PyObject_IsTrue(value) == 1;
    throw UsageError(api, "is set to " + describe(value) + ", expected True or False", ErrorCategory::type);
}

int set_grad(PyObject* self, PyObject* value, void*) {
    return guarded(
        [&] {
            set_gradient(memory_of(self, "array.grad"), value, "array.grad");
            return 0;
        },
        -1);
}

PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(value_of(self).requires_grad); }

int set_requires_grad(PyObject* self, PyObject* value, void*) {
    return guarded(
        [&] {
            PyArray& array = memory_of(self, "array.requires_grad");
            if (!truth(value, "array.requires_grad")) {
                set_gradient(array, Py_None, "array.requires_grad");
            } else if (!array.requires_grad) {
                allocate_gradient(array);
            }
            return 0;
        },
        -1);
}

PyObject* get_memory_kind(PyObject* self, void*) {
    return read(self, "array.memory_kind", [](PyArray& array) {
        static PyObject* enums = nullptr;
        const runtime::Array& of = array.array;
        const char* kind = "HOST";
        if (of.buffer && of.buffer->kind)
            return function_of("warp._devices.enums", enums, "MemoryKind")(*of.buffer->kind).release().ptr();
        if (of.device->gpu())
            kind = runtime::is_pooled(of) ? "CUDA_MEMPOOL" : "CUDA_DEVICE";
        else if (runtime::is_pinned(of.address()))
            kind = "PINNED";
        return nb::object(function_of("warp._devices.enums", enums, "MemoryKind").attr(kind)).release().ptr();
    });
}

PyObject* get_retain_grad(PyObject* self, void*) { return PyBool_FromLong(value_of(self).retain_grad); }

int set_retain_grad(PyObject* self, PyObject* value, void*) {
    return guarded(
        [&] {
            PyArray& array = memory_of(self, "array.retain_grad");
            set_retain_grad(array, truth(value, "array.retain_grad"), "array.retain_grad");
            return 0;
        },
        -1);
}

}  // namespace

PyGetSetDef array_attributes[] = {
    {"dtype", get_dtype, nullptr, "Type of an element.", nullptr},
    {"typecode", get_typecode, nullptr,
     "The name of the dtype. Python before 3.12 asks for it: its reprlib takes every class that is called `array` for "
     "that of its module array.",
     nullptr},
    {"ndim", get_ndim, array_set_ndim, "Number of dimensions, without those of an element.", nullptr},
    {"shape", get_shape, set_shape,
     "Number of elements along each dimension. Setting it shows the same memory in another way: packed elements as by\n"
     "reshape(), else with the strides as they are. An error if the memory ends before.",
     nullptr},
    {"strides", get_strides, array_set_strides,
     "Distance in bytes between neighbours along each dimension. Setting it shows the same memory in another way; an\n"
     "error if the memory ends before. With another number of them, shape and ndim have to follow before\n"
     "the array is used.",
     nullptr},
    {"size", get_size, array_set_size, "Number of elements. That of one dimension can be set.", nullptr},
    {"length", get_length, nullptr, "Number of elements along the first dimension: len(a).", nullptr},
    {"capacity", get_capacity, array_set_capacity, "Bytes of the memory that this array is a view of.", nullptr},
    {"ptr", get_ptr, array_set_ptr,
     "Address of the first element; None for an empty array. It can be set to another place in the same memory.",
     nullptr},
    {"device", get_device, array_set_device, "The Device whose memory it is.", nullptr},
    {"memory_kind", get_memory_kind, nullptr,
     "A wp.MemoryKind: HOST, PINNED, CUDA_DEVICE, CUDA_MEMPOOL, or the kind that the allocator of the program names.",
     nullptr},
    {"pinned", get_pinned, array_set_pinned,
     "Whether pinned memory of the CPU was asked for, which CUDA devices copy from and to while Python goes on; "
     "without such a device it is ordinary memory.",
     nullptr},
    {"is_contiguous", get_is_contiguous, array_set_is_contiguous, "Whether the elements lie in C order without gaps.",
     nullptr},
    {"deleter", get_deleter, nullptr,
     "The function that frees the memory, as wp.array(ptr=..., deleter=...) was given it; else None.", nullptr},
    {"T", get_transposed, nullptr, "View with the dimensions reversed.", nullptr},
    {"vars", get_vars, nullptr, "Types of the fields by name if the elements are structs; else empty.", nullptr},
    {"grad", get_grad, set_grad, "The array of gradients, or None.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether gradients are kept. Setting it makes a gradient of zeros, or drops it.", nullptr},
    {"retain_grad", get_retain_grad, set_retain_grad,
     "Whether the gradient is still there after the backward pass of the launch that wrote the array, to be looked at. "
     "Otherwise that pass leaves zeros: later results do not depend on overwritten values.",
     nullptr},
    {"__array_interface__", array_interface, nullptr, "NumPy's description of the memory.", nullptr},
    {"__cuda_array_interface__", cuda_array_interface, nullptr, "Description of CUDA memory.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace weft::bindings
