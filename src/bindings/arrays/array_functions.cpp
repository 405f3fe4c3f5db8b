// The functions of the module that make and copy arrays.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/python/numpy_api.h"
#include "runtime/pinned.h"

namespace weft::bindings {
namespace {

using runtime::Array;
using runtime::Shape;

// ---- element values ----

// The dtype that a value has by itself: 1 int32, 1.0 float32, True bool, wp.vec3(...) vec3f. A sequence gets NumPy's:
// [1.0, 2.0] is a vector of two float64, [[1, 2], [3, 4]] a matrix of int64.
Type dtype_of_value(PyObject* value, const char* api) {
    if (PyBool_Check(value)) return bool_type();
    if (PyFloat_CheckExact(value)) return f32_type();
    if (std::optional<Type> type = dtype_from_python(reinterpret_cast<PyObject*>(Py_TYPE(value)))) return *type;
    if (PyLong_Check(value)) return i32_type();  // members of IntEnum too
    nb::object array = numpy::as_array(value);
    const numpy::NdArray& numbers = *numpy::ndarray_pointer(array);
    std::optional<Scalar> scalar = numpy::scalar_of(numbers);
    if (scalar && numbers.size() > 0) {
        if (numbers.ndim == 0) return Type::scalar(*scalar);
        const std::span<const std::int64_t> extents(numbers.dimensions, static_cast<std::size_t>(numbers.ndim));
        if (const std::optional<Type> element = element_of_extents(*scalar, extents)) return *element;
        if (numbers.ndim <= 2) {
            throw UsageError(api,
                             "the value is " + describe(value) + ", an element has " + std::to_string(kMostComponents) +
                                 " components at most. help: give dtype",
                             ErrorCategory::value);
        }
    }
    throw UsageError(api, "the value is " + describe(value) + ", which is no element of an array. help: give dtype",
                     ErrorCategory::type);
}

// ---- new arrays ----

// Strides in bytes, one for each dimension: the memory reaches from the first byte to the last that they lead to.
Array new_strided(Type dtype, const Shape& shape, PyObject* strides, bool zeroed, const Options& options,
                  const char* api) {
    const std::int64_t count = runtime::checked_size(shape, dtype.size_bytes(), api);
    const Shape steps = shape_argument(strides, api);
    const std::int64_t alignment = dtype.alignment();
    std::int64_t bytes = count > 0 ? dtype.size_bytes() : 0;
    bool fits = steps.size() == shape.size();
    for (std::size_t i = 0; fits && i < steps.size(); ++i) {
        std::int64_t reach = 0;
        fits = steps[i] >= 0 && steps[i] % alignment == 0;
        if (count == 0 || !fits) continue;
        fits = !__builtin_mul_overflow(shape[i] - 1, steps[i], &reach) && !__builtin_add_overflow(bytes, reach, &bytes);
    }
    if (!fits) {
        throw UsageError(api,
                         "the strides " + runtime::shape_text(steps) + " do not fit the shape " +
                             runtime::shape_text(shape) +
                             ": expected one for each dimension, in bytes, none negative, " + "multiples of " +
                             std::to_string(alignment) + " for " + dtype.python_name(),
                         ErrorCategory::value);
    }
    Array array;
    array.dtype = dtype;
    array.ndim = static_cast<int>(shape.size());
    array.device = options.device;
    std::ranges::copy(shape, array.view.shape);
    std::ranges::copy(steps, array.view.strides);
    const runtime::Pinning pinning(options.pinned);
    array.buffer =
        zeroed ? runtime::allocate_zeroed(bytes, *options.device) : runtime::allocate(bytes, *options.device);
    array.view.data = array.buffer->data;
    return array;
}

PyObject* new_empty(Type dtype, const Shape& shape, const Options& options, const char* api) {
    runtime::checked_size(shape, dtype.size_bytes(), api);
    const runtime::Pinning pinning(options.pinned);
    return finish(runtime::empty(dtype, shape, *options.device), options);
}

PyObject* new_zeros(Type dtype, const Shape& shape, const Options& options, const char* api) {
    std::int64_t count = runtime::checked_size(shape, dtype.size_bytes(), api);
    Array array;
    const runtime::Pinning pinning(options.pinned);
    without_gil(count * dtype.size_bytes(), [&] { array = runtime::zeros(dtype, shape, *options.device); });
    return finish(std::move(array), options);
}

PyObject* new_filled(Type dtype, const Shape& shape, PyObject* value, const Options& options, const char* api,
                     PyObject* strides = nullptr) {
    nb::object result =
        nb::steal(is_given(strides) ? finish(new_strided(dtype, shape, strides, true, options, api), options)
                                    : new_empty(dtype, shape, options, api));
    const Unobserved unobserved;  // the array had no contents before
    fill_array(value_of(result.ptr()), value, api);
    return result.release().ptr();
}

// empty, zeros and ones share one list of parameters; full has `value` behind the shape. `ndim` is accepted and
// ignored: the shape has it.
enum Creation {
    kNewShape,
    kNewDtype,
    kNewDevice,
    kNewRequiresGrad,
    kNewPinned,
    kNewRetainGrad,
    kNewN,
    kNewLength,
    kNewStrides,
    kNewNdim,
    kCreationCount
};
constexpr std::array<const char*, kCreationCount> kCreationNames = {
    "shape", "dtype", "device", "requires_grad", "pinned", "retain_grad", "n", "length", "strides", "ndim"};
using CreationSignature = Signature<kCreationCount>;

CreationSignature creation_signature(const char* api) { return CreationSignature(api, kCreationNames, 0, kNewN); }

struct Creating {
    Shape shape;
    Options options;
    PyObject* strides;
};

// `given` has the argument of each place.
template <typename Given>
Creating read_creation(const Given& given, const char* api) {
    return {shape_argument(given(kNewShape), given(kNewN), given(kNewLength), api),
            Options{&device_from_python(given(kNewDevice), api), flag(given(kNewRequiresGrad), false),
                    flag(given(kNewPinned), false), flag(given(kNewRetainGrad), false)},
            given(kNewStrides)};
}

// Calls make(Type, Creating, api).
template <typename Make>
PyObject* create(const CreationSignature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                 Make&& make) {
    return guarded([&] {
        const auto given = signature.parse(args, count, keywords);
        const Type dtype = dtype_argument(given[kNewDtype], signature.api());
        return make(dtype, read_creation([&](Creation place) { return given[place]; }, signature.api()),
                    signature.api());
    });
}

PyObject* empty(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const CreationSignature signature = creation_signature("empty()");
    return create(signature, args, count, keywords, [](Type dtype, const Creating& of, const char* api) {
        if (!is_given(of.strides)) return new_empty(dtype, of.shape, of.options, api);
        return finish(new_strided(dtype, of.shape, of.strides, false, of.options, api), of.options);
    });
}

PyObject* zeros(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const CreationSignature signature = creation_signature("zeros()");
    return create(signature, args, count, keywords, [](Type dtype, const Creating& of, const char* api) {
        if (!is_given(of.strides)) return new_zeros(dtype, of.shape, of.options, api);
        return finish(new_strided(dtype, of.shape, of.strides, true, of.options, api), of.options);
    });
}

PyObject* one() {
    static PyObject* one = PyLong_FromLong(1);
    return one;
}

PyObject* ones(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const CreationSignature signature = creation_signature("ones()");
    return create(signature, args, count, keywords, [](Type dtype, const Creating& of, const char* api) {
        return new_filled(dtype, of.shape, one(), of.options, api, of.strides);
    });
}

PyObject* full(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        constexpr std::size_t kValue = kNewShape + 1;
        static const auto signature = [] {
            std::array<const char*, kCreationCount + 1> names;
            names[kValue] = "value";
            std::ranges::copy(std::span(kCreationNames).first(kValue), names.begin());
            std::ranges::copy(std::span(kCreationNames).subspan(kValue), names.begin() + kValue + 1);
            return Signature<kCreationCount + 1>("full()", names, 0, kNewN + 1);
        }();
        const auto all = signature.parse(args, count, keywords);
        const char* api = signature.api();
        const auto given = [&](Creation place) { return all[place < kValue ? place : place + 1]; };
        static PyObject* zero = PyLong_FromLong(0);
        PyObject* value = all[kValue] ? all[kValue] : zero;
        const bool has_dtype = is_given(given(kNewDtype)) && !is_any(given(kNewDtype));
        const Type dtype = has_dtype ? dtype_argument(given(kNewDtype), api) : dtype_of_value(value, api);
        const Creating of = read_creation(given, api);
        return new_filled(dtype, of.shape, value, of.options, api, of.strides);
    });
}

