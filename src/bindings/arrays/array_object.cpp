#include "bindings/arrays/array_object.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "bindings/values/patterns.h"

namespace weft::bindings {

namespace {

PyObject* typing_any() {
    static PyObject* any = nb::object(nb::module_::import_("typing").attr("Any")).release().ptr();
    return any;
}

// ---- life ----

PyObject* array_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    return guarded([&] { return construct_array(type, args, keywords, 0); });
}

PyObject* array_vectorcall(PyObject* type, PyObject* const* args, size_t count, PyObject* keywords) {
    return guarded([&] {
        return construct_array(reinterpret_cast<PyTypeObject*>(type), args, PyVectorcall_NARGS(count), keywords, 0);
    });
}

int array_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* object = reinterpret_cast<ArrayObject*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(object->attributes);
    Py_VISIT(object->value.dtype.ptr());
    Py_VISIT(object->value.known_grad().ptr());
    return 0;
}

int array_clear(PyObject* self) {
    auto* object = reinterpret_cast<ArrayObject*>(self);
    Py_CLEAR(object->attributes);
    object->value.dtype.reset();
    object->value.set_grad({});
    // The gradient's memory is gone with its array.
    object->value.requires_grad = false;
    object->value.gradient.reset();
    object->value.array.view.grad = nullptr;
    return 0;
}

