#include "bindings/foreign/foreign.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "bindings/python/lock.h"
#include "bindings/python/numpy_api.h"
#include "bindings/python/python_function.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"

namespace weft::bindings {
namespace {

using runtime::Array;

// ---- attributes ----

// An attribute of the object, or null if it has none; other errors of the attribute's own code are thrown.
nb::object attribute(nb::handle object, const char* name) {
    PyObject* found = PyObject_GetAttrString(object.ptr(), name);
    if (!found) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
        PyErr_Clear();
    }
    return nb::steal(found);
}

bool has_attribute(nb::handle object, const char* name) { return attribute(object, name).is_valid(); }

// ---- the buffer protocol ----

// A Py_buffer that a Python object owns: the memory stays exported as long as a view of it exists.
struct HeldBuffer {
    Py_buffer buffer{};
    ~HeldBuffer() { PyBuffer_Release(&buffer); }
};
constexpr const char* kHeldBuffer = "weft_buffer";

void free_held_buffer(PyObject* capsule) {
    delete static_cast<HeldBuffer*>(PyCapsule_GetPointer(capsule, kHeldBuffer));
}

std::optional<Scalar> scalar_of_format(const char* format, Py_ssize_t bytes) {
    if (!format) return bytes == 1 ? std::optional(Scalar::u8) : std::nullopt;
    if (*format == '@' || *format == '=' || (*format == '<' && std::endian::native == std::endian::little)) ++format;
    if (*format == '\0' || format[1] != '\0') return std::nullopt;
    // Several letters mean integers of one size.
    const auto sized = [&](Scalar of8, Scalar of16, Scalar of32, Scalar of64) -> std::optional<Scalar> {
        return bytes == 1 ? of8 : bytes == 2 ? of16 : bytes == 4 ? of32 : of64;
    };
    if (std::strchr("bhilqn", *format)) return sized(Scalar::i8, Scalar::i16, Scalar::i32, Scalar::i64);
    if (std::strchr("BHILQN", *format)) return sized(Scalar::u8, Scalar::u16, Scalar::u32, Scalar::u64);
    for (const ScalarInfo& row : all_scalars())
        if (!row.is_bits_in_numpy() && *format == *row.letter) return row.id;
    return std::nullopt;
}

// Empty if the object has no buffer now: another protocol may know more. JAX says so of its bfloat16, and CuPy of GPU
// memory by a TypeError.
std::optional<ForeignArray> read_buffer(nb::handle object) {
    auto held = std::make_unique<HeldBuffer>();
    if (PyObject_GetBuffer(object.ptr(), &held->buffer, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        const bool has_none = PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
                              PyErr_ExceptionMatches(PyExc_TypeError);
        if (!has_none) throw nb::python_error();
        PyErr_Clear();
        return std::nullopt;
    }
    const Py_buffer& buffer = held->buffer;
    const std::optional<Scalar> scalar = scalar_of_format(buffer.format, buffer.itemsize);
    if (!scalar || buffer.ndim > kMaxForeignDims) return std::nullopt;
    ForeignArray result;
    result.data = buffer.buf;
    result.device = &runtime::host_device();
    result.scalar = *scalar;
    result.ndim = buffer.ndim;
    std::copy(buffer.shape, buffer.shape + buffer.ndim, result.shape);
    std::int64_t step = buffer.itemsize;
    for (int i = buffer.ndim - 1; i >= 0; --i) {  // buffers of ctypes have no strides
        result.strides[i] = buffer.strides ? buffer.strides[i] : step;
        step *= buffer.shape[i];
    }
    result.is_read_only = buffer.readonly != 0;
    result.owner = nb::steal(PyCapsule_New(held.get(), kHeldBuffer, free_held_buffer));
    if (!result.owner.is_valid()) throw nb::python_error();
    held.release();
    return result;
}

// ---- by NumPy ----

ForeignArray read_as_ndarray(nb::handle object, const ForeignName& name) {
    const nb::object array = numpy::as_array(object);
    ForeignArray result = read_ndarray(object, *numpy::ndarray_pointer(array), name);
    result.owner = array;  // keeps the object alive
    return result;
}

// ---- structures of ctypes ----

// For the result of array.__ctype__(): memory that its owner keeps alive, without an element type.
Array view_of_structure(nb::handle structure, Type element, int ndim, const ForeignName& name) {
    const int found = nb::cast<int>(structure.attr("ndim"));
    if (found != ndim) {
        throw UsageError(name.api,
                         name.argument() + " is " + describe(structure) + ", expected " +
                             Type::array(element, ndim).python_name() + ": it has " + std::to_string(found) +
                             " dimensions, expected " + std::to_string(ndim),
                         ErrorCategory::type);
    }
    Py_buffer bytes;
    if (PyObject_GetBuffer(structure.ptr(), &bytes, PyBUF_SIMPLE) < 0) throw nb::python_error();
    Array result;
    std::memcpy(&result.view, bytes.buf, sizeof result.view);
    PyBuffer_Release(&bytes);
    result.dtype = element;
    result.ndim = ndim;
    result.device = &runtime::host_device();
    result.buffer = borrowed_memory(result, structure);
    return result;
}

}  // namespace

runtime::BufferPtr borrowed_memory(const Array& view, nb::handle owner, bool is_read_only) {
    auto buffer = std::make_shared<runtime::Buffer>();
    auto [low, high] = view.extent();
    buffer->data = const_cast<std::byte*>(low);
    buffer->size_bytes = high - low;
    buffer->device = view.device;
    buffer->is_read_only = is_read_only;
    PyObject* kept = owner.inc_ref().ptr();
    // The last view may be destroyed on any thread.
    buffer->release = [kept] {
        if (!Py_IsInitialized()) return;
        const PythonLock lock;
        Py_DECREF(kept);
    };
    return buffer;
}

void refuse(const ForeignName& name, nb::handle object, const std::string& why, ErrorCategory category) {
    throw UsageError(name.api, name.argument() + " is " + describe(object) + ": " + why, category);
}

std::string taken_error() {
    const nb::python_error error;
    const auto text = nb::cast<std::string>(nb::str(error.value()));
    return text.substr(0, text.find('\n'));
}

std::int64_t ForeignArray::size() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents()) count *= extent;
    return count;
}