// ---- arrays like another ----

enum Like { kSource, kLikeDevice, kLikeRequiresGrad, kLikePinned, kLikeRetainGrad, kLikeCount };
using LikeSignature = Signature<kLikeCount>;

LikeSignature like_signature(const char* api) {
    return LikeSignature(api, {"src", "device", "requires_grad", "pinned", "retain_grad"}, 1);
}

// Options that are not given come from the source, except retain_grad.
Options like_options(PyArray& source, PyObject* device, PyObject* requires_grad, PyObject* pinned,
                     PyObject* retain_grad, const char* api) {
    return {is_given(device) ? &device_from_python(device, api) : source.array.device,
            flag(requires_grad, source.requires_grad), flag(pinned, source.pinned), flag(retain_grad, false)};
}

template <typename Make>
PyObject* make_like(const LikeSignature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                    Make&& make) {
    return guarded([&] {
        auto given = signature.parse(args, count, keywords);
        const char* api = signature.api();
        // Programs of 2021 pass `requires_grad` in the place of `device`; a bool is no device.
        if (count > kLikeDevice && PyBool_Check(given[kLikeDevice])) {
            if (given[kLikeRequiresGrad]) throw_given_twice(api, "requires_grad");
            std::swap(given[kLikeDevice], given[kLikeRequiresGrad]);
        }
        nb::object elements = chosen_elements(given[kSource]);
        PyArray& source = array_argument(elements.ptr(), api, "src");
        Options options = like_options(source, given[kLikeDevice], given[kLikeRequiresGrad], given[kLikePinned],
                                       given[kLikeRetainGrad], api);
        return make(source, options, api);
    });
}

