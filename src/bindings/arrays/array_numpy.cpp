// Views between arrays and NumPy, and other libraries that use its protocols.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/lock.h"
#include "bindings/python/log.h"
#include "bindings/python/numpy_api.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "runtime/array_copies.h"
#include "runtime/recording.h"

namespace weft::bindings {
namespace {

using runtime::Array;

static_assert(std::endian::native == std::endian::little);

constexpr int kMaxNumpyDims = kMaxDims + 2;

// The dimensions of an array followed by those inside its elements.
struct Layout {
    Py_intptr_t shape[kMaxNumpyDims];
    Py_intptr_t strides[kMaxNumpyDims];
    int ndim = 0;
};

Layout full_layout(const Array& array) {
    Layout layout;
    for (; layout.ndim < array.ndim; ++layout.ndim) {
        layout.shape[layout.ndim] = array.view.shape[layout.ndim];
        layout.strides[layout.ndim] = array.view.strides[layout.ndim];
    }
    std::int64_t inner[2];
    int inner_count = inner_shape(array.dtype, inner);
    std::int64_t scalar_bytes = info(array.dtype.scalar()).bytes();
    for (int i = 0; i < inner_count; ++i) {
        layout.shape[layout.ndim] = inner[i];
        layout.strides[layout.ndim++] = i + 1 < inner_count ? inner[1] * scalar_bytes : scalar_bytes;
    }
    return layout;
}

// Throws unless elements are scalars, or made of scalars, that other programs know. The error gives the reason.
void require_plain(Type dtype, const char* api) {
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate()) {
        throw UsageError(api,
                         "an array of " + dtype.python_name() +
                             " has no NumPy form: only scalars, vectors and matrices have. help: array.list()",
                         ErrorCategory::type);
    }
}

}  // namespace

// Converts element by element; both sides are contiguous in memory of the host.
Array converted(const Array& from, Type dtype) {
    const Array source = runtime::contiguous(runtime::on_host(from));
    Array result = runtime::empty(dtype, from.shape(), runtime::host_device());
    const std::byte* read = runtime::host_data(source);
    std::byte* write = runtime::host_data(result);
    Scalar in = from.dtype.scalar(), out = dtype.scalar();
    std::int64_t count = from.size() * from.dtype.components();
    for (std::int64_t i = 0; i < count; ++i) {
        write_scalar(out, convert(read_scalar(in, read), in, out), write);
        read += info(in).bytes();
        write += info(out).bytes();
    }
    return result;
}

nb::object numpy_view(const Array& array, nb::handle keep_alive, const char* api) {
    if (!array.dtype.is_struct()) require_plain(array.dtype, api);
    if (!array.device->is_host_memory) {
        const Array copy = runtime::on_host(array);
        return numpy_view(copy, wrap_array(copy), api);
    }
    if (array.dtype.is_struct()) return struct_numpy_view(array, keep_alive, api);
    Layout layout = full_layout(array);
    return numpy::make_ndarray(array.dtype.scalar(), {layout.shape, static_cast<std::size_t>(layout.ndim)},
                               layout.strides, runtime::host_data(array), keep_alive, !is_read_only(array));
}

nb::object numpy_view(PyObject* self) {
    const Array& array = memory_of(self, "array.numpy()").array;
    if (is_bits_in_numpy(array.dtype) && !numpy::package_dtype(array.dtype.scalar()).is_valid()) {
        static auto& said = *new std::set<Scalar>;
        const Scalar scalar = array.dtype.scalar();
        if (said.insert(scalar).second) {
            const std::string name = info(scalar).python;
            log(LogLevel::warning, "array.numpy(): NumPy has no " + name + "; the bits are shown as " +
                                       info(bits_of(scalar)).python + ". help: install ml_dtypes for its " + name +
                                       ", or array.astype(wp.float32) for the values");
        }
    }
    return numpy_view(array, self, "array.numpy()");
}

nb::object numbers_of(const Array& array, nb::handle keep_alive, const char* api) {
    runtime::refuse_recording(*array.device, api, "convert with wp.utils.array_cast(), which is a launch");
    if (!is_bits_in_numpy(array.dtype) || numpy::package_dtype(array.dtype.scalar()).is_valid())
        return numpy_view(array, keep_alive, api);
    const Array readable = converted(array, array.dtype.with_scalar(Scalar::f32));
    return numpy_view(readable, wrap_array(readable), api);
}

