// The methods of `array`.
#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/numpy_api.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "runtime/array_copies.h"
#include "runtime/pinned.h"

namespace weft::bindings {

using runtime::Array;
using runtime::Shape;

// During a capture the elements do not exist yet.
void refuse_reading(PyObject* self, const char* api) {
    runtime::refuse_recording(*memory_of(self, api).array.device, api, "look at arrays after wp.capture_launch()");
}

namespace {

// ---- views ----

PyObject* reshape(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.reshape()", {"shape"}, 1);
        PyArray& array = memory_of(self, signature.api());
        Shape shape;
        if (count > 1 && !keywords) {
            for (Py_ssize_t i = 0; i < count; ++i) shape.push_back(integer(args[i], signature.api(), "shape"));
        } else {
            shape = shape_argument(signature.parse(args, count, keywords)[0], signature.api());
        }
        return make_view(array, [&](const Array& of) { return runtime::reshape(of, shape); });
    });
}

PyObject* flatten(PyObject* self, PyObject*) {
    return guarded([&] {
        PyArray& array = memory_of(self, "array.flatten()");
        return make_view(array, [](const Array& of) { return runtime::reshape(of, Shape{of.size()}); });
    });
}

PyObject* transpose(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.transpose()", {"axes"});
        PyArray& array = memory_of(self, signature.api());
        Shape axes;
        if (count > 1) {
            for (Py_ssize_t i = 0; i < count; ++i) axes.push_back(integer(args[i], signature.api(), "axes"));
        } else if (PyObject* given = signature.parse(args, count, keywords)[0]; is_given(given)) {
            axes = shape_argument(given, signature.api());
        } else {
            for (int i = array.array.ndim - 1; i >= 0; --i) axes.push_back(i);
        }
        std::vector<int> narrow;
        for (std::int64_t axis : axes) narrow.push_back(static_cast<int>(std::clamp<std::int64_t>(axis, -99, 99)));
        return make_view(array, [&](const Array& of) { return runtime::transpose(of, narrow); });
    });
}

PyObject* view(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.view()", {"dtype"}, 1);
        PyArray& array = memory_of(self, signature.api());
        Type type = require_dtype(signature.parse(args, count, keywords)[0], signature.api());
        if (type == array.array.dtype) return make_view(array, [](const Array& of) { return of; });
        auto reinterpreted = [&](const Array& of) { return runtime::reinterpret(of, type); };
        bool same_numbers = array.array.dtype.is_numeric_aggregate() || array.array.dtype.is_scalar();
        same_numbers = same_numbers && (type.is_numeric_aggregate() || type.is_scalar()) &&
                       array.array.dtype.scalar() == type.scalar();
        if (same_numbers) return make_view(array, reinterpreted);
        // Other numbers over the same bits have no gradient.
        PyObject* result = make_array(reinterpreted(array.array));
        value_of(result).array.view.grad = nullptr;
        return result;
    });
}

// ---- copies ----

PyObject* self_again(PyObject* self) {
    Py_INCREF(self);
    return self;
}

PyObject* contiguous(PyObject* self, PyObject*) {
    return guarded([&] {
        PyArray& array = memory_of(self, "array.contiguous()");
        if (array.array.is_contiguous()) return self_again(self);
        Options options{array.array.device, array.requires_grad, array.pinned};
        const runtime::Pinning pinning(options.pinned);
        nb::object result =
            nb::steal(finish(runtime::empty(array.array.dtype, array.array.shape(), *array.array.device), options));
        copy_elements(value_of(result.ptr()), array, 0, 0, 0, "array.contiguous()");
        return result.release().ptr();
    });
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<2> signature("array.to()", {"device", "requires_grad"}, 1);
        auto given = signature.parse(args, count, keywords);
        PyArray& array = memory_of(self, signature.api());
        runtime::Device& device = device_from_python(given[0], signature.api());
        if (&device == array.array.device) return self_again(self);
        const Options options{&device, flag(given[1], array.requires_grad), array.pinned};
        const runtime::Pinning pinning(options.pinned);
        nb::object result = nb::steal(finish(runtime::empty(array.array.dtype, array.array.shape(), device), options));
        copy_elements(value_of(result.ptr()), array, 0, 0, 0, signature.api());
        return result.release().ptr();
    });
}

bool is_float(Type type) { return (type.is_scalar() || type.is_numeric_aggregate()) && info(type.scalar()).is_float(); }

