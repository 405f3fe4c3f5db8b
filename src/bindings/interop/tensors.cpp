// wp.from_torch, wp.to_torch and the same for Paddle: memory through the frameworks' C exchange API, with gradients.
// Code that depends on the framework (how a gradient is attached) is in python/warp/_interop/<framework>.py; it is
// called only for tensors that require a gradient.
#include "bindings/interop/tensors.h"

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/array_structure.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"

namespace weft::bindings {
namespace {

using runtime::Array;

class Framework {
public:
    Framework(const char* module, const char* flag, bool is_opposite, const char* from_api, const char* to_api)
        : from_api(from_api),
          to_api(to_api),
          module_(module),
          flag_(PyUnicode_InternFromString(flag)),
          is_opposite_(is_opposite) {}

    // The class of tensors; imports the framework. A missing one is a ModuleNotFoundError that names the way to install
    // it.
    PyTypeObject* tensor_type() {
        if (!tensor_) tensor_ = function("tensor_type")().release().ptr();
        return reinterpret_cast<PyTypeObject*>(tensor_);
    }
    bool is_tensor(nb::handle object) { return PyObject_TypeCheck(object.ptr(), tensor_type()); }
    // A function of the framework's Python module.
    nb::object function(const char* name) { return function_of(module_, imported_, name); }
    // Whether the framework records gradients now, in this thread.
    bool records_gradients() {
        if (!is_recording_) is_recording_ = function("is_grad_enabled").release().ptr();
        const nb::object answer = nb::steal(PyObject_CallNoArgs(is_recording_));
        if (!answer.is_valid()) throw nb::python_error();
        return answer.ptr() == Py_True;
    }
    bool requires_grad(nb::handle tensor) const {
        const nb::object found = nb::steal(PyObject_GetAttr(tensor.ptr(), flag_));
        if (!found.is_valid()) throw nb::python_error();
        return (PyObject_IsTrue(found.ptr()) == 1) != is_opposite_;
    }

