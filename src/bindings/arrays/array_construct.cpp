// array(...): the constructor's arguments. array_data.cpp converts `data`.
#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/python/lock.h"
#include "program/tape/stopped_gradients.h"
#include "runtime/pinned.h"

namespace weft::bindings {
namespace {

using runtime::Array;
using runtime::Device;
using runtime::Shape;

enum Argument {
    kData,
    kDtype,
    kShape,
    kStrides,
    kLength,
    kPtr,
    kCapacity,
    kDevice,
    kPinned,
    kCopy,
    kOwner,
    kNdim,
    kGrad,
    kRequiresGrad,
    kDeleter,
    kRetainGrad,
    kArgumentCount
};
using ArraySignature = Signature<kArgumentCount>;

const ArraySignature& signature() {
    static const ArraySignature signature(
        "array()", {"data", "dtype", "shape", "strides", "length", "ptr", "capacity", "device", "pinned", "copy",
                    "owner", "ndim", "grad", "requires_grad", "deleter", "retain_grad"});
    return signature;
}

// Memory at an address, which is used and not owned.
Array from_pointer(const ArraySignature::Values& given, Type dtype, const Shape& shape, Device& device) {
    constexpr const char* kApi = "array()";
    void* address = PyLong_AsVoidPtr(given[kPtr]);
    if (!address && PyErr_Occurred()) {
        PyErr_Clear();
        throw UsageError(kApi, "'ptr' must be an address as an integer, got " + describe(given[kPtr]),
                         ErrorCategory::type);
    }
    const bool has_strides = is_given(given[kStrides]);
    const Shape strides = has_strides ? shape_argument(given[kStrides], kApi) : Shape();
    Array array = runtime::wrap(address, dtype, shape, has_strides ? &strides : nullptr, device, kApi);
    const std::int64_t bytes = array.buffer->size_bytes;
    if (is_given(given[kCapacity])) {
        std::int64_t capacity = integer(given[kCapacity], kApi, "capacity");
        if (capacity < bytes) {
            throw UsageError(kApi,
                             "'capacity' is " + std::to_string(capacity) + " bytes, the shape " +
                                 runtime::shape_text(shape) + " of " + dtype.python_name() + " needs " +
                                 std::to_string(bytes),
                             ErrorCategory::value);
        }
        array.buffer->size_bytes = capacity;
    }
    return array;
}

// The function that is called when the last array over the memory at 'ptr' is gone, or null.
PyObject* deleter_argument(const ArraySignature::Values& given) {
    if (!is_given(given[kDeleter])) return nullptr;
    if (!PyCallable_Check(given[kDeleter])) {
        throw UsageError("array()",
                         "'deleter' must be a function of (address, bytes), got " + describe(given[kDeleter]),
                         ErrorCategory::type);
    }
    return flag(given[kOwner], true) ? given[kDeleter] : nullptr;
}

struct CallDeleter {
    PyObject* deleter;
    void* address;
    std::int64_t bytes;

