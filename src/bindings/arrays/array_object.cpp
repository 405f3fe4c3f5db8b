#include "bindings/arrays/array_object.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "bindings/interop/array_structure.h"
#include "bindings/interop/foreign.h"
#include "bindings/interop/jax_array.h"
#include "bindings/interop/tensors.h"
#include "bindings/kernels/generics.h"
#include "bindings/python/device.h"
#include "bindings/python/log.h"
#include "ir/typing.h"
#include "program/tape/stopped_gradients.h"

namespace weft::bindings {

PyTypeObject* array_type = nullptr;

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

nb::object dtype_of(PyArray& array) {
    if (!array.dtype.is_valid()) array.dtype = dtype_to_python(array.array.dtype);
    return array.dtype;
}

nb::object wrap_array(runtime::Array array, nb::handle dtype) {
    nb::object result = nb::steal(make_array(std::move(array)));
    if (dtype.is_valid()) value_of(result.ptr()).dtype = nb::borrow(dtype);
    return result;
}

bool is_any(PyObject* dtype) { return dtype == typing_any(); }

Type dtype_argument(PyObject* dtype, const char* api) {
    if (!is_given(dtype)) return f32_type();
    // Classes mean the same type for ever. The table owns its keys, so no later object has the address of one.
    struct CachedDtype {
        PyObject* key = nullptr;
        Type type;
    };
    constexpr std::size_t kSize = 64;
    static CachedDtype known[kSize];
    if (!PyType_Check(dtype)) return require_dtype(dtype, api);
    CachedDtype& slot = known[(reinterpret_cast<std::uintptr_t>(dtype) >> 5) % kSize];
    if (slot.key != dtype) {
        Type type = require_dtype(dtype, api);
        Py_INCREF(dtype);
        Py_XDECREF(slot.key);
        slot = {dtype, type};
    }
    return slot.type;
}

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
    if (buffer->is_kept_without_gradient) buffer->got_gradient_later = true;
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
    bind_array_functions(m);
    bind_dlpack(m);
    bind_array_structure(m);
    bind_tensors(m);
    bind_jax_arrays(m);
}

}  // namespace weft::bindings