PyObject* astype(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.astype()", {"dtype"}, 1);
        const char* const kApi = signature.api();
        const auto given = signature.parse(args, count, keywords);
        PyArray& array = memory_of(self, kApi);
        Type type = require_dtype(given[0], kApi);
        Options options{array.array.device, array.requires_grad && is_float(type), array.pinned};
        const runtime::Pinning pinning(options.pinned);
        // A graph converts by a kernel, when it runs.
        const bool is_captured = runtime::current_recording(*array.array.device) && type != array.array.dtype;
        runtime::Array made = is_captured ? runtime::empty(type, array.array.shape(), *array.array.device)
                                          : array_from_data(self, type, std::nullopt, true, *array.array.device, kApi);
        nb::object result = nb::steal(finish(std::move(made), options));
        // By a kernel on a tape too, since kernels have adjoints.
        if (is_captured || (write_observer() && options.requires_grad)) {
            static PyObject* module = nullptr;
            function_of("warp.utils", module, "array_cast")(nb::handle(self), result);
        }
        return result.release().ptr();
    });
}

PyObject* numpy_method(PyObject* self, PyObject*) {
    return guarded([&] {
        refuse_reading(self, "array.numpy()");
        return numpy_view(self).release().ptr();
    });
}

// numpy.asarray calls it for objects without a buffer; NumPy 2 passes `copy`.
PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<2> signature("array.__array__()", {"dtype", "copy"});
        auto given = signature.parse(args, count, keywords);
        refuse_reading(self, signature.api());
        const Type held = memory_of(self, signature.api()).array.dtype;
        if (is_bits_in_numpy(held) && !numpy::package_dtype(held.scalar()).is_valid()) {
            throw UsageError(signature.api(),
                             "NumPy has no " + std::string(info(held.scalar()).python) +
                                 ". help: pip install ml_dtypes; array.astype(wp.float32) for the values; "
                                 "array.numpy() for the bits",
                             ErrorCategory::type);
        }
        nb::object result = numpy_view(self);
        bool must_copy = flag(given[1], false);
        bool must_share = given[1] && given[1] != Py_None && !must_copy;
        if (is_given(given[0])) {
            nb::object dtype = numpy::module().attr("dtype")(nb::handle(given[0]));
            if (!dtype.equal(result.attr("dtype"))) {
                if (must_share) {
                    throw UsageError(signature.api(), "another dtype needs a copy, and copy=False",
                                     ErrorCategory::value);
                }
                return nb::object(result.attr("astype")(dtype)).release().ptr();
            }
        }
        if (must_copy) result = result.attr("copy")();
        return result.release().ptr();
    });
}

PyObject* list(PyObject* self, PyObject*) {
    return guarded([&] {
        refuse_reading(self, "array.list()");
        const Array& given = memory_of(self, "array.list()").array;
        const Array array = runtime::contiguous(runtime::on_host(given));
        nb::object result = nb::steal(PyList_New(static_cast<Py_ssize_t>(array.size())));
        if (!result.is_valid()) throw nb::python_error();
        const std::byte* at = runtime::host_data(array);
        for (std::int64_t i = 0; i < array.size(); ++i, at += array.dtype.size_bytes()) {
            nb::object element = array.dtype.is_struct() ? struct_to_python(array.dtype, at, given.buffer.get())
                                                         : value_to_python(array.dtype, at);
            PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), element.release().ptr());
        }
        return result.release().ptr();
    });
}

// ---- writing in place ----

PyObject* fill(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.fill_()", {"value"}, 1);
        const auto given = signature.parse(args, count, keywords);
        fill_array(memory_of(self, signature.api()), given[0], signature.api());
        return self_again(self);
    });
}

PyObject* zero(PyObject* self, PyObject*) {
    return guarded([&] {
        PyArray& array = memory_of(self, "array.zero_()");
        record_write(array);
        without_gil(array.array.size_bytes(), [&] { runtime::zero(array.array); });
        count_write(array);
        return self_again(self);
    });
}

// Tapes keep the contents that their entries read, so that a read needs no mark.
PyObject* mark_read(PyObject* self, PyObject*) {
    return guarded([&] {
        memory_of(self, "array.mark_read()");
        return Py_NewRef(Py_None);
    });
}

PyObject* mark_init(PyObject* self, PyObject*) {
    return guarded([&] {
        memory_of(self, "array.mark_init()");
        return Py_NewRef(Py_None);
    });
}

PyObject* mark_write(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<5> signature("array.mark_write()",
                                            {"arg_name", "kernel_name", "filename", "lineno", "operation"}, 0);
        signature.parse(args, count, keywords);
        count_write(memory_of(self, "array.mark_write()"));
        return Py_NewRef(Py_None);
    });
}