Shape shape_of(const PyArray& array) { return {array.array.shape().begin(), array.array.shape().end()}; }

PyObject* empty_like(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const LikeSignature signature = like_signature("empty_like()");
    return make_like(signature, args, count, keywords, [](PyArray& source, const Options& options, const char* api) {
        return new_empty(source.array.dtype, shape_of(source), options, api);
    });
}

PyObject* zeros_like(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const LikeSignature signature = like_signature("zeros_like()");
    return make_like(signature, args, count, keywords, [](PyArray& source, const Options& options, const char* api) {
        return new_zeros(source.array.dtype, shape_of(source), options, api);
    });
}

PyObject* ones_like(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const LikeSignature signature = like_signature("ones_like()");
    return make_like(signature, args, count, keywords, [](PyArray& source, const Options& options, const char* api) {
        return new_filled(source.array.dtype, shape_of(source), one(), options, api);
    });
}

PyObject* clone(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    static const LikeSignature signature = like_signature("clone()");
    return make_like(signature, args, count, keywords, [](PyArray& source, const Options& options, const char* api) {
        nb::object result = nb::steal(new_empty(source.array.dtype, shape_of(source), options, api));
        // The new array had no contents; a tape needs the copy only if the source has a gradient.
        std::optional<Unobserved> unobserved;
        if (!source.requires_grad) unobserved.emplace();
        copy_elements(value_of(result.ptr()), source, 0, 0, 0, api);
        return result.release().ptr();
    });
}

PyObject* full_like(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        enum { kSource, kValue, kNewDevice, kNewRequiresGrad, kNewPinned, kNewRetainGrad, kCount };
        static const Signature<kCount> signature(
            "full_like()", {"src", "value", "device", "requires_grad", "pinned", "retain_grad"}, 2);
        auto given = signature.parse(args, count, keywords);
        const char* api = signature.api();
        nb::object elements = chosen_elements(given[kSource]);
        PyArray& source = array_argument(elements.ptr(), api, "src");
        Options options = like_options(source, given[kNewDevice], given[kNewRequiresGrad], given[kNewPinned],
                                       given[kNewRetainGrad], api);
        return new_filled(source.array.dtype, shape_of(source), given[kValue], options, api);
    });
}

// ---- copying ----

