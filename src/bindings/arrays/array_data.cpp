// array(...): the kinds of data, and how their dimensions become those of the array and of its elements.
//
//   data                                   way
//   another array                          cloned or shared; another dtype through its NumPy view
//   lists of Weft values (wp.vec3 ...)     element by element
//   anything else                          numpy.asarray, then as a NumPy array
//
// Without a dtype the elements are the scalars that NumPy sees: [1.0] is float64, [1] int64, an array of n vec3 (n, 3)
// floats.
//
// A NumPy array of shape S becomes elements with inner shape I, (3,) for vec3, like this:
//
//   S ends with I                          the rest is the shape           (1024, 3) as vec3 -> (1024,)
//   the last of S is k times product(I)    it becomes k, dropped if 1      (5, 6) as vec3 -> (5, 2)
//   S ends with I and then ones            the ones are dropped            (5, 3, 1) as vec3 -> (5,)
//   otherwise                              an error that names I
//
// A shape that is left without dimensions becomes (1,).
#include <algorithm>
#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/numpy_api.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "runtime/array_copies.h"

namespace weft::bindings {
namespace {

using runtime::Array;
using runtime::Device;
using runtime::Shape;

// ---- dimensions ----

std::string inner_text(Type dtype) {
    std::int64_t inner[2];
    int count = inner_shape(dtype, inner);
    return runtime::shape_text({inner, static_cast<std::size_t>(count)});
}

// Replaces a dimension of -1 by the extent that `count` elements leave for it.
Shape inferred(Shape shape, std::int64_t count) {
    const auto open = std::ranges::find(shape, -1);
    if (open == shape.end() || std::ranges::count(shape, -1) > 1) return shape;
    std::int64_t others = 1;
    for (std::int64_t extent : shape) others *= extent == -1 ? 1 : extent;
    *open = others > 0 ? count / others : 0;
    return shape;
}

struct Grouping {
    Shape shape;
    Shape strides;           // in bytes, of the elements in the memory of the data
    bool is_packed = false;  // the components of each element lie one after the other
};

Grouping group(const numpy::NdArray& data, Type dtype, const char* api) {
    Shape shape(data.shape().begin(), data.shape().end());
    Shape strides(data.strides, data.strides + data.ndim);
    std::int64_t scalar_bytes = info(dtype.scalar()).bytes();
    std::int64_t inner[2];
    auto inner_count = static_cast<std::size_t>(inner_shape(dtype, inner));
    const auto ends_with_inner = [&] {
        return shape.size() >= inner_count && std::equal(inner, inner + inner_count, shape.end() - inner_count);
    };
    const auto is_multiple = [&] { return !shape.empty() && shape.back() % dtype.components() == 0; };
    while (!ends_with_inner() && !is_multiple() && shape.size() > 1 && shape.back() == 1) {
        shape.pop_back();
        strides.pop_back();
    }
    Grouping result;
    if (ends_with_inner()) {
        result.is_packed = true;
        std::int64_t expected = scalar_bytes;
        for (std::size_t i = 0; i < inner_count; ++i) {
            std::size_t axis = shape.size() - 1 - i;
            if (shape[axis] > 1 && strides[axis] != expected) result.is_packed = false;
            expected *= shape[axis];
        }
        shape.resize(shape.size() - inner_count);
        strides.resize(shape.size());
    } else if (is_multiple()) {
        result.is_packed = shape.back() <= 1 || strides.back() == scalar_bytes;
        shape.back() /= dtype.components();
        strides.back() = dtype.size_bytes();
        if (shape.back() == 1 && shape.size() > 1) {
            shape.pop_back();
            strides.pop_back();
        }
    } else {
        const Shape found(data.shape().begin(), data.shape().end());
        throw UsageError(api, "data of shape " + runtime::shape_text(found) + " does not fit elements of type " +
                                  dtype.python_name() + ": expected inner dimensions " + inner_text(dtype) +
                                  ", or a last dimension that is a multiple of " + std::to_string(dtype.components()));
    }
    if (shape.empty()) {
        shape = {1};
        strides = {dtype.size_bytes()};
    }
    result.shape = std::move(shape);
    result.strides = std::move(strides);
    return result;
}

// ---- from NumPy ----

[[noreturn]] void throw_no_dtype(const char* api, nb::handle data) {
    const std::string kind = nb::str(nb::getattr(nb::getattr(data, "dtype", nb::none()), "name", nb::str(""))).c_str();
    if (kind == "complex64" || kind == "complex128") {
        const std::string part = kind == "complex64" ? "float32" : "float64";
        throw UsageError(api,
                         "data is " + describe(data) +
                             ", and kernels have no complex numbers. help: vectors of the real and the imaginary part "
                             "share its memory: wp.array(x.view('" +
                             part + "').reshape(*x.shape, 2), dtype=wp.vec2" + (kind == "complex64" ? "f" : "d") + ")",
                         ErrorCategory::type);
    }
    throw UsageError(
        api,
        "data is " + describe(data) +
            ", which has no element type of Weft: expected bool, integers of 8 to 64 bits or floats of 16 to "
            "64 bits, in native byte order. help: data.astype('float32')",
        ErrorCategory::type);
}

Array copied(nb::handle object, const numpy::NdArray& data, std::optional<Scalar> scalar, Type dtype,
             const Shape& shape, Device& device) {
    Array result = runtime::empty(dtype, shape, device);
    if (result.size() == 0) return result;
    if (scalar == dtype.scalar() && data.is_contiguous() && !runtime::current_recording(device)) {
        std::int64_t bytes = result.size_bytes();
        if (bytes < 4096) {
            runtime::write_bytes(device, result.view.data, data.data, bytes);
            return result;
        }
        Array to = result, from = result;
        from.view.data = data.data;
        from.device = &runtime::host_device();
        without_gil(bytes, [&] { runtime::copy(to, from); });
        return result;
    }
    // The same scalars in C order, seen with the dimensions that the data has.
    runtime::HostWrite write(result);
    nb::object target =
        numpy::make_ndarray(dtype.scalar(), data.shape(), nullptr, runtime::host_data(write.array()), nb::handle());
    numpy::copy_into(target, object);
    write.finish();
    return result;
}

Array from_ndarray(nb::handle object, const numpy::NdArray& data, Type dtype, const std::optional<Shape>& wanted,
                   bool copy, Device& device, const char* api) {
    if (dtype.is_struct() && data.descriptor->kind == 'V')
        return from_structured(object, dtype, wanted, copy, device, api);
    std::optional<Scalar> scalar = numpy::scalar_of(data);
    if (!scalar && (data.descriptor->byte_order != '>' || !std::strchr("biuf", data.descriptor->kind))) {
        throw_no_dtype(api, object);
    }
    if (dtype.is_none()) {
        if (!scalar) throw_no_dtype(api, object);
        dtype = Type::scalar(*scalar);
    }
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate()) {
        throw UsageError(api,
                         "data is " + describe(object) + ", which cannot become elements of type " +
                             dtype.python_name() + ": expected a list of " + dtype.python_name(),
                         ErrorCategory::type);
    }
    if (is_bits_in_numpy(dtype)) {
        const Scalar held = dtype.scalar();
        nb::object bits = numpy::bits_of_numbers(object, held);
        Array result = from_ndarray(bits, *numpy::ndarray_pointer(bits), dtype.with_scalar(bits_of(held)), wanted, copy,
                                    device, api);
        result.dtype = dtype;
        return result;
    }
    Grouping grouping;
    if (wanted) {
        grouping.shape = inferred(*wanted, data.size() / dtype.components());
        std::int64_t size = runtime::checked_size(grouping.shape, dtype.size_bytes(), api);
        if (size * dtype.components() != data.size()) {
            throw UsageError(api,
                             "data of shape " + runtime::shape_text({data.shape().begin(), data.shape().end()}) +
                                 " does not fill the shape " + runtime::shape_text(*wanted) + " of " +
                                 dtype.python_name() + ": expected " + std::to_string(size * dtype.components()) +
                                 " numbers, got " + std::to_string(data.size()),
                             ErrorCategory::value);
        }
        grouping.is_packed = data.is_contiguous();
    } else {
        grouping = group(data, dtype, api);
        runtime::checked_size(grouping.shape, dtype.size_bytes(), api);
    }
    bool fits = scalar == dtype.scalar() && grouping.is_packed && data.is_aligned();
    if (copy || !fits || !device.is_host_memory) return copied(object, data, scalar, dtype, grouping.shape, device);
    Array result;
    result.dtype = dtype;
    result.ndim = static_cast<int>(grouping.shape.size());
    result.device = &device;
    std::copy(grouping.shape.begin(), grouping.shape.end(), result.view.shape);
    if (grouping.strides.empty()) {
        runtime::set_contiguous_strides(result);
    } else {
        std::copy(grouping.strides.begin(), grouping.strides.end(), result.view.strides);
    }
    result.view.data = result.size() > 0 ? data.data : nullptr;
    result.buffer = borrowed_memory(result, object, !data.is_writable());
    return result;
}

// ---- from Python values ----

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// Deeper lists have more dimensions than any array; a list that holds itself has no end.
constexpr int kMostNesting = 64;

PyObject* first_leaf(PyObject* object) {
    for (int depth = 0; depth < kMostNesting && is_list(object); ++depth) {
        if (PySequence_Fast_GET_SIZE(object) == 0) return nullptr;
        object = PySequence_Fast_GET_ITEM(object, 0);
    }
    return is_list(object) ? nullptr : object;
}

// The type of a Weft value (wp.vec3(...), wp.float16(1.0), an instance of a struct); empty for numbers of Python and
// NumPy.
std::optional<Type> weft_value_type(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (PyLong_Check(object) || PyFloat_Check(object) || std::strncmp(type->tp_name, "numpy.", 6) == 0) return {};
    return dtype_from_python(reinterpret_cast<PyObject*>(type));
}

bool is_number(PyObject* object) {
    if (PyFloat_Check(object) || PyLong_Check(object)) return true;
    const std::optional<Type> type = dtype_from_python(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return type && type->is_scalar();
}

// Writes nested lists of Weft values in C order, for the array `to`. `depth` counts the dimensions above, `written` the
// bytes.
void write_leaves(PyObject* list, const Array& to, std::size_t depth, std::byte*& at, std::int64_t& written,
                  const char* api) {
    if (depth == static_cast<std::size_t>(to.ndim)) {
        if (to.dtype.is_struct()) require_arrays_on(*to.device, list, api);
        if (!write_value(list, to.dtype, at)) {
            throw_unfit(api, "an element is " + describe(list) + ", expected " + to.dtype.python_name(), list,
                        to.dtype);
        }
        if (to.dtype.is_struct()) keep_arrays(list, *to.buffer, written);
        at += to.dtype.size_bytes();
        written += to.dtype.size_bytes();
        return;
    }
    std::int64_t expected = to.view.shape[depth];
    if (!is_list(list) || PySequence_Fast_GET_SIZE(list) != expected) {
        throw UsageError(api,
                         "the lists have different lengths: expected " + std::to_string(expected) +
                             " values in dimension " + std::to_string(depth) + ", got " + describe(list),
                         ErrorCategory::value);
    }
    for (std::int64_t i = 0; i < expected; ++i) {
        write_leaves(PySequence_Fast_GET_ITEM(list, i), to, depth + 1, at, written, api);
    }
}

Array from_values(PyObject* data, Type dtype, Device& device, const char* api) {
    Shape shape;
    for (PyObject* level = data; is_list(level); level = PySequence_Fast_GET_ITEM(level, 0)) {
        shape.push_back(PySequence_Fast_GET_SIZE(level));
        if (shape.back() == 0 || shape.size() == kMostNesting) break;
    }
    bool is_single = shape.empty();
    if (is_single) shape = {1};
    runtime::checked_size(shape, dtype.size_bytes(), api);
    Array result = runtime::empty(dtype, shape, device);
    runtime::HostWrite write(result);
    std::byte* at = runtime::host_data(write.array());
    std::int64_t written = 0;
    write_leaves(data, result, is_single ? 1 : 0, at, written, api);
    write.finish();
    return result;
}

// numpy.asarray(). It makes float64 of whole numbers on both sides of 2^63, so 64-bit integers are asked for by name.
nb::object as_rectangle(PyObject* data, Type dtype, const char* api) {
    const bool is_long = dtype == Type::scalar(Scalar::i64) || dtype == Type::scalar(Scalar::u64);
    try {
        if (!is_long) return numpy::as_array(data);
        return numpy::module().attr("asarray")(nb::handle(data), info(dtype.scalar()).numpy);
    } catch (nb::python_error& error) {
        if (error.matches(PyExc_OverflowError)) {
            nb::object numbers = numpy::module().attr("asarray")(nb::handle(data), "O");
            require_fit(*numpy::ndarray_pointer(numbers), dtype, api);  // names the number
            throw UsageError(api, "a number in the lists does not fit " + dtype.python_name(), ErrorCategory::overflow);
        }
        if (!error.matches(PyExc_ValueError)) throw;
        throw UsageError(api, "the lists have different lengths: " + nb::cast<std::string>(nb::str(error.value())),
                         ErrorCategory::value);
    }
}

Array from_numbers(PyObject* data, Type dtype, const std::optional<Shape>& shape, Device& device, const char* api) {
    nb::object array = as_rectangle(data, dtype, api);
    const numpy::NdArray& numbers = *numpy::ndarray_pointer(array);
    if (!dtype.is_none()) require_fit(numbers, dtype, api);
    return from_ndarray(array, numbers, dtype, shape, true, device, api);
}

// Elements as NumPy sees them: vectors add an axis of their components, and so do matrices.
Array as_scalars(const Array& array, const char* api) {
    if (!array.dtype.is_numeric_aggregate()) return array;
    if (array.ndim == kMaxDims) {
        throw UsageError(api, "data of shape " + runtime::shape_text(array.shape()) + " in elements of " +
                                  array.dtype.python_name() +
                                  " has more than 4 dimensions as scalars. help: dtype=wp." +
                                  array.dtype.python_name());
    }
    Array result = array;
    result.dtype = array.dtype.scalar_type();
    result.view.shape[result.ndim] = array.dtype.components();
    result.view.strides[result.ndim++] = result.dtype.size_bytes();
    return result;
}

Array reshaped(Array array, const std::optional<Shape>& shape) {
    return shape ? runtime::reshape(runtime::contiguous(array), *shape) : array;
}

Array from_array(const Array& source, Type dtype, const std::optional<Shape>& shape, bool copy, Device& device,
                 const char* api) {
    if (dtype.is_none() || dtype == source.dtype) {
        Array result = dtype.is_none() ? as_scalars(source, api) : source;
        result.view.grad = nullptr;
        runtime::refuse_lost_copy(device, *source.device);
        if (copy || source.device != &device)
            without_gil(source.size_bytes(), [&] { result = runtime::clone(result, device); });
        return reshaped(std::move(result), shape);
    }
    if (source.dtype.is_struct() || dtype.is_struct()) {
        throw UsageError(api,
                         "an array of " + source.dtype.python_name() + " cannot be converted to " + dtype.python_name(),
                         ErrorCategory::type);
    }
    nb::object view = numbers_of(source, wrap_array(source), api);
    return from_ndarray(view, *numpy::ndarray_pointer(view), dtype, shape, copy, device, api);
}

}  // namespace

runtime::Array array_from_data(PyObject* data, Type dtype, std::optional<Shape> shape, bool copy, Device& device,
                               const char* api) {
    if (array_pointer(data)) return from_array(memory_of(data, api).array, dtype, shape, copy, device, api);
    if (const numpy::NdArray* array = numpy::ndarray_pointer(data)) {
        return from_ndarray(data, *array, dtype, shape, copy, device, api);
    }
    if (!is_list(data) && is_indexed(data)) {
        const nb::object elements = chosen_elements(data);
        return from_array(memory_of(elements.ptr(), api).array, dtype, shape, false, device, api);
    }
    PyObject* leaf = first_leaf(data);
    if (leaf == data && is_number(data)) {
        throw UsageError(api,
                         "data is one number, " + describe(data) +
                             ", expected an array or a list. help: wp.full(1, value), wp.array([value])",
                         ErrorCategory::type);
    }
    if (std::optional<Type> type = leaf ? weft_value_type(leaf) : std::nullopt) {
        Array values = from_values(data, dtype.is_struct() ? dtype : *type, device, api);
        if (dtype.is_none() || dtype.is_scalar()) values = as_scalars(values, api);
        // One vector alone becomes its components.
        if (leaf == data && dtype.is_none() && values.ndim > 1) values = runtime::pick(values, 0, 0);
        return from_array(values, dtype, shape, false, device, api);
    }
    if (is_list(data)) {
        if (dtype.is_struct()) return reshaped(from_values(data, dtype, device, api), shape);
        return from_numbers(data, dtype, shape, device, api);
    }
    const std::optional<ForeignArray> foreign =
        PyBytes_Check(data) ? std::nullopt : read_foreign(data, {api, "data"});  // text is no data
    if (foreign && !foreign->device->is_host_memory) {  // viewed in place, and never copied to another device unasked
        if (foreign->device != &device) {
            throw UsageError(api, "data is " + describe(data) + " in memory of '" + foreign->device->alias +
                                      "', and the array is for '" + device.alias + "'. help: device='" +
                                      foreign->device->alias + "', then .to('" + device.alias + "')");
        }
        const Type held = dtype.is_none() ? Type::scalar(foreign->scalar) : dtype;
        return reshaped(as_elements(*foreign, data, held, {api, "data"}), shape);
    }
    if (foreign) {
        const nb::object array = ndarray_of(*foreign);
        const numpy::NdArray& numbers = *numpy::ndarray_pointer(array);
        const bool is_shown_as_bits = numpy::scalar_of(numbers) != foreign->scalar;  // of floats that NumPy lacks
        const auto watched = [&](Array made) {
            if (made.view.data == foreign->data) watch_memory(made, data);
            return made;
        };
        if (!is_shown_as_bits) return watched(from_ndarray(array, numbers, dtype, shape, copy, device, api));
        const Type bits = Type::scalar(bits_of(foreign->scalar));
        const Type held = dtype.is_none() ? Type::scalar(foreign->scalar) : dtype;
        Array result = watched(from_ndarray(array, numbers, bits, std::nullopt, copy, device, api));
        result.dtype = Type::scalar(foreign->scalar);
        return held == result.dtype ? reshaped(result, shape) : from_array(result, held, shape, copy, device, api);
    }
    nb::object array = numpy::as_array(data);
    const numpy::NdArray& found = *numpy::ndarray_pointer(array);
    if (!numpy::scalar_of(found) && std::strchr("OSU", found.descriptor->kind)) {
        throw UsageError(api,
                         "data is " + describe(data) +
                             ", expected an array, numbers, lists of numbers, or an object with a buffer or "
                             "__array_interface__",
                         ErrorCategory::type);
    }
    return from_ndarray(array, found, dtype, shape, copy, device, api);
}

}  // namespace weft::bindings