PyObject* assign(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("array.assign()", {"src"}, 1);
        const char* const kApi = signature.api();
        PyObject* const source = signature.parse(args, count, keywords)[0];
        PyArray& array = memory_of(self, kApi);
        if (PyFloat_Check(source) || PyLong_Check(source)) {
            throw UsageError(kApi, "expected an array or a sequence, got " + describe(source) + ". help: fill_()",
                             ErrorCategory::type);
        }
        PyArray* given = array_pointer(source);
        if (given && same_memory(memory_of(source, kApi).array.dtype, array.array.dtype)) {
            copy_elements(array, *given, 0, 0, 0, kApi);
        } else if (given && given->requires_grad && write_observer()) {
            nb::object converted = nb::handle(source).attr("astype")(dtype_of(array));
            copy_elements(array, value_of(converted.ptr()), 0, 0, 0, kApi);
        } else {
            // A graph has the data of the time of the capture.
            const bool copies = !given && runtime::current_recording(*array.array.device);
            const nb::object converted = nb::steal(make_array(
                array_from_data(source, array.array.dtype, std::nullopt, copies, *array.array.device, kApi)));
            copy_elements(array, value_of(converted.ptr()), 0, 0, 0, kApi);
        }
        return self_again(self);
    });
}

// ---- numbers of whole arrays ----

PyObject* reductions_module = nullptr;

// `name`_of() of warp._arrays.reductions, called with the array and these arguments.
PyObject* reduced(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        memory_of(self, ("array." + std::string(name) + "()").c_str());
        std::vector<PyObject*> all{self};
        all.insert(all.end(), args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
        const std::string of = std::string(name) + "_of";
        const nb::object function = function_of("warp._arrays.reductions", reductions_module, of.c_str());
        PyObject* const result =
            PyObject_Vectorcall(function.ptr(), all.data(), static_cast<std::size_t>(count) + 1, keywords);
        if (!result) throw nb::python_error();
        return result;
    });
}

PyObject* sum(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("sum", self, args, count, keywords);
}
PyObject* mean(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("mean", self, args, count, keywords);
}
PyObject* min(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("min", self, args, count, keywords);
}
PyObject* max(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("max", self, args, count, keywords);
}
PyObject* argmin(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("argmin", self, args, count, keywords);
}
PyObject* argmax(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("argmax", self, args, count, keywords);
}
PyObject* dot(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return reduced("dot", self, args, count, keywords);
}

// ---- for C ----

PyObject* cptr(PyObject* self, PyObject*) {
    return guarded([&] {
        const Array& array = memory_of(self, "array.cptr()").array;
        nb::object ctypes = nb::module_::import_("ctypes");
        nb::object element = ctypes.attr("c_byte");
        if (array.dtype.is_scalar() || array.dtype.is_numeric_aggregate()) {
            element = ctype_of(array.dtype.scalar());
            if (!array.dtype.is_scalar()) element = element * nb::int_(array.dtype.components());
        } else {
            element = element * nb::int_(array.dtype.size_bytes());
        }
        nb::object pointer = ctypes.attr("cast")(array.address(), ctypes.attr("POINTER")(element));
        pointer.attr("_array") = nb::handle(self);  // keeps the memory alive
        return pointer.release().ptr();
    });
}

PyObject* ctype(PyObject* self, PyObject*) {
    return guarded([&] {
        static PyObject* module = nullptr;
        memory_of(self, "array.__ctype__()");
        return function_of("warp._arrays.arrays", module, "view_of")(nb::handle(self)).release().ptr();
    });
}

PyObject* class_getitem(PyObject*, PyObject* item) {
    return guarded([&] {
        if (!PyTuple_Check(item)) return make_annotation(item, 1);
        if (PyTuple_GET_SIZE(item) != 2) {
            throw UsageError("array[]", "expected array[dtype] or array[dtype, ndim], got " + describe(item),
                             ErrorCategory::type);
        }
        nb::object ndim = nb::borrow(PyTuple_GET_ITEM(item, 1));
        if (nb::object values = nb::getattr(ndim, "__args__", nb::none()); !values.is_none() && nb::len(values) == 1)
            ndim = values[0];  // Literal[2]
        if (is_any(ndim.ptr())) return make_annotation(PyTuple_GET_ITEM(item, 0), kAnyDims);
        return make_annotation(PyTuple_GET_ITEM(item, 0), static_cast<int>(integer(ndim.ptr(), "array[]", "ndim")));
    });
}