ForeignArray read_ndarray(nb::handle object, const numpy::NdArray& array, const ForeignName& name) {
    const std::optional<Scalar> scalar = numpy::scalar_of(array);
    if (!scalar) {
        refuse(name, object,
               "Weft has no such numbers: expected bool, integers of 8 to 64 bits or floats, in native byte order. "
               "help: .astype('float32')");
    }
    if (array.ndim > kMaxForeignDims)
        refuse(name, object, "it has " + std::to_string(array.ndim) + " dimensions, expected at most 6");
    if (!array.is_aligned()) refuse(name, object, "its memory is not aligned. help: .copy()");
    ForeignArray result;
    result.data = array.data;
    result.device = &runtime::host_device();
    result.scalar = *scalar;
    result.ndim = array.ndim;
    std::copy(array.dimensions, array.dimensions + array.ndim, result.shape);
    std::copy(array.strides, array.strides + array.ndim, result.strides);
    result.is_read_only = !array.is_writable();
    result.owner = nb::borrow(object);
    return result;
}

std::optional<ForeignArray> read_in_place(nb::handle object, const ForeignName& name) {
    if (const numpy::NdArray* array = numpy::ndarray_pointer(object)) return read_ndarray(object, *array, name);
    const dlpack::ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()));
    if (!api || !api->view_of_object) return std::nullopt;
    dlpack::Tensor tensor;
    if (api->view_of_object(object.ptr(), &tensor) != 0) refuse(name, object, taken_error());
    ForeignArray result = read_tensor(tensor, object, name);
    if (is_negated(object)) {
        refuse(name, object,
               "it is a view that stands for the negated numbers of its memory (as x.conj().imag is). help: "
               ".resolve_neg()");
    }
    result.owner = nb::borrow(object);
    return result;
}

std::optional<ForeignArray> read_foreign(nb::handle object, const ForeignName& name) {
    if (std::optional<ForeignArray> found = read_in_place(object, name)) return found;
    if (exchange_api(Py_TYPE(object.ptr()))) return read_by_dlpack(object, name);
    if (PyObject_CheckBuffer(object.ptr()))
        if (std::optional<ForeignArray> found = read_buffer(object)) return found;
    if (has_attribute(object, "__array_interface__")) return read_as_ndarray(object, name);
    if (has_attribute(object, "__dlpack__")) return read_by_dlpack(object, name);
    if (const nb::object interface = attribute(object, "__cuda_array_interface__"); interface.is_valid())
        return read_cuda_interface(object, interface, name);
    if (has_attribute(object, "__array__")) {
        ForeignArray copy = read_as_ndarray(object, name);
        copy.is_read_only = true;
        return copy;
    }
    return std::nullopt;
}

ArrayView fit_view(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
                   ErrorCategory category) {
    const auto misfit = [&](const std::string& why) {
        throw UsageError(name.api,
                         name.argument() + " is " + describe(object) + ", expected " +
                             Type::array(element, ndim).python_name() + ": " + why,
                         category);
    };
    if (!element.is_scalar() && !element.is_numeric_aggregate()) misfit("only numbers can be shared without copying");
    const bool are_bits = info(element.scalar()).is_bits_in_numpy() && from.scalar == bits_of(element.scalar());
    if (from.scalar != element.scalar() && !are_bits) {
        const std::string expected = info(element.scalar()).python;
        misfit("its numbers are " + std::string(info(from.scalar).python) + ", expected " + expected +
               ". help: convert it (NumPy: .astype(numpy." + expected + "), torch: .to(torch." + expected +
               ")), or annotate the parameter as " + Type::array(element.with_scalar(from.scalar), ndim).python_name());
    }
    std::int64_t inner[2];
    const int inner_count = inner_shape(element, inner);
    if (from.ndim != ndim + inner_count) {
        misfit("it has " + std::to_string(from.ndim) + " dimensions, expected " + std::to_string(ndim) +
               (inner_count ? " and " + std::to_string(inner_count) + " of the element" : ""));
    }
    std::int64_t step = info(element.scalar()).bytes();
    for (int i = inner_count - 1; i >= 0; --i) {
        if (from.shape[ndim + i] != inner[i]) {
            misfit("its shape is " + runtime::shape_text(from.extents()) + ", its inner dimensions must be " +
                   runtime::shape_text({inner, static_cast<std::size_t>(inner_count)}));
        }
        if (inner[i] > 1 && from.strides[ndim + i] != step && from.size() > 0) {
            misfit(
                "the components of its elements do not lie side by side. help: make it contiguous "
                "(numpy.ascontiguousarray(), torch.Tensor.contiguous())");
        }
        step *= inner[i];
    }
    ArrayView view;
    std::copy(from.shape, from.shape + ndim, view.shape);
    std::copy(from.strides, from.strides + ndim, view.strides);
    view.data = from.size() > 0 ? from.data : nullptr;
    return view;
}

