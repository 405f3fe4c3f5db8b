// copy, deepcopy and pickle of arrays; handles for other processes. python/warp/_arrays/pickling.py does the work.
#include "bindings/arrays/array_object.h"

namespace weft::bindings {
namespace {

nb::object pickling(const char* name) {
    static PyObject* module = nullptr;
    return function_of("warp._arrays.pickling", module, name);
}

}  // namespace

// Another array over the same memory, with the attributes that the program has set.
PyObject* array_copy(PyObject* self, PyObject*) {
    return guarded([&] {
        if (value_of(self).is_annotation && !value_of(self).pending) return Py_NewRef(self);
        PyArray& array = memory_of(self, "copy.copy()");
        PyObject* result = make_view(array, [](const runtime::Array& of) { return of; });
        if (PyObject* const attributes = reinterpret_cast<ArrayObject*>(self)->attributes)
            reinterpret_cast<ArrayObject*>(result)->attributes = PyDict_Copy(attributes);
        return result;
    });
}

PyObject* array_deep_copy(PyObject* self, PyObject* memo) {
    return guarded([&] {
        if (value_of(self).is_annotation && !value_of(self).pending) return Py_NewRef(self);
        refuse_reading(self, "copy.deepcopy()");
        return pickling("deep_copy")(nb::handle(self), nb::handle(memo)).release().ptr();
    });
}

PyObject* array_reduce(PyObject* self, PyObject*) {
    return guarded([&] {
        if (!value_of(self).is_annotation || value_of(self).pending) refuse_reading(self, "pickling an array");
        return pickling("reduce")(nb::handle(self)).release().ptr();
    });
}

PyObject* array_ipc_handle(PyObject* self, PyObject*) {
    return guarded([&] {
        memory_of(self, "array.ipc_handle()");
        return pickling("ipc_handle")(nb::handle(self)).release().ptr();
    });
}

}  // namespace weft::bindings