// ---- text ----

std::string annotation_text(PyArray& array) {
    const int ndim = array.array.ndim;
    const Type dtype = array.array.dtype;
    if (!dtype.is_none() && ndim != kAnyDims) return Type::array(dtype, ndim).python_name();
    std::string name = !dtype.is_none()                  ? dtype.python_name()
                       : PyType_Check(array.dtype.ptr()) ? nb::cast<std::string>(nb::str(array.dtype.attr("__name__")))
                                                         : nb::cast<std::string>(nb::str(array.dtype));
    if (ndim == kAnyDims) return "array[" + name + ", Any]";
    return "array" + (ndim == 1 ? "" : std::to_string(ndim) + "d") + "[" + name + "]";
}

// As NumPy would show it, or as a list if NumPy has no such type.
nb::object shown(PyObject* self) {
    Type dtype = value_of(self).array.dtype;
    if ((dtype.is_scalar() || dtype.is_numeric_aggregate()) && !is_bits_in_numpy(dtype)) return numpy_view(self);
    nb::object values = nb::steal(list(self, nullptr));
    if (!values.is_valid()) throw nb::python_error();
    return values;
}

PyMethodDef fast(const char* name, PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*),
                 const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL | METH_KEYWORDS, doc};
}

}  // namespace

PyObject* array_str(PyObject* self) {
    return guarded([&] {
        PyArray& array = value_of(self);
        if (array.is_annotation) return nb::str(annotation_text(array).c_str()).release().ptr();
        return nb::str(shown(self)).release().ptr();
    });
}

PyObject* array_repr(PyObject* self) {
    return guarded([&] {
        PyArray& array = value_of(self);
        if (array.is_annotation) {  // wp.array2d[wp.float32]: an expression that makes it again
            std::string text = annotation_text(array);
            const Type dtype = array.array.dtype;
            const bool is_named = !dtype.is_none() && named_type(dtype.python_name());
            if (is_named) text.insert(text.find('[') + 1, "wp.");
            return nb::str(("wp." + text).c_str()).release().ptr();
        }
        nb::object values = shown(self);
        std::string text;
        if (PyList_Check(values.ptr())) {
            text = nb::cast<std::string>(nb::repr(values));
        } else {
            nb::object format = numpy::module().attr("array2string");
            text = nb::cast<std::string>(nb::str(format(values, nb::arg("separator") = ", ",
                                                        nb::arg("prefix") = "warp.array(", nb::arg("suffix") = ",")));
        }
        text = "warp.array(" + text + ", dtype=" + array.array.dtype.python_name() +
               ", shape=" + runtime::shape_text(array.array.shape()) + ", device='" +
               nb::cast<std::string>(nb::str(device_to_python(*array.array.device))) + "')";
        return nb::str(text.c_str()).release().ptr();
    });
}