PyObject* copy(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        enum { kDestination, kSource, kToOffset, kFromOffset, kCopyCount, kStream, kCount };
        static const Signature<kCount> signature("copy()",
                                                 {"dest", "src", "dest_offset", "src_offset", "count", "stream"}, 2);
        auto given = signature.parse(args, count, keywords);
        const char* api = signature.api();
        auto number = [&](PyObject* value, const char* name) {
            return is_given(value) ? integer(value, api, name) : 0;
        };
        std::optional<runtime::UseStream> stream;
        if (is_given(given[kStream])) stream.emplace(stream_argument(given[kStream], nb::none(), api).stream);
        nb::object source = chosen_elements(given[kSource]);
        array_argument(source.ptr(), api, "src");
        if (is_indexed(given[kDestination])) {
            const nb::handle to(given[kDestination]);
            source = same_bytes(source, array_pointer(to.attr("data"))->array.dtype, api);
            indexed_function("copy_into")(to, source, number(given[kToOffset], "dest_offset"),
                                          number(given[kFromOffset], "src_offset"), number(given[kCopyCount], "count"));
            Py_RETURN_NONE;
        }
        PyArray& to = array_argument(given[kDestination], api, "dest");
        const runtime::Asynchronous asynchronous;
        source = same_bytes(source, to.array.dtype, api);
        copy_elements(to, value_of(source.ptr()), number(given[kToOffset], "dest_offset"),
                      number(given[kFromOffset], "src_offset"), number(given[kCopyCount], "count"), api);
        Py_RETURN_NONE;
    });
}

// The element type of the rows of an array without a dtype: numbers in one dimension, vectors in two, matrices in
// three.
Type row_type(const numpy::NdArray& data, const char* api) {
    const std::optional<Scalar> scalar = numpy::scalar_of(data);
    if (!scalar || data.ndim < 2 || data.ndim > 3) return Type::none();
    const std::span<const std::int64_t> extents(data.dimensions + 1, static_cast<std::size_t>(data.ndim - 1));
    if (std::ranges::count(extents, 0) > 0) return Type::none();
    if (const std::optional<Type> element = element_of_extents(*scalar, extents)) return *element;
    throw UsageError(api,
                     "rows of shape " + runtime::shape_text(extents) + " are too long for vectors, which have " +
                         std::to_string(kMostComponents) + " components at most. help: dtype=wp." +
                         info(*scalar).python,
                     ErrorCategory::value);
}

PyObject* from_numpy(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        enum { kData, kNewDtype, kNewShape, kNewDevice, kNewRequiresGrad, kNewRetainGrad, kCount };
        static const Signature<kCount> signature(
            "from_numpy()", {"arr", "dtype", "shape", "device", "requires_grad", "retain_grad"}, 1);
        auto given = signature.parse(args, count, keywords);
        const char* api = signature.api();
        if (!numpy::ndarray_pointer(given[kData])) {
            throw UsageError(api, "'arr' must be a NumPy array, got " + describe(given[kData]), ErrorCategory::type);
        }
        bool has_dtype = is_given(given[kNewDtype]) && !is_any(given[kNewDtype]);
        Type dtype =
            has_dtype ? dtype_argument(given[kNewDtype], api) : row_type(*numpy::ndarray_pointer(given[kData]), api);
        std::optional<Shape> shape;
        if (is_given(given[kNewShape])) shape = shape_argument(given[kNewShape], api);
        Options options{&device_from_python(given[kNewDevice], api), flag(given[kNewRequiresGrad], false), false,
                        flag(given[kNewRetainGrad], false)};
        return finish(array_from_data(given[kData], dtype, std::move(shape), true, *options.device, api), options);
    });
}

template <typename Function>
PyMethodDef entry(const char* name, Function* function, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL | METH_KEYWORDS, doc};
}

// The docstring of a function, with the shared parameters behind its own.
const char* creation_doc(const char* own_parameters, const char* text) {
    static std::deque<std::string> kept;
    constexpr const char* kShared =
        ", device=None, requires_grad=False, pinned=False, retain_grad=False, *, n=None, length=None, strides=None, "
        "ndim=None)\n--\n\n";
    return kept.emplace_back(std::string(own_parameters) + kShared + text).c_str();
}

