// copy, deepcopy and pickle of arrays; handles for other processes; copies for JAX: Python does the
// work. Copies for tapes.
#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "program/tape/tape_memory.h"
#include "runtime/ipc.h"

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

// jax.numpy.asarray() and what else takes an array-like there.
PyObject* array_for_jax(PyObject* self, PyObject*) {
    return guarded([&] {
        refuse_reading(self, "array.__jax_array__()");
        static PyObject* module = nullptr;
        return function_of("warp._interop.jax_arrays", module, "copied_to_jax")(nb::handle(self)).release().ptr();
    });
}

nb::object keep(nb::handle array) {
    nb::list one;
    one.append(array);
    return keep_together(one)[0];
}

nb::list keep_together(nb::list arrays) {
    std::vector<const runtime::Array*> given;
    for (nb::handle object : arrays) given.push_back(&array_argument(object.ptr(), "Tape", "array").array);
    nb::list copies;
    for (runtime::Array& copy : program::keep_together(given)) copies.append(nb::steal(make_array(std::move(copy))));
    return copies;
}

// Handles of memory of CUDA devices and arrays in it, for pickling.py.
void bind_ipc(nb::module_& m) {
    m.def("ipc_handle_of", [](nb::handle array) {
        const runtime::IpcHandle handle =
            runtime::ipc_handle(memory_of(array.ptr(), "array.ipc_handle()").array, "array.ipc_handle()");
        return nb::bytes(handle.data(), handle.size());
    });
    m.def("open_ipc_handle", [](nb::bytes given, nb::handle device) {
        runtime::IpcHandle handle;
        std::memcpy(handle.data(), given.data(), handle.size());
        const auto [data, bytes] = runtime::open_ipc_handle(
            handle, device_from_python(device.ptr(), "from_ipc_handle()"), "from_ipc_handle()");
        return nb::make_tuple(reinterpret_cast<std::uintptr_t>(data), bytes);
    });
    m.def("close_ipc_handle", [](std::uintptr_t address, nb::handle device) {
        runtime::close_ipc_handle(reinterpret_cast<void*>(address),
                                  device_from_python(device.ptr(), "from_ipc_handle()"));
    });
}

}  // namespace weft::bindings