PyMethodDef array_methods[] = {
    {"__class_getitem__", class_getitem, METH_O | METH_CLASS, "wp.array[dtype]: the annotation of an array."},
    fast("__dlpack__", array_dlpack,
         "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "A DLPack capsule of the memory, for other libraries. stream must be None or -1 on the CPU; copy=True makes a "
         "copy first. Raises BufferError for another device, and for a read-only array if the consumer does not "
         "know versions."),
    {"__jax_array__", array_for_jax, METH_NOARGS,
     "A copy as an array of JAX, of the same device: for jax.numpy.asarray(array) and functions of jax.numpy."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "(kind, number) of the device, as DLPack numbers them."},
    fast("reshape", reshape,
         "reshape($self, *shape)\n--\n\n"
         "A view of another shape, of as many elements; -1 stands for the remaining factor. The array must be "
         "contiguous."),
    {"flatten", flatten, METH_NOARGS,
     "flatten($self)\n--\n\n"
     "A one-dimensional view. The array must be contiguous."},
    fast("transpose", transpose,
         "transpose($self, axes=None)\n--\n\nA view with the dimensions in another order; by default "
         "reversed."),
    fast("view", view,
         "view($self, dtype)\n--\n\n"
         "A view of the same bytes as another dtype of the same size. Vectors and matrices as scalars add their\n"
         "dimensions at the end: vec4 of shape (n,) as float is (n, 4), and the other way round."),
    {"contiguous", contiguous, METH_NOARGS,
     "contiguous($self)\n--\n\n"
     "The array itself if its elements lie in C order without gaps, else a copy."},
    fast("to", to,
         "to($self, device, requires_grad=None)\n--\n\nThe array itself if it is on this device, else a copy there."),
    fast("astype", astype,
         "astype($self, dtype)\n--\n\n"
         "A copy with the numbers converted to another dtype. Floats made of floats require a gradient where these "
         "do."),
    {"numpy", numpy_method, METH_NOARGS,
     "numpy($self)\n--\n\n"
     "A NumPy array over the same memory; vectors and matrices add their dimensions at the end."},
    fast("__array__", array_method, "__array__($self, dtype=None, copy=None)\n--\n\nFor numpy.asarray()."),
    {"list", list, METH_NOARGS,
     "list($self)\n--\n\n"
     "All elements in C order as Python numbers, or as instances of their class."},
    fast("fill_", fill,
         "fill_($self, value)\n--\n\n"
         "Sets every element to a value; a number fills all components of vectors and matrices. Returns the array."),
    {"zero_", zero, METH_NOARGS,
     "zero_($self)\n--\n\n"
     "Sets every element to zero. Returns the array."},
    fast("assign", assign,
         "assign($self, src)\n--\n\n"
         "Copies the elements of an array or a sequence into this array. Returns the array."),
    fast("sum", sum,
         "sum($self, axis=None)\n--\n\n"
         "The sum of all elements, an array of one; or along an axis, or several in a tuple. Vectors and matrices are\n"
         "added by components, integers and bools in 64 bits."),
    fast("mean", mean,
         "mean($self, axis=None)\n--\n\n"
         "The mean of all elements, an array of one; or along an axis, or several in a tuple. That of integers and "
         "bools\n"
         "is float64."),
    fast(
        "min", min,
        "min($self, axis=None)\n--\n\n"
        "The smallest number, an array of one; or along an axis, or several in a tuple. A NaN counts as the smallest.\n"
        "The gradient goes to the first of equal ones."),
    fast("max", max,
         "max($self, axis=None)\n--\n\n"
         "The largest number, an array of one; or along an axis, or several in a tuple. A NaN counts as the largest.\n"
         "The gradient goes to the first of equal ones."),
    fast("argmin", argmin,
         "argmin($self, axis=None)\n--\n\n"
         "The index of the smallest number in C order, an int64 array of one; or along an axis. It is the first of "
         "equal\n"
         "ones, or that of the first NaN."),
    fast("argmax", argmax,
         "argmax($self, axis=None)\n--\n\n"
         "The index of the largest number in C order, an int64 array of one; or along an axis. It is the first of "
         "equal\n"
         "ones, or that of the first NaN."),
    fast("dot", dot,
         "dot($self, b)\n--\n\n"
         "The inner product with an array of the same dtype and length, an array of one number; of two dimensions a @ "
         "b."),
    {"__copy__", array_copy, METH_NOARGS, "For copy.copy(): another array over the same memory."},
    {"__deepcopy__", array_deep_copy, METH_O, "For copy.deepcopy(): a copy of the elements, and of the gradient."},
    {"__reduce__", array_reduce, METH_NOARGS, "For pickle: the elements without gaps, the gradient and the device."},
    fast("mark_write", mark_write,
         "mark_write($self, arg_name=None, kernel_name=None, filename=None, lineno=None, operation=None)\n--\n\n"
         "Says that the program has written the memory by itself, through the address or another library. Weft knows "
         "of\n"
         "its own writes. A tape that needs the former contents then refuses to go back, and what was built from the\n"
         "array is looked at again. The arguments are accepted for programs that give them, and are not used."),
    {"mark_read", mark_read, METH_NOARGS,
     "mark_read($self)\n--\n\n"
     "Does nothing: tapes keep the contents that their entries read. Programs may call it."},
    {"mark_init", mark_init, METH_NOARGS,
     "mark_init($self)\n--\n\n"
     "Does nothing, as mark_read()."},
    {"ipc_handle", array_ipc_handle, METH_NOARGS,
     "ipc_handle($self)\n--\n\n"
     "A handle by which another process shows the memory of a CUDA device. Raises RuntimeError for memory of the CPU, "
     "and\n"
     "for memory of a pool."},
    {"__ctype__", ctype, METH_NOARGS,
     "__ctype__($self)\n--\n\n"
     "The structure of ctypes that stands for the array in C (weft::ArrayView): data, grad, shape, strides, ndim.\n"
     "Launches take it for an array."},
    {"cptr", cptr, METH_NOARGS,
     "cptr($self)\n--\n\n"
     "The address as a ctypes pointer to elements, which keeps the memory alive."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace weft::bindings