    const char* const from_api;
    const char* const to_api;

private:
    const char* module_;
    PyObject* flag_;    // an attribute of tensors: it requires a gradient
    bool is_opposite_;  // the attribute is the negation of that
    PyObject* imported_ = nullptr;
    PyObject* tensor_ = nullptr;
    PyObject* is_recording_ = nullptr;
};

Framework& torch() {
    static auto& framework =
        *new Framework("warp._interop.torch", "requires_grad", false, "from_torch()", "to_torch()");
    return framework;
}
Framework& paddle() {
    static auto& framework =
        *new Framework("warp._interop.paddle", "stop_gradient", true, "from_paddle()", "to_paddle()");
    return framework;
}

// ---- from tensors ----

ForeignArray read_tensor(Framework& framework, nb::handle tensor, const ForeignName& name) {
    if (!framework.is_tensor(tensor)) {
        throw UsageError(framework.from_api,
                         name.argument() + " is " + describe(tensor) + ", expected a tensor of " +
                             reinterpret_cast<PyTypeObject*>(framework.tensor_type())->tp_name,
                         ErrorCategory::type);
    }
    return *read_foreign(tensor, name);
}

nb::object array_of_tensor(Framework& framework, nb::handle tensor, Type dtype, const char* argument) {
    const ForeignName name(framework.from_api, argument);
    Array array = as_elements(read_tensor(framework, tensor, name), tensor, dtype, name);
    watch_memory(array, tensor);
    return nb::steal(make_array(std::move(array)));
}

nb::object attribute(nb::handle object, PyObject* name) {
    nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

// The gradient of a tensor, which the array shares: made and set if there is none yet. Empty if Weft must not set it.
// Inside torch.autograd.Function or a custom operator the framework records nothing, and adds a gradient that is set
// there to the returned one. The gradient of a computed tensor is not an attribute of it.
nb::object gradient_of_tensor(Framework& framework, nb::handle tensor, Type dtype) {
    static PyObject* const is_leaf = PyUnicode_InternFromString("is_leaf");
    static PyObject* const grad = PyUnicode_InternFromString("grad");
    if (attribute(tensor, is_leaf).ptr() != Py_True || !framework.records_gradients()) return {};
    nb::object gradient = attribute(tensor, grad);
    if (gradient.is_none()) {
        if (!framework.requires_grad(tensor)) return {};
        gradient = framework.function("new_gradient")(tensor);
    }
    return array_of_tensor(framework, gradient, dtype, "the gradient of the tensor");
}

// A structure for a tensor that has no gradient to share. Empty if only an array will do.
nb::object plain_structure(Framework& framework, nb::handle tensor, Type dtype) {
    const ForeignName name(framework.from_api, "t");
    ForeignArray found = read_tensor(framework, tensor, name);
    if (found.is_read_only) return {};
    Array shown = shown_as_elements(found, tensor, dtype, name);
    const std::optional<runtime::Home> home = home_of(shown, tensor);
    return make_array_structure(std::move(shown), std::move(found.owner), home);
}

PyObject* from_tensor(Framework& framework, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        enum { kTensor, kDtype, kRequiresGrad, kGrad, kReturnCtype, kRetainGrad, kCount };
        static const Signature<kCount> signature(
            "from_torch()", {"t", "dtype", "requires_grad", "grad", "return_ctype", "retain_grad"}, 1);
        const auto given = signature.parse(args, count, keywords);
        const char* api = framework.from_api;
        const nb::handle tensor = given[kTensor];
        const Type dtype = is_given(given[kDtype]) ? dtype_argument(given[kDtype], api) : Type::none();
        const bool is_structure = flag(given[kReturnCtype], false);
        if (is_structure && !is_given(given[kGrad]) && framework.is_tensor(tensor) &&
            !flag(given[kRequiresGrad], framework.requires_grad(tensor))) {
            nb::object structure = plain_structure(framework, tensor, dtype);
            if (structure.is_valid()) return structure.release().ptr();
        }
        nb::object result = array_of_tensor(framework, tensor, dtype, "t");
        PyArray& array = value_of(result.ptr());
        if (is_given(given[kGrad])) {
            nb::object gradient = nb::borrow(given[kGrad]);
            if (!array_pointer(gradient)) {
                if (!framework.is_tensor(gradient)) {
                    throw UsageError(api,
                                     "grad is " + describe(gradient) + ", expected an array or a tensor of " +
                                         reinterpret_cast<PyTypeObject*>(framework.tensor_type())->tp_name,
                                     ErrorCategory::value);
                }
                gradient = array_of_tensor(framework, gradient, array.array.dtype, "grad");
            }
            if (flag(given[kRequiresGrad], true)) set_gradient(array, gradient.ptr(), api);
        } else if (flag(given[kRequiresGrad], framework.requires_grad(tensor))) {
            const nb::object gradient = gradient_of_tensor(framework, tensor, array.array.dtype);
            if (gradient.is_valid())
                set_gradient(array, gradient.ptr(), api);
            else
                allocate_gradient(array);
        }
        if (flag(given[kRetainGrad], false)) set_retain_grad(array, true, api);
        if (is_structure) result = make_array_structure(std::move(result));
        return result.release().ptr();
    });
}

// ---- to tensors ----

nb::object tensor_of_array(Framework& framework, const Array& array) {
    runtime::require_writable(array, framework.to_api);
    if (!array.dtype.is_scalar() && !array.dtype.is_numeric_aggregate()) {
        throw UsageError(framework.to_api,
                         "an array of " + array.dtype.python_name() +
                             " cannot become a tensor: only scalars, vectors and matrices can",
                         ErrorCategory::runtime);
    }
    if (array.device->gpu()) framework.function("require_cuda")(array.device->alias);
    const dlpack::ExchangeApi* api = exchange_api(framework.tensor_type());
    dlpack::VersionedTensor* exported =
        export_versioned(array, framework.to_api, scalar_of_tensor(array.dtype.scalar()));
    if (!api) return framework.function("from_capsule")(capsule_of(exported));
    void* tensor = nullptr;
    if (api->to_object(exported, &tensor) != 0) {  // to_object() has consumed it all the same
        const std::string reason = taken_error();
        throw UsageError(framework.to_api, "an array of " + array.dtype.python_name() + ": " + reason,
                         ErrorCategory::type);
    }
    return nb::steal(static_cast<PyObject*>(tensor));
}

PyObject* to_tensor(Framework& framework, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<2> signature("to_torch()", {"a", "requires_grad"}, 1);
        const auto given = signature.parse(args, count, keywords);
        PyArray& array = array_argument(given[0], framework.to_api, "a");
        nb::object tensor = tensor_of_array(framework, array.array);
        if (flag(given[1], array.requires_grad)) {
            nb::object gradient = nb::none();
            if (array.requires_grad) gradient = tensor_of_array(framework, program::gradient_of(array));
            tensor = framework.function("with_gradient")(tensor, gradient);
        }
        return tensor.release().ptr();
    });
}

template <Framework& (*kFramework)()>
PyObject* from_entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return from_tensor(kFramework(), args, count, keywords);
}
template <Framework& (*kFramework)()>
PyObject* to_entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return to_tensor(kFramework(), args, count, keywords);
}