PyMethodDef functions[] = {
    entry(
        "empty", &empty,
        creation_doc(
            "empty($module, shape=None, dtype=None",
            "An array whose elements are not set.\n\n"
            "Args:\n    shape: number of elements, or a tuple of up to four. `n` and `length` are older names.\n"
            "    dtype: type of the elements, float32 if it is not given.\n    device: the owner of the memory.\n"
            "    requires_grad: makes an array of gradients, of zeros.\n"
            "    retain_grad: tapes leave it the gradient of its last contents, to be looked at.\n"
            "    pinned: memory of the CPU that a CUDA device copies from and to while Python goes on; without such a "
            "device it is ordinary memory.\n"
            "    strides: in bytes, one for each dimension; the memory that they need is allocated.\n"
            "    ndim: accepted; the shape says it.\n\n"
            "Raises: UsageError for negative or impossible sizes, a MemoryError if there is no memory.")),
    entry("zeros", &zeros,
          creation_doc("zeros($module, shape=None, dtype=None",
                       "An array of zeros. The arguments are those of empty().")),
    entry("ones", &ones,
          creation_doc("ones($module, shape=None, dtype=None",
                       "An array of ones, also in all components of vectors, matrices, quaternions and transforms. The "
                       "arguments are those of empty().")),
    entry("full", &full,
          creation_doc(
              "full($module, shape=None, value=0, dtype=None",
              "An array of equal elements.\n\n"
              "Args:\n    value: the element; a number fills all components. Numbers convert as in C: ints wrap.\n"
              "    dtype: by default that of the value: int32 for an int, float32 for a float; for a sequence a vector "
              "or\n"
              "        matrix of the numbers that NumPy makes of it, int64 or float64.\n"
              "The others are those of empty().")),
    entry("empty_like", &empty_like,
          "empty_like($module, src, device=None, requires_grad=None, pinned=None, retain_grad=False)\n--\n\n"
          "An array of the shape and dtype of another, not set. Options that are not given come from `src`.\n"
          "A bool as second positional argument is `requires_grad`, as it was in 2021."),
    entry("zeros_like", &zeros_like,
          "zeros_like($module, src, device=None, requires_grad=None, pinned=None, retain_grad=False)\n--\n\n"
          "An array of zeros of the shape and dtype of another. Options that are not given come from `src`.\n"
          "A bool as second positional argument is `requires_grad`, as it was in 2021."),
    entry("ones_like", &ones_like,
          "ones_like($module, src, device=None, requires_grad=None, pinned=None, retain_grad=False)\n--\n\n"
          "An array of ones of the shape and dtype of another. Options that are not given come from `src`."),
    entry("full_like", &full_like,
          "full_like($module, src, value, device=None, requires_grad=None, pinned=None, retain_grad=False)\n--\n\n"
          "An array of equal elements of the shape and dtype of another. Options that are not given come from `src`."),
    entry("clone", &clone,
          "clone($module, src, device=None, requires_grad=None, pinned=None, retain_grad=False)\n--\n\n"
          "A contiguous copy, of the gradient too. Options that are not given come from `src`."),
    entry(
        "copy", &copy,
        "copy($module, dest, src, dest_offset=0, src_offset=0, count=0, stream=None)\n--\n\n"
        "Copies elements from `src` to `dest`; gradients too where both have them.\n\n"
        "Args:\n    dest: the array that is written.\n"
        "    src: the array that is read. Elements of another dtype of the same size are copied bit by bit, without a\n"
        "        gradient.\n"
        "    dest_offset: first element that is written.\n    src_offset: first element that is read.\n"
        "    count: number of elements; 0 means all of `src` from `src_offset` on.\n\n"
        "Arrays with gaps between their elements need equal shapes, or one dimension for offsets and counts.\n"
        "Overlapping arrays are handled as if copied through a temporary one.\n\n"
        "Raises: UsageError where `dest` is too small or the elements have other sizes."),
    entry(
        "from_numpy", &from_numpy,
        "from_numpy($module, arr, dtype=None, shape=None, device=None, requires_grad=False, retain_grad=False)\n--\n\n"
        "A copy of a NumPy array. Without dtype, an array (n, k) becomes n vectors of k of its numbers, and one of\n"
        "(n, r, c) n matrices; others keep their shape."),
};

}  // namespace

void bind_array_functions(nb::module_& m) {
    add_functions(m, functions);
    m.def(
        "write_values",
        [](nb::handle to, nb::handle values) {
            PyArray& array = array_argument(to.ptr(), "write_values()", "array");
            write_foreign(array.array, values.ptr(), "write_values()");
            count_write(array);
        },
        nb::arg("array"), nb::arg("values"), "Writes what NumPy holds into an array; a tape is not told.");
}

}  // namespace weft::bindings
