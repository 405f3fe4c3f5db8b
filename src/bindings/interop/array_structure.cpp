#include "bindings/interop/array_structure.h"

#include "bindings/arrays/array_object.h"
#include "bindings/python/fastcall.h"

namespace weft::bindings {

PyTypeObject* array_structure_type = nullptr;

namespace {

PyArray& inner(PyObject* self) { return value_of(array_in(self)); }

nb::tuple four_of(const std::int64_t (&values)[kMaxDims]) {
    nb::list result;
    for (const std::int64_t value : values) result.append(value);
    return nb::tuple(result);
}

// The fields of weft::ArrayView, by the names that C programs know.
PyObject* get_data(PyObject* self, void*) { return PyLong_FromSize_t(inner(self).array.address()); }
PyObject* get_grad(PyObject* self, void*) {
    const PyArray& array = inner(self);
    return PyLong_FromSize_t(array.requires_grad ? program::gradient_of(array).address() : 0);
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(inner(self).array.ndim); }
PyObject* get_shape(PyObject* self, void*) {
    return guarded([&] { return four_of(inner(self).array.view.shape).release().ptr(); });
}
PyObject* get_strides(PyObject* self, void*) {
    return guarded([&] { return four_of(inner(self).array.view.strides).release().ptr(); });
}

PyGetSetDef fields[] = {{"data", get_data, nullptr, "Address of the first element.", nullptr},
                        {"grad", get_grad, nullptr, "Address of the first element of the gradient, or 0.", nullptr},
                        {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
                        {"shape", get_shape, nullptr, "Four extents; those past ndim mean nothing.", nullptr},
                        {"strides", get_strides, nullptr, "Four strides, in bytes.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(array_in(self));
    return 0;
}

int clear(PyObject* self) {
    Py_CLEAR(reinterpret_cast<ArrayStructure*>(self)->array);
    return 0;
}

void dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
    return guarded([&] {
        const runtime::Array& array = inner(self).array;
        return PyUnicode_FromFormat("<array_t of %s, shape %s>", array.dtype.python_name().c_str(),
                                    runtime::shape_text(array.shape()).c_str());
    });
}

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("An array as a launch takes it, from from_torch() and the like with "
                                  "return_ctype=True. Nothing but launches takes it. It keeps data and gradient "
                                  "alive.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_getset, fields},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {0, nullptr}};

}  // namespace

nb::object make_array_structure(nb::object array) {
    PyObject* result = array_structure_type->tp_alloc(array_structure_type, 0);
    if (!result) throw nb::python_error();
    reinterpret_cast<ArrayStructure*>(result)->array = array.release().ptr();
    return nb::steal(result);
}

void bind_array_structure(nb::module_& m) {
    PyType_Spec specification = {"warp.types.array_t", sizeof(ArrayStructure), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    nb::object type = nb::steal(PyType_FromSpec(&specification));
    if (!type.is_valid()) throw nb::python_error();
    array_structure_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    m.attr("array_t") = type;
}

}  // namespace weft::bindings