#define WEFT_FROM_DOC(name, framework)                                                                                 \
    name                                                                                                               \
        "($module, t, dtype=None, requires_grad=None, grad=None, return_ctype=False, retain_grad=False)\n--\n\n"       \
        "An array over the memory of a " framework                                                                     \
        " tensor, without a copy; it keeps the tensor alive.\n\n"                                                      \
        "Args:\n"                                                                                                      \
        "    t: the tensor.\n"                                                                                         \
        "    dtype: of the elements; by default that of the tensor. Vectors and matrices take the last\n"              \
        "        dimensions, which must lie side by side; integers of one size stand for each other.\n"                \
        "    requires_grad: whether the array has a gradient; by default as the tensor. The tensor's\n"                \
        "        gradient is then shared. One that it has not yet is made, of zeros, and set as its gradient, "        \
        "unless\n"                                                                                                     \
        "        the framework records no gradients now (in its own functions) or the tensor was computed: then the\n" \
        "        array has a gradient of its own.\n"                                                                   \
        "    grad: the gradient to use, an array or a tensor, which is shared.\n"                                      \
        "    return_ctype: returns a small structure instead, which launches take and nothing else.\n"                 \
        "    retain_grad: tapes leave it the gradient of its last contents, as array.retain_grad says.\n\n"            \
        "Raises: a TypeError if `t` is no tensor or has numbers that Weft does not have, a ValueError if `grad` is\n"  \
        "neither or retain_grad is for an array without a gradient, UsageError (a RuntimeError) if dtype, shape,\n"    \
        "strides or device do not fit."
#define WEFT_TO_DOC(name, framework)                                                                                   \
    name                                                                                                               \
        "($module, a, requires_grad=None)\n--\n\n"                                                                     \
        "A " framework                                                                                                 \
        " tensor over the memory of an array, without a copy; it keeps the memory alive.\n\n"                          \
        "Args:\n"                                                                                                      \
        "    a: the array. Vectors and matrices add their dimensions at the end; unsigned integers of 16, 32 and 64\n" \
        "        bits become signed ones.\n"                                                                           \
        "    requires_grad: whether the tensor is a leaf that requires a gradient; by default as the\n"                \
        "        array. The gradient of an array that has one is the tensor's, in one memory.\n\n"                     \
        "Raises: UsageError (a RuntimeError) for arrays of structs, and for arrays on a CUDA device if " framework     \
        "\n"                                                                                                           \
        "has none; a ValueError for read-only memory."

PyMethodDef method(const char* name, auto* function, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL | METH_KEYWORDS, doc};
}

PyMethodDef functions[] = {
    method("from_torch", &from_entry<torch>, WEFT_FROM_DOC("from_torch", "PyTorch")),
    method("to_torch", &to_entry<torch>, WEFT_TO_DOC("to_torch", "PyTorch")),
    method("from_paddle", &from_entry<paddle>, WEFT_FROM_DOC("from_paddle", "Paddle")),
    method("to_paddle", &to_entry<paddle>, WEFT_TO_DOC("to_paddle", "Paddle")),
};

}  // namespace

Scalar scalar_of_tensor(Scalar scalar) {
    switch (scalar) {
        case Scalar::u16:
            return Scalar::i16;
        case Scalar::u32:
            return Scalar::i32;
        case Scalar::u64:
            return Scalar::i64;
        default:
            return scalar;
    }
}

nb::object torch_tensor_of(const Array& array) { return tensor_of_array(torch(), array); }

void bind_tensors(nb::module_& m) {
    m.def(
        "tensor_scalar",
        [](nb::handle dtype, const char* api) {
            const Type type = dtype_argument(dtype.ptr(), api);
            if (!type.is_scalar())
                throw UsageError(api, "dtype is " + type.python_name() + ", expected a scalar type",
                                 ErrorCategory::type);
            return info(scalar_of_tensor(type.scalar())).python;
        },
        nb::arg("dtype"), nb::arg("api"), "The name of the scalar type that tensors have for one of ours.");
    m.def(
        "can_stand_for",
        [](nb::handle found, nb::handle asked) {
            const Type type = dtype_argument(asked.ptr(), "dtype_is_compatible()");
            return (type.is_scalar() || type.is_numeric_aggregate()) &&
                   are_compatible(dtype_argument(found.ptr(), "dtype_is_compatible()").scalar(), type.scalar());
        },
        nb::arg("found"), nb::arg("asked"),
        "Whether numbers of one dtype may be the elements, or components, of another.");
    add_functions(m, functions);
}

}  // namespace weft::bindings