    void operator()() const {
        if (!Py_IsInitialized()) return;
        const PythonLock lock;
        // An error here has no caller: it is reported as those of __del__ are.
        nb::error_scope saved;
        PyObject* result = PyObject_CallFunction(deleter, "KL", reinterpret_cast<unsigned long long>(address),
                                                 static_cast<long long>(bytes));
        if (!result) PyErr_WriteUnraisable(deleter);
        Py_XDECREF(result);
        Py_DECREF(deleter);
    }
};

void release_by(runtime::Buffer& buffer, PyObject* deleter) {
    Py_INCREF(deleter);
    buffer.release = CallDeleter{deleter, buffer.data, buffer.size_bytes};
}

// Tells a tape that the new array is made of another one with a gradient. If the new one has none, the gradient ends
// there, which the tape may warn of.
void record_origin(nb::handle made, nb::handle data) {
    const PyArray* from = array_pointer(data);
    PyArray& to = value_of(made.ptr());
    if (!from || !from->requires_grad) return;
    if (!to.requires_grad) {
        if (from->array.dtype != to.array.dtype || !write_observer()->observes_stopped_gradients()) return;
        if (!std::ranges::equal(from->array.shape(), to.array.shape())) return;
        record_write(made, data);
        return count_write(to);
    }
    nb::object source = nb::borrow(data);
    if (from->array.dtype != to.array.dtype) source = source.attr("astype")(dtype_of(value_of(made.ptr())));
    if (!std::ranges::equal(array_pointer(source)->array.shape(), to.array.shape()))
        source = source.attr("contiguous")().attr("reshape")(made.attr("shape"));
    made.attr("assign")(source);
}

PyObject* construct(PyTypeObject* type, const ArraySignature::Values& given, int fixed_ndim) {
    constexpr const char* kApi = "array()";
    int ndim = fixed_ndim;
    if (is_given(given[kNdim])) {
        std::int64_t asked = integer(given[kNdim], kApi, "ndim");
        if (fixed_ndim != 0 && asked != fixed_ndim) {
            throw UsageError(kApi, "array" + std::to_string(fixed_ndim) + "d() with ndim=" + std::to_string(asked),
                             ErrorCategory::value);
        }
        if (asked < 1 || asked > kMaxDims) {
            throw UsageError(kApi, "arrays have at least 1 and at most 4 dimensions, got ndim=" + std::to_string(asked),
                             ErrorCategory::value);
        }
        ndim = static_cast<int>(asked);
    }
    bool has_data = is_given(given[kData]);
    bool has_pointer = is_given(given[kPtr]);
    bool has_shape = is_given(given[kShape]) || is_given(given[kLength]);
    bool has_dtype = is_given(given[kDtype]) && !is_any(given[kDtype]);
    if (!has_data && !has_pointer && !has_shape) {
        return make_annotation(given[kDtype] ? nb::handle(given[kDtype]) : nb::module_::import_("typing").attr("Any"),
                               ndim == 0 ? 1 : ndim);
    }
    if (has_data && has_pointer) throw UsageError(kApi, "'data' and 'ptr' exclude each other: give one of them");
    if (is_given(given[kStrides]) && !has_pointer) {
        throw UsageError(kApi, "'strides' describe the memory at 'ptr', which is not given", ErrorCategory::value);
    }
    if (!has_data && !has_dtype) {
        throw UsageError(kApi, "'dtype' is missing: it can only be taken from 'data'", ErrorCategory::type);
    }
    Type dtype = has_dtype ? dtype_argument(given[kDtype], kApi) : Type::none();
    std::optional<Shape> shape;
    if (has_shape) shape = shape_argument(given[kShape], nullptr, given[kLength], kApi);
    Options options{&device_from_python(given[kDevice], kApi), flag(given[kRequiresGrad], false),
                    flag(given[kPinned], false)};

    PyObject* deleter = deleter_argument(given);
    if (deleter && !has_pointer) {
        throw UsageError(kApi, "'deleter' frees the memory at 'ptr', which is not given", ErrorCategory::value);
    }
    Array array;
    const runtime::Pinning pinning(options.pinned);
    if (has_data) {
        array = array_from_data(given[kData], dtype, std::move(shape), flag(given[kCopy], true), *options.device, kApi);
    } else if (has_pointer) {
        if (!shape) throw UsageError(kApi, "'shape' is missing: 'ptr' needs it", ErrorCategory::type);
        array = from_pointer(given, dtype, *shape, *options.device);
    } else {
        runtime::checked_size(*shape, dtype.size_bytes(), kApi);
        array = runtime::empty(dtype, *shape, *options.device);
    }
    // The number of dimensions comes from data and shape, except for data without elements.
    if (has_data && array.ndim == 1 && array.size() == 0 && ndim > 1)
        array = runtime::empty(array.dtype, Shape(static_cast<std::size_t>(ndim), 0), *options.device);
    bool has_gradient = is_given(given[kGrad]);
    options.requires_grad = options.requires_grad && !has_gradient;
    // If the program does not say, it may take the array for one with the same gradient.
    const PyArray* const shown = has_data && !is_given(given[kRequiresGrad]) ? array_pointer(given[kData]) : nullptr;
    if (shown && shown->requires_grad && shown->array.buffer == array.buffer && array.buffer)
        program::note_gradient_beside(array.buffer, shown->gradient);
    const std::weak_ptr<runtime::Buffer> buffer = array.buffer;
    nb::object result = nb::steal(finish(std::move(array), options, type));
    if (has_gradient) set_gradient(value_of(result.ptr()), given[kGrad], kApi);
    set_retain_grad(value_of(result.ptr()), flag(given[kRetainGrad], false), kApi);
    if (write_observer() && has_data && flag(given[kCopy], true)) record_origin(result, given[kData]);
    // Last of all: after an error the memory stays the caller's.
    if (deleter) release_by(*buffer.lock(), deleter);
    return result.release().ptr();
}

}  // namespace

nb::object deleter_of(const runtime::Array& array) {
    const auto* const call = array.buffer ? array.buffer->release.target<CallDeleter>() : nullptr;
    return call ? nb::borrow(call->deleter) : nb::none();
}

PyObject* construct_array(PyTypeObject* type, PyObject* const* args, Py_ssize_t count, PyObject* keywords, int ndim) {
    return construct(type, signature().parse(args, count, keywords), ndim);
}

PyObject* construct_array(PyTypeObject* type, PyObject* args, PyObject* keywords, int ndim) {
    return construct(type, signature().parse(args, keywords), ndim);
}

}  // namespace weft::bindings