// NumPy's rule for Python's ints; a fraction is cut off, as there, and a float too large for an int is an error too.
void require_fit(const numpy::NdArray& numbers, Type dtype, const char* api, const char* help) {
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate()) return;
    const Scalar to = dtype.scalar();
    if (!info(to).is_int()) return;
    const auto refuse = [&](const std::string& number) {
        throw UsageError(api, number + " does not fit " + info(to).python + help, ErrorCategory::overflow);
    };
    const auto fits_cut = [&](Number number, Scalar from) {
        if (!number.is_float) return is_in_range(number, from, to);
        const double whole = std::trunc(number.f);
        if (!(whole >= -0x1p63 && whole < 0x1p64)) return false;
        if (whole < 0) return is_in_range(Number::integer(static_cast<std::int64_t>(whole)), Scalar::i64, to);
        const auto bits = static_cast<std::int64_t>(static_cast<std::uint64_t>(whole));
        return is_in_range(Number::integer(bits), Scalar::u64, to);
    };
    const std::optional<Scalar> from = numpy::scalar_of(numbers);
    if (!from) {  // objects, such as ints beyond 64 bits
        if (numbers.descriptor->kind != 'O') return;
        auto* objects = reinterpret_cast<PyObject* const*>(numbers.data);
        for (std::int64_t i = 0; i < numbers.size(); ++i) {
            Number number;
            Scalar scalar;
            const bool is_number = PyLong_Check(objects[i]) || PyFloat_Check(objects[i]);
            if (is_number && (!read_number(objects[i], number, scalar) || !fits_cut(number, scalar)))
                refuse(nb::repr(nb::handle(objects[i])).c_str());
        }
        return;
    }
    if (*from == to || *from == Scalar::boolean) return;
    const char* at = numbers.data;
    for (std::int64_t i = 0; i < numbers.size(); ++i, at += info(*from).bytes()) {
        const Number number = read_scalar(*from, at);
        if (!fits_cut(number, *from)) refuse(nb::repr(number_to_python(number, *from)).c_str());
    }
}

void write_foreign(const Array& view, PyObject* value, const char* api) {
    runtime::HostWrite write(view, /*keeps=*/view.dtype.is_struct());
    nb::object target = numpy_view(write.array(), nb::handle(), api);
    nb::object source =
        array_pointer(value) ? numbers_of(memory_of(value, api).array, value, api) : numpy::as_array(value);
    if (view.dtype.is_struct()) {
        assign_structured(target, source, view.dtype, api);
        return write.finish();
    }
    if (!numpy::scalar_of(*numpy::ndarray_pointer(source))) {
        if (PyList_Check(value) || PyTuple_Check(value))
            require_fit(*numpy::ndarray_pointer(source), view.dtype, api);  // an int too large even for 64 bits
        throw UsageError(api, "cannot store " + describe(value) + " in an array of " + view.dtype.python_name(),
                         ErrorCategory::type);
    }
    const bool is_python = PyList_Check(value) || PyTuple_Check(value) || PyFloat_Check(value) || PyLong_Check(value);
    if (is_python) require_fit(*numpy::ndarray_pointer(source), view.dtype, api);
    if (is_bits_in_numpy(view.dtype)) {
        target = numpy::bits_of_numbers(target, view.dtype.scalar());
        source = numpy::bits_of_numbers(source, view.dtype.scalar());
    }
    try {
        numpy::copy_into(target, source);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError)) throw;
        const auto& from = *numpy::ndarray_pointer(source);
        throw UsageError(api,
                         "cannot store values of shape " +
                             runtime::shape_text({from.shape().begin(), from.shape().end()}) + " in an array of " +
                             view.dtype.python_name() + " of shape " + runtime::shape_text(view.shape()) +
                             ": counted from the last, dimensions must be equal or 1",
                         ErrorCategory::value);
    }
    write.finish();
}

// ---- the buffer protocol ----

namespace {

// Whether the first index runs fastest, without gaps.
bool is_fortran_order(const Layout& layout, std::int64_t bytes) {
    std::int64_t step = bytes;
    for (int i = 0; i < layout.ndim; ++i)
        if (layout.shape[i] == 0) return true;
    for (int i = 0; i < layout.ndim; ++i) {
        if (layout.shape[i] > 1 && layout.strides[i] != step) return false;
        step *= layout.shape[i];
    }
    return true;
}

// Neither buffers nor array interfaces have a name for these floats. Under that of an integer of the same size, other
// libraries would compute with the bits.
[[noreturn]] void throw_no_format(Type dtype, const char* api, ErrorCategory category = ErrorCategory::type) {
    throw UsageError(api,
                     "the elements are " + dtype.python_name() +
                         ", for which buffers and array interfaces have no format. help: array.numpy() (numbers with "
                         "ml_dtypes, else their bits), DLPack, or array.astype(wp.float32)",
                     category);
}

}  // namespace