namespace {

// The same without a buffer.
Array shown(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
            ErrorCategory category) {
    Array result;
    result.dtype = element;
    result.ndim = ndim;
    result.device = from.device;
    result.view = fit_view(from, object, element, ndim, name, category);
    return result;
}

}  // namespace

Array fit(const ForeignArray& from, nb::handle object, Type element, int ndim, const ForeignName& name,
          ErrorCategory category) {
    Array result = shown(from, object, element, ndim, name, category);
    result.buffer = borrowed_memory(result, from.owner, from.is_read_only);
    return result;
}

bool are_compatible(Scalar found, Scalar asked) {
    const ScalarInfo &first = info(found), &second = info(asked);
    const auto is_byte = [](const ScalarInfo& scalar) { return scalar.bits == 8 && !scalar.is_float(); };
    return found == asked || (is_byte(first) && is_byte(second)) ||
           (first.is_int() && second.is_int() && first.bits == second.bits);
}

Array shown_as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name) {
    if (dtype.is_none()) dtype = Type::scalar(from.scalar);
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate()) {
        refuse(name, object, "it holds numbers, which cannot be elements of " + dtype.python_name(),
               ErrorCategory::type);
    }
    std::int64_t inner[2];
    const int inner_count = inner_shape(dtype, inner);
    if (!are_compatible(from.scalar, dtype.scalar())) {
        refuse(name, object,
               "its numbers are " + std::string(info(from.scalar).python) + ", and dtype is " + dtype.python_name() +
                   ". help: convert it first, or leave dtype out",
               ErrorCategory::runtime);
    }
    if (from.ndim < inner_count) {
        refuse(name, object,
               "its shape " + runtime::shape_text(from.extents()) + " is too short for elements of " +
                   dtype.python_name() + ": expected it to end with " +
                   runtime::shape_text({inner, static_cast<std::size_t>(inner_count)}),
               ErrorCategory::runtime);
    }
    ForeignArray shaped = from;
    shaped.scalar = dtype.scalar();
    int ndim = from.ndim - inner_count;
    if (ndim == 0) {  // one element
        std::copy_backward(shaped.shape, shaped.shape + inner_count, shaped.shape + inner_count + 1);
        std::copy_backward(shaped.strides, shaped.strides + inner_count, shaped.strides + inner_count + 1);
        shaped.shape[0] = 1;
        shaped.strides[0] = dtype.size_bytes();
        ++shaped.ndim;
        ndim = 1;
    }
    if (ndim > kMaxDims) refuse(name, object, "it has " + std::to_string(ndim) + " dimensions, expected at most 4");
    return shown(shaped, object, dtype, ndim, name, ErrorCategory::runtime);
}

Array as_elements(const ForeignArray& from, nb::handle object, Type dtype, const ForeignName& name) {
    Array result = shown_as_elements(from, object, dtype, name);
    result.buffer = borrowed_memory(result, from.owner, from.is_read_only);
    return result;
}

std::optional<Array> foreign_array(nb::handle object, Type element, int ndim, const ForeignName& name, bool outlives,
                                   std::optional<std::uint64_t>* stream) {
    static PyObject *module = nullptr, *structure = nullptr;
    if (!structure) structure = function_of("warp._arrays.arrays", module, "ArrayView").release().ptr();
    if (reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == structure)
        return view_of_structure(object, element, ndim, name);
    const std::optional<ForeignArray> found = read_foreign(object, name);
    if (!found) return std::nullopt;
    if (stream) *stream = found->stream;
    Array array = fit(*found, object, element, ndim, name);
    if (outlives) watch_memory(array, object);
    return array;
}

nb::object ndarray_of(const ForeignArray& from) {
    static char nothing[8];  // NumPy needs an address even without elements
    return numpy::make_ndarray(from.scalar, {from.shape, static_cast<std::size_t>(from.ndim)}, from.strides,
                               from.data ? from.data : nothing, from.owner, /*is_writable=*/!from.is_read_only);
}

}  // namespace weft::bindings
