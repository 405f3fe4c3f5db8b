#include "bindings/arrays/array_structure.h"

#include <memory>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"

namespace weft::bindings {

PyTypeObject* array_structure_type = nullptr;

namespace {

ArrayStructure& structure_of(PyObject* self) { return *reinterpret_cast<ArrayStructure*>(self); }

const runtime::Array& shown(PyObject* self) {
    const ArrayStructure& structure = structure_of(self);
    return structure.array ? value_of(structure.array).array : structure.shown;
}

nb::tuple four_of(const std::int64_t (&values)[kMaxDims]) {
    nb::list result;
    for (const std::int64_t value : values) result.append(value);
    return nb::tuple(result);
}

// The fields of weft::ArrayView, by the names that C programs know.
PyObject* get_data(PyObject* self, void*) { return PyLong_FromSize_t(shown(self).address()); }
PyObject* get_grad(PyObject* self, void*) {
    PyObject* const array = structure_of(self).array;
    const bool has_gradient = array && value_of(array).requires_grad;
    return PyLong_FromSize_t(has_gradient ? program::gradient_of(value_of(array)).address() : 0);
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(shown(self).ndim); }
PyObject* get_shape(PyObject* self, void*) {
    return guarded([&] { return four_of(shown(self).view.shape).release().ptr(); });
}
PyObject* get_strides(PyObject* self, void*) {
    return guarded([&] { return four_of(shown(self).view.strides).release().ptr(); });
}

PyObject* get_class(PyObject*, void*) {
    return guarded([&] {
        static PyObject* module = nullptr;
        return function_of("warp._arrays.arrays", module, "ArrayView").release().ptr();
    });
}

PyGetSetDef fields[] = {
    {"__class__", get_class, nullptr, "A ctypes.Structure, as which isinstance() takes it.", nullptr},
    {"data", get_data, nullptr, "Address of the first element.", nullptr},
    {"grad", get_grad, nullptr, "Address of the first element of the gradient, or 0.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"shape", get_shape, nullptr, "Four extents; those past ndim mean nothing.", nullptr},
    {"strides", get_strides, nullptr, "Four strides, in bytes.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(structure_of(self).array);
    Py_VISIT(structure_of(self).owner);
    return 0;
}

int clear(PyObject* self) {
    Py_CLEAR(structure_of(self).array);
    Py_CLEAR(structure_of(self).owner);
    return 0;
}

void dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    std::destroy_at(&structure_of(self).shown);
    std::destroy_at(&structure_of(self).home);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
    return guarded([&] {
        const runtime::Array& array = shown(self);
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

PyObject* array_in(PyObject* self) {
    ArrayStructure& structure = structure_of(self);
    if (!structure.array) {
        runtime::Array array = structure.shown;
        array.buffer = borrowed_memory(array, structure.owner);
        if (structure.home) array.buffer->home = std::make_unique<const runtime::Home>(*structure.home);
        nb::object made = nb::steal(make_array(std::move(array)));
        if (!structure.array) {  // Python may have run other code meanwhile, which made it too
            structure.array = made.release().ptr();
            Py_CLEAR(structure.owner);
        }
    }
    return structure.array;
}

nb::object as_elements_of(PyObject* object, Type element, int ndim) {
    const runtime::Array& array = value_of(object).array;
    if (!element.is_numeric_aggregate() || array.dtype != element.scalar_type()) return {};
    const int inner = element.is_matrix() ? 2 : 1;
    if (array.ndim != ndim + inner) return {};
    if (array.view.shape[ndim] != element.rows()) return {};
    if (inner == 2 && array.view.shape[ndim + 1] != element.cols()) return {};
    return nb::handle(object).attr("view")(dtype_to_python(element));
}

const ArrayView* plain_view(PyObject* self, Type element, int ndim, const runtime::Device& device) {
    const ArrayStructure& structure = structure_of(self);
    const runtime::Array& array = structure.shown;
    if (structure.array || array.dtype != element || array.ndim != ndim || array.device != &device) return nullptr;
    if (structure.home && !structure.home->has(array.extent().second)) return nullptr;
    return &array.view;
}

namespace {

nb::object new_structure() {
    PyObject* result = array_structure_type->tp_alloc(array_structure_type, 0);
    if (!result) throw nb::python_error();
    std::construct_at(&structure_of(result).shown);
    std::construct_at(&structure_of(result).home);
    return nb::steal(result);
}

}  // namespace

nb::object make_array_structure(nb::object array) {
    nb::object result = new_structure();
    structure_of(result.ptr()).array = array.release().ptr();
    return result;
}

nb::object make_array_structure(runtime::Array shown, nb::object owner, std::optional<runtime::Home> home) {
    nb::object result = new_structure();
    ArrayStructure& structure = structure_of(result.ptr());
    structure.shown = std::move(shown);
    structure.owner = owner.release().ptr();
    structure.home = home;
    return result;
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