int array_get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
    buffer->obj = nullptr;
    try {
        const Array& array = memory_of(self, "memoryview()").array;
        require_plain(array.dtype, "memoryview()");
        if (!array.device->is_host_memory)
            throw UsageError("memoryview()", "the array is on '" + array.device->alias + "'. help: .numpy() copies it");
        if ((flags & PyBUF_FORMAT) && is_bits_in_numpy(array.dtype)) throw_no_format(array.dtype, "memoryview()");
        const auto asks = [&](int flag) { return (flags & flag) == flag; };
        const bool wants_strides = asks(PyBUF_STRIDES);
        auto layout = std::make_unique<Layout>(full_layout(array));
        const bool is_c = array.is_contiguous();
        const bool is_fortran = is_fortran_order(*layout, info(array.dtype.scalar()).bytes());
        if (((asks(PyBUF_C_CONTIGUOUS) || !wants_strides) && !is_c) || (asks(PyBUF_F_CONTIGUOUS) && !is_fortran) ||
            (asks(PyBUF_ANY_CONTIGUOUS) && !is_c && !is_fortran)) {
            throw UsageError("memoryview()", "the array is not contiguous. help: contiguous()");
        }
        static char empty[1];
        buffer->buf = array.view.data ? static_cast<void*>(runtime::host_data(array)) : empty;
        buffer->itemsize = info(array.dtype.scalar()).bytes();
        buffer->len = array.size_bytes();
        if (is_read_only(array) && (flags & PyBUF_WRITABLE)) runtime::require_writable(array, "memoryview()");
        buffer->readonly = is_read_only(array);
        buffer->ndim = layout->ndim;
        buffer->format = flags & PyBUF_FORMAT ? const_cast<char*>(info(array.dtype.scalar()).letter) : nullptr;
        buffer->shape = flags & PyBUF_ND ? layout->shape : nullptr;
        buffer->strides = wants_strides ? layout->strides : nullptr;
        buffer->suboffsets = nullptr;
        buffer->internal = layout.release();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_BufferError, error.what());
        return -1;
    }
    Py_INCREF(self);
    buffer->obj = self;
    return 0;
}

void array_release_buffer(PyObject*, Py_buffer* buffer) { delete static_cast<Layout*>(buffer->internal); }

// ---- the array interfaces ----

namespace {

// The entries that both interfaces share. Precondition: numbers that NumPy knows.
nb::dict interface_of(const Array& array) {
    const Layout layout = full_layout(array);
    const ScalarInfo& scalar = info(array.dtype.scalar());
    nb::list shape, strides;
    for (int i = 0; i < layout.ndim; ++i) {
        shape.append(layout.shape[i]);
        strides.append(layout.strides[i]);
    }
    nb::dict interface;
    interface["version"] = 3;
    interface["typestr"] = nb::str(((scalar.bits == 8 ? "|" : "<") + std::string(scalar.numpy)).c_str());
    interface["shape"] = nb::tuple(shape);
    interface["strides"] = array.is_contiguous() ? nb::object(nb::none()) : nb::object(nb::tuple(strides));
    interface["data"] = nb::make_tuple(array.address(), is_read_only(array));
    return interface;
}

bool has_plain_numbers(const PyArray& value, const char* api) {
    const Type dtype = value.array.dtype;
    if (value.is_annotation || !(dtype.is_scalar() || dtype.is_numeric_aggregate())) return false;
    if (is_bits_in_numpy(dtype)) throw_no_format(dtype, api, ErrorCategory::attribute);
    return true;
}

}  // namespace

PyObject* array_interface(PyObject* self, void*) {
    return guarded([&] {
        PyArray& value = value_of(self);
        constexpr const char* kName = "array.__array_interface__";
        if (!has_plain_numbers(value, kName) || !value.array.device->is_host_memory) {
            throw UsageError(kName, "only CPU arrays of numbers that NumPy knows have it", ErrorCategory::attribute);
        }
        runtime::require_memory(value.array, kName);
        return interface_of(value.array).release().ptr();
    });
}

// Consumers need not wait: earlier launches are done.
PyObject* cuda_array_interface(PyObject* self, void*) {
    return guarded([&]() -> PyObject* {
        PyArray& value = value_of(self);
        constexpr const char* kName = "array.__cuda_array_interface__";
        if (!has_plain_numbers(value, kName))
            throw UsageError(kName, "only arrays of numbers that NumPy knows have it", ErrorCategory::attribute);
        const runtime::Device& device = *value.array.device;
        if (device.gpu() == nullptr) {
            throw UsageError(kName, "the array is on '" + device.alias + "'. help: __array_interface__",
                             ErrorCategory::attribute);
        }
        runtime::require_memory(value.array, kName);
        runtime::refuse_recording(device, kName, "ask for it before or after the capture");
        {
            const nb::gil_scoped_release released;
            runtime::current_stream(device).synchronize();
        }
        nb::dict interface = interface_of(value.array);
        interface["stream"] = nb::none();
        return interface.release().ptr();
    });
}

}  // namespace weft::bindings