void array_dealloc(PyObject* self) {
    auto* object = reinterpret_cast<ArrayObject*>(self);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (object->weak_references) PyObject_ClearWeakRefs(self);
    Py_CLEAR(object->attributes);
    object->value.~PyArray();
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ArrayHead, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayHead, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ---- protocols ----

Py_ssize_t array_length(PyObject* self) { return static_cast<Py_ssize_t>(value_of(self).array.view.shape[0]); }

// An annotation is always true, so that `annotation or other` works. An array is true if its first axis is not empty;
// its values do not matter: `if mask:` asks whether there is a mask.
int array_bool(PyObject* self) {
    PyArray& array = value_of(self);
    return static_cast<int>(array.is_annotation || array.array.view.shape[0] > 0);
}

Py_hash_t array_hash(PyObject* self) {
    PyArray& array = value_of(self);
    const void* identity = self;
    if (array.is_annotation) identity = array.array.dtype.node();
    if (!identity) identity = array.dtype.ptr();
    auto bits = reinterpret_cast<std::uintptr_t>(identity);
    return static_cast<Py_hash_t>((bits >> 4) + (array.is_annotation ? array.array.ndim : 0));
}

constexpr const char* kDoc =
    "array(data=None, dtype=None, shape=None, strides=None, length=None, ptr=None, capacity=None, device=None, "
    "pinned=False, copy=True, owner=True, ndim=None, grad=None, requires_grad=False, deleter=None, "
    "retain_grad=False)\n--\n\n"
    "An array of up to four dimensions whose elements are scalars, vectors, matrices or structs.\n\n"
    "Args:\n"
    "    data: numbers in lists or tuples, a NumPy array, another array, or an object with __array_interface__ or the\n"
    "        buffer protocol. Inner dimensions become the components of a vector or matrix dtype.\n"
    "    dtype: type of the elements; by default the scalars that NumPy sees in the data: [1.0] is "
    "float64,\n"
    "        [1] int64, a list of n vec3 becomes (n, 3) floats.\n"
    "    shape: of the result, in elements.\n"
    "    strides: in bytes, of the memory at ptr.\n"
    "    length: the shape of a one-dimensional array.\n"
    "    ptr: address of memory to use as it is, with dtype and shape.\n"
    "    capacity: bytes of the memory at ptr.\n"
    "    device: the owner of the memory; by default the default device.\n"
    "    copy: False uses the memory of the data if its type and layout allow it, else copies.\n"
    "    owner: False means that deleter is not to be called.\n"
    "    ndim: number of dimensions of an annotation, or of empty data; other data say it themselves.\n"
    "    grad: the array of gradients.\n"
    "    requires_grad: makes an array of gradients, of zeros.\n"
    "    retain_grad: tapes leave it the gradient of its last contents, to be looked at.\n"
    "    deleter: function of (address, bytes), called when the last view of the memory at ptr is gone.\n\n"
    "Without data, ptr and shape it is the annotation of a kernel's parameter: wp.array(dtype=float, ndim=2), also\n"
    "written wp.array2d[float].\n\n"
    "Raises: UsageError if data, shape and dtype do not fit each other.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {Py_tp_new, reinterpret_cast<void*>(array_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(array_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(array_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(array_clear)},
    {Py_tp_getset, array_attributes},
    {Py_tp_members, members},
    {Py_tp_methods, array_methods},
    {Py_tp_str, reinterpret_cast<void*>(array_str)},
    {Py_tp_repr, reinterpret_cast<void*>(array_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(array_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(array_hash)},
    {Py_tp_iter, reinterpret_cast<void*>(PySeqIter_New)},
    {Py_mp_length, reinterpret_cast<void*>(array_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(array_subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(array_assign_subscript)},
    {Py_sq_item, reinterpret_cast<void*>(array_item)},
    {Py_nb_bool, reinterpret_cast<void*>(array_bool)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(array_get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(array_release_buffer)},
};

// ---- array1d ... array4d ----

// The class of `wp.array2d` and its like: a call makes an array or annotation of two dimensions, a subscript an
// annotation.
struct ArrayMaker {
    int ndim;
};

}  // namespace

PyObject* make_annotation(nb::handle dtype, int ndim) {
    if (ndim != kAnyDims && (ndim < 1 || ndim > kMaxDims)) {
        throw UsageError("array()", "arrays have 1 to 4 dimensions, got ndim=" + std::to_string(ndim),
                         ErrorCategory::value);
    }
    runtime::Array array;
    array.ndim = ndim;
    if (!dtype.is(typing_any())) {
        if (std::optional<Type> type = dtype_from_python(dtype)) {
            array.dtype = *type;
        } else {
            // A generic one: a type variable, or a class that stands for several types. A dtype that can be no
            // element's type is refused here, at the line that wrote it.
            bool generic = PyType_Check(dtype.ptr()) || is_type_variable(dtype) || is_value_pattern(dtype);
            if (generic && PyType_Check(dtype.ptr())) {
                generic = nb::cast<std::string>(nb::str(dtype.attr("__module__"))) != "builtins";
            }
            if (!generic) array.dtype = require_dtype(dtype, "array()");
        }
    }
    PyObject* result = make_array(std::move(array));
    value_of(result).is_annotation = true;
    if (value_of(result).array.dtype.is_none()) value_of(result).dtype = nb::borrow(dtype);
    return result;
}

bool is_any(PyObject* dtype) { return dtype == typing_any(); }

runtime::Shape shape_argument(PyObject* shape, const char* api) {
    if (PyIndex_Check(shape) && !PySequence_Check(shape)) return {integer(shape, api, "shape")};
    nb::object items = sequence_items(shape);
    if (!items.is_valid()) {
        throw UsageError(api, "'shape' must be an integer or a tuple of integers, got " + describe(shape),
                         ErrorCategory::type);
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    runtime::Shape result(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        result[static_cast<std::size_t>(i)] = integer(PySequence_Fast_GET_ITEM(items.ptr(), i), api, "shape");
    }
    return result;
}

runtime::Shape shape_argument(PyObject* shape, PyObject* n, PyObject* length, const char* api) {
    PyObject* given = nullptr;
    for (PyObject* candidate : {shape, n, length}) {
        if (!is_given(candidate)) continue;
        if (given) {
            throw UsageError(api, "'shape', 'n' and 'length' mean the same: give one of them", ErrorCategory::type);
        }
        given = candidate;
    }
    if (!given) return {0};
    return shape_argument(given, api);
}

PyObject* finish(runtime::Array array, const Options& options, PyTypeObject* type) {
    PyObject* result = make_array(std::move(array), type);
    value_of(result).pinned = options.pinned && options.device->is_cpu;
    if (!options.requires_grad && !options.retain_grad) return result;
    nb::object owned = nb::steal(result);
    if (options.requires_grad) allocate_gradient(value_of(result));
    set_retain_grad(value_of(result), options.retain_grad, "array");
    return owned.release().ptr();
}

void bind_arrays(nb::module_& m) {
    std::vector<PyType_Slot> all = arithmetic_slots();
    all.insert(all.begin(), std::begin(slots), std::end(slots));
    all.push_back({0, nullptr});
    PyType_Spec specification = {"warp.array", sizeof(ArrayObject), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, all.data()};
    nb::object type = nb::steal(PyType_FromSpec(&specification));
    if (!type.is_valid()) throw nb::python_error();
    array_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    array_type->tp_vectorcall = array_vectorcall;
    // NumPy's operators leave the work to ours, so that numpy.float32(2) * a is an array.
    type.attr("__array_priority__") = 1000.0;
    m.attr("array") = type;

    nb::class_<ArrayMaker>(
        m, "ArrayMaker",
        "An array with as many dimensions as the name says: annotations such as "
        "wp.array2d[float] or wp.array2d(dtype=float), and arrays from data as wp.array() makes them.")
        .def("__call__",
             [](const ArrayMaker& self, nb::args args, nb::kwargs keywords) {
                 return nb::steal(construct_array(array_type, args.ptr(), keywords.ptr(), self.ndim));
             })
        .def("__getitem__",
             [](const ArrayMaker& self, nb::handle dtype) { return nb::steal(make_annotation(dtype, self.ndim)); })
        .def("__repr__", [](const ArrayMaker& self) { return nb::str("array{}d").format(self.ndim); });
    for (int ndim = 1; ndim <= kMaxDims; ++ndim) {
        nb::str name = nb::str("array{}d").format(ndim);
        m.attr(name) = nb::cast(ArrayMaker{ndim});
    }
    m.def(
        "is_annotation",
        [](nb::handle object) { return array_pointer(object) && array_pointer(object)->is_annotation; },
        nb::arg("object").none(), "Whether `object` is the annotation of an array, without memory.");
}

}  // namespace weft::bindings
