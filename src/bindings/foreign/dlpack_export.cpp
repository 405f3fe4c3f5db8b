// Arrays for other libraries: array.__dlpack__, wp.to_dlpack and the C exchange API of the class; and wp.from_dlpack.
#include <algorithm>
#include <cstring>
#include <memory>

#include "bindings/foreign/foreign.h"
#include "bindings/python/fastcall.h"
#include "bindings/python/lock.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "runtime/array_copies.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"
#include "runtime/graph.h"

namespace weft::bindings {
namespace {

using runtime::Array;

// A device as DLPack has it; empty if DLPack has no number for it.
std::optional<dlpack::Device> dlpack_device(const runtime::Device& device) {
    if (device.is_host_memory) return dlpack::Device{dlpack::DeviceType::cpu, 0};
    if (device.gpu()) return dlpack::Device{dlpack::DeviceType::cuda, device.ordinal};
    return std::nullopt;
}

// The device that DLPack means, or null.
runtime::Device* find_device(dlpack::Device wanted) {
    const auto is_it = [&](const runtime::Device& device) {
        const std::optional<dlpack::Device> known = dlpack_device(device);
        return known && wanted.type == known->type && wanted.ordinal == known->ordinal;
    };
    if (is_it(runtime::host_device())) return &runtime::host_device();
    for (runtime::Device* const device : runtime::cuda_devices())
        if (is_it(*device)) return device;
    return nullptr;
}

// One of DLPack's two structures, with the memory that it points to.
template <typename Managed>
struct Exported {
    Managed managed;
    Array array;  // keeps the memory alive
    std::int64_t shape[kMaxForeignDims];
    std::int64_t strides[kMaxForeignDims];  // of numbers
};

template <typename Managed>
void free_exported(Managed* managed) {
    delete static_cast<Exported<Managed>*>(managed->context);
}

// PyTorch ends the process if it is given one, and Paddle takes the stride for a huge positive number.
[[noreturn]] void throw_negative_stride(const Array& array, int axis, const char* api) {
    throw UsageError(api, "the array of shape " + runtime::shape_text(array.shape()) + " has a stride of " +
                              std::to_string(array.view.strides[axis]) + " bytes along dimension " +
                              std::to_string(axis) +
                              ", and the libraries that speak DLPack have no negative strides. help: "
                              "array.contiguous() copies; np.asarray(array) shows the memory to NumPy");
}

template <typename Managed>
std::unique_ptr<Exported<Managed>> exported(const Array& array, std::optional<Scalar> scalar, const char* api) {
    const Type dtype = array.dtype;
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate()) {
        throw UsageError(api,
                         "an array of " + dtype.python_name() +
                             " has no form that other libraries know: only scalars, vectors and matrices have",
                         ErrorCategory::type);
    }
    const std::optional<dlpack::Device> device = dlpack_device(*array.device);
    if (!device) {
        throw UsageError(api, "the array is on '" + array.device->alias +
                                  "', whose memory other libraries cannot reach. help: array.to('cpu')");
    }
    auto result = std::make_unique<Exported<Managed>>();
    result->array = array;
    std::int64_t inner[2];
    const int inner_count = inner_shape(dtype, inner);
    const std::int64_t bytes = info(dtype.scalar()).bytes();
    for (int i = 0; i < inner_count; ++i) {
        result->shape[array.ndim + i] = inner[i];
        result->strides[array.ndim + i] = i + 1 < inner_count ? inner[1] : 1;
    }
    const bool is_empty = array.size() == 0;
    std::int64_t packed = dtype.components();
    for (int i = array.ndim; i-- > 0;) {
        const std::int64_t extent = array.view.shape[i], stride = array.view.strides[i];
        result->shape[i] = extent;
        result->strides[i] = stride / bytes;
        if (is_empty || extent == 1) {
            result->strides[i] = packed;  // a stride along one element may be anything, and libraries compute with it
        } else if (stride < 0) {
            throw_negative_stride(array, i, api);
        } else if (stride % bytes != 0) {
            throw UsageError(api, "a stride of " + std::to_string(stride) + " bytes is no multiple of the numbers' " +
                                      std::to_string(bytes) + ", as DLPack has it. help: array.contiguous()");
        }
        packed *= std::max<std::int64_t>(extent, 1);
    }
    auto& tensor = [&]() -> dlpack::Tensor& {
        if constexpr (std::is_same_v<Managed, dlpack::VersionedTensor>) {
            result->managed.version = dlpack::kVersion;
            result->managed.flags = is_read_only(array) ? dlpack::kReadOnly : 0;
        }
        return result->managed.tensor;
    }();
    tensor.data = array.view.data;
    tensor.device = *device;
    tensor.ndim = array.ndim + inner_count;
    tensor.dtype = dlpack_type(scalar.value_or(dtype.scalar()));
    tensor.shape = result->shape;
    tensor.strides = result->strides;
    tensor.byte_offset = 0;
    result->managed.context = result.get();
    result->managed.deleter = free_exported<Managed>;
    return result;
}

template <typename Managed>
Managed* released(std::unique_ptr<Exported<Managed>> tensor) {
    return &tensor.release()->managed;
}

template <typename Managed>
nb::object capsule(Managed* tensor, const char* name) {
    // A capsule that no consumer took frees its contents.
    const auto destroy = [](PyObject* object) {
        constexpr const char* own =
            std::is_same_v<Managed, dlpack::ManagedTensor> ? dlpack::kCapsule : dlpack::kVersionedCapsule;
        if (!PyCapsule_IsValid(object, own)) return;
        auto* held = static_cast<Managed*>(PyCapsule_GetPointer(object, own));
        if (held->deleter) held->deleter(held);
    };
    nb::object result = nb::steal(PyCapsule_New(tensor, name, destroy));
    if (!result.is_valid()) {
        tensor->deleter(tensor);
        throw nb::python_error();
    }
    return result;
}

// ---- methods of array ----

[[noreturn]] void throw_buffer_error(const std::string& text) {
    PyErr_SetString(PyExc_BufferError, ("array.__dlpack__(): " + text).c_str());
    throw nb::python_error();
}

// (major, minor), or empty if the consumer named no version.
std::optional<std::pair<long, long>> pair_of(PyObject* given, const char* name) {
    if (!is_given(given)) return std::nullopt;
    const nb::object items = sequence_items(given);
    if (!items.is_valid() || PySequence_Fast_GET_SIZE(items.ptr()) != 2) {
        throw UsageError("array.__dlpack__()",
                         std::string(name) + " is " + describe(given) + ", expected a tuple of two ints",
                         ErrorCategory::type);
    }
    return std::pair{static_cast<long>(integer(PySequence_Fast_GET_ITEM(items.ptr(), 0), "array.__dlpack__()", name)),
                     static_cast<long>(integer(PySequence_Fast_GET_ITEM(items.ptr(), 1), "array.__dlpack__()", name))};
}

}  // namespace

namespace {

// The device that a consumer asks for; that of the array if it asks for none.
runtime::Device& wanted_device(const Array& array, const std::optional<std::pair<long, long>>& asked) {
    if (!asked) return *array.device;
    const dlpack::Device wanted{static_cast<dlpack::DeviceType>(asked->first),
                                static_cast<std::int32_t>(asked->second)};
    // A device of the host's memory besides "cpu" keeps its arrays in place.
    const std::optional<dlpack::Device> own = dlpack_device(*array.device);
    if (own && wanted.type == own->type && wanted.ordinal == own->ordinal) return *array.device;
    if (runtime::Device* const device = find_device(wanted)) return *device;
    throw_buffer_error("the array is on '" + array.device->alias +
                       "', and dl_device asks for another device, of kind " + std::to_string(asked->first) +
                       " and number " + std::to_string(asked->second) +
                       "; expected (1, 0), the CPU, or (2, n), a CUDA device that is there");
}

// The number of the stream in which the consumer will use the array; empty if it waits by itself.
std::optional<std::uint64_t> consumer_stream(PyObject* given, const runtime::Device& device, const char* api) {
    constexpr std::int64_t kNoOrder = -1;
    constexpr std::uint64_t kLegacyStream = 1;
    if (!device.gpu()) {
        if (is_given(given) && integer(given, api, "stream") != kNoOrder)
            throw_buffer_error("stream is " + describe(given) + ": the CPU has no streams, expected None");
        return std::nullopt;
    }
    if (!is_given(given)) return kLegacyStream;
    const std::int64_t stream = integer(given, api, "stream");
    if (stream == kNoOrder) return std::nullopt;
    if (stream < 1)
        throw_buffer_error("stream is " + describe(given) +
                           ", expected 1 for the legacy default stream, 2 for that of the thread, the handle of a "
                           "stream, or -1 for a consumer that waits by itself");
    return static_cast<std::uint64_t>(stream);
}

}  // namespace

PyObject* array_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        enum { kStream, kMaxVersion, kDevice, kCopy, kCount };
        static const Signature<kCount> signature("array.__dlpack__()", {"stream", "max_version", "dl_device", "copy"});
        const auto given = signature.parse(args, count, keywords);
        const char* api = signature.api();
        Array array = memory_of(self, api).array;
        if (count == 0 && !keywords && is_bits_in_numpy(array.dtype)) {
            // mpi4py calls it so, and adds the bits as integers.
            throw_buffer_error("the elements are " + array.dtype.python_name() +
                               ", and the consumer does not name its version of DLPack. help: wp.to_dlpack(array), "
                               "max_version=(1, 0), or array.astype(wp.float32)");
        }
        runtime::Device& device = wanted_device(array, pair_of(given[kDevice], "dl_device"));
        const std::optional<std::uint64_t> stream = consumer_stream(given[kStream], device, api);
        const auto version = pair_of(given[kMaxVersion], "max_version");
        const bool moves = &device != array.device;
        if (moves && is_given(given[kCopy]) && !flag(given[kCopy], true)) {
            throw_buffer_error("the array is on '" + array.device->alias + "', dl_device asks for '" + device.alias +
                               "', and copy is False. help: leave copy out");
        }
        const bool copies = moves || flag(given[kCopy], false);
        if (copies) {
            if (array.device->gpu() || device.gpu())
                runtime::refuse_recording(array.device->gpu() ? *array.device : device, api,
                                          "exchange the array before or after the capture");
            without_gil(array.size_bytes(), [&] { array = runtime::clone(array, device); });
        }
        if (!copies && is_read_only(array) && !(version && version->first >= 1))
            throw_buffer_error("the array is read-only, which DLPack can say from version 1 on only. help: copy=True");
        if (stream) runtime::let_foreign_stream_wait(device, *stream, api);
        try {
            if (version && version->first >= 1) {
                dlpack::VersionedTensor* tensor = export_versioned(array, api);
                if (copies) tensor->flags |= dlpack::kIsCopied;
                return capsule_of(tensor).release().ptr();
            }
            return capsule_of(export_unversioned(array, api)).release().ptr();
        } catch (const UsageError& error) {  // the protocol's error for memory that cannot be described
            if (error.category != ErrorCategory::runtime) throw;
            PyErr_SetString(PyExc_BufferError, error.what());
            throw nb::python_error();
        }
    });
}

PyObject* array_dlpack_device(PyObject* self, PyObject*) {
    return guarded([&] {
        const Array& array = memory_of(self, "array.__dlpack_device__()").array;
        const std::optional<dlpack::Device> device = dlpack_device(*array.device);
        if (!device)
            throw_buffer_error("the array is on '" + array.device->alias + "', which DLPack has no number for");
        return Py_BuildValue("(ii)", static_cast<int>(device->type), static_cast<int>(device->ordinal));
    });
}

dlpack::VersionedTensor* export_versioned(const Array& array, const char* api, std::optional<Scalar> scalar) {
    return released(exported<dlpack::VersionedTensor>(array, scalar, api));
}
dlpack::ManagedTensor* export_unversioned(const Array& array, const char* api, std::optional<Scalar> scalar) {
    return released(exported<dlpack::ManagedTensor>(array, scalar, api));
}
nb::object capsule_of(dlpack::VersionedTensor* tensor) { return capsule(tensor, dlpack::kVersionedCapsule); }
nb::object capsule_of(dlpack::ManagedTensor* tensor) { return capsule(tensor, dlpack::kCapsule); }

namespace {

// ---- the C exchange API of the class array ----

int guarded_status(auto&& body) {
    return guarded(
        [&] {
            body();
            return 0;
        },
        -1);
}

int exchange_allocate(dlpack::Tensor* prototype, dlpack::VersionedTensor** out, void* context,
                      void (*set_error)(void*, const char*, const char*)) {
    try {
        const std::optional<Scalar> scalar = scalar_of(prototype->dtype);
        runtime::Device* const device = find_device(prototype->device);
        if (!scalar || !device)
            throw UsageError("array", "expected numbers that Weft has, on a device that is there", ErrorCategory::type);
        const runtime::Shape shape(prototype->shape, prototype->shape + prototype->ndim);
        *out = export_versioned(runtime::empty(Type::scalar(*scalar), shape, *device), "array");
        return 0;
    } catch (const std::exception& error) {
        set_error(context, "RuntimeError", error.what());
        return -1;
    }
}

int exchange_from_object(void* object, dlpack::VersionedTensor** out) {
    return guarded_status([&] {
        const Array& array = memory_of(static_cast<PyObject*>(object), "array").array;
        *out = export_versioned(array, "array");
    });
}

int exchange_to_object(dlpack::VersionedTensor* tensor, void** out) {
    return guarded_status([&] {
        const nb::object owner = capsule_of(tensor);
        const ForeignName name{"array", "the tensor"};
        const ForeignArray found = read_capsule(owner, owner, name);
        *out = make_array(as_elements(found, owner, Type::none(), name));
    });
}

int exchange_current_stream(dlpack::DeviceType kind, std::int32_t ordinal, void** out) {
    return guarded_status([&] {
        runtime::Device* const device = find_device({kind, ordinal});
        if (!device) throw UsageError("array", "expected a device that is there");
        *out = nullptr;
        if (device->gpu()) *out = reinterpret_cast<void*>(runtime::stream_for_others(runtime::current_stream(*device)));
    });
}

dlpack::ExchangeApi own_exchange = {{dlpack::kVersion, nullptr}, exchange_allocate,          exchange_from_object,
                                    exchange_to_object,          /*view_of_object=*/nullptr, exchange_current_stream};

// ---- functions of the module ----

// Whether the C functions of the class give the same as __dlpack__: that refuses a tensor of PyTorch that requires a
// gradient.
bool is_plain_tensor(nb::handle object) {
    if (!is_torch_tensor(object)) return false;
    static PyObject* const name = PyUnicode_InternFromString("requires_grad");
    const nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name));
    if (!found.is_valid()) throw nb::python_error();
    return found.ptr() == Py_False;
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        enum { kSource, kDtype, kHint, kCount };
        static const Signature<kCount> signature("from_dlpack()", {"source", "dtype", "hint"}, 1);
        const auto given = signature.parse(args, count, keywords);
        const ForeignName name{signature.api(), "source"};
        const nb::handle source = given[kSource];
        const Type dtype = is_given(given[kDtype]) ? dtype_argument(given[kDtype], signature.api()) : Type::none();
        if (is_plain_tensor(source)) {
            const ForeignArray found = *read_foreign(source, name);
            if (!found.device->gpu()) {  // else streams must be ordered, as the protocol does
                Array array = as_elements(found, source, dtype, name);
                watch_memory(array, source);
                return make_array(std::move(array));
            }
        }
        const bool is_object = !PyCapsule_CheckExact(source.ptr());
        if (is_object && !PyObject_HasAttrString(source.ptr(), "__dlpack__")) {
            throw UsageError(
                signature.api(),
                "source is " + describe(source) + ", expected a DLPack capsule or an object with __dlpack__",
                ErrorCategory::type);
        }
        const ForeignArray found = is_object ? read_by_dlpack(source, name) : read_capsule(source, source, name);
        return make_array(as_elements(found, source, dtype, name));
    });
}

PyObject* to_dlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return guarded([&] {
        static const Signature<1> signature("to_dlpack()", {"wp_array"}, 1);
        const auto given = signature.parse(args, count, keywords);
        const Array& array = array_argument(given[0], signature.api(), "wp_array").array;
        if (is_read_only(array))
            runtime::require_writable(array, signature.api());  // a capsule without a version has no flag for it
        return capsule_of(export_unversioned(array, signature.api())).release().ptr();
    });
}

PyMethodDef functions[] = {
    {"from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&from_dlpack)), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, source, dtype=None, hint=None)\n--\n\n"
     "An array over the memory of another library's array, without a copy.\n\n"
     "Args:\n"
     "    source: an object with __dlpack__, or a capsule, which can be used once.\n"
     "    dtype: of the elements; by default the type of the numbers that are there. Vectors and matrices take the "
     "last\n"
     "        dimensions; integers of one size stand for each other.\n"
     "    hint: accepted and ignored: the source itself is looked at.\n\n"
     "The array keeps the memory alive. One that its owner lends to be read only (JAX) is read-only here too.\n"
     "Gradients are not carried over: from_torch() and from_paddle() do that.\n\n"
     "Memory of a CUDA device: an object is asked to let the current stream of that device wait for its work, so that\n"
     "the array can be used at once. Nothing waits for a capsule: its consumer orders the streams.\n\n"
     "Raises: a TypeError if the source is no such object or has numbers that Weft does not have (complex, ...),\n"
     "UsageError (a RuntimeError) if shape, dtype or device do not fit."},
    {"to_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&to_dlpack)), METH_FASTCALL | METH_KEYWORDS,
     "to_dlpack($module, wp_array)\n--\n\n"
     "A DLPack capsule of the array's memory, without a copy, for functions of other libraries that take one; newer\n"
     "ones take the array itself. It can be used once, and keeps the memory alive. Vectors and matrices add their\n"
     "dimensions at the end. Gradients are not carried over.\n\n"
     "A capsule of an array on a CUDA device does not wait for work that was launched before: its producer orders the\n"
     "streams, or uses array.__dlpack__(), which does.\n\n"
     "Raises: a TypeError for arrays of structs, a ValueError for read-only memory."},
};

}  // namespace

void bind_dlpack(nb::module_& m) {
    add_functions(m, functions);
    nb::object exchange = nb::steal(PyCapsule_New(&own_exchange, dlpack::kExchangeCapsule, nullptr));
    if (!exchange.is_valid()) throw nb::python_error();
    nb::handle(reinterpret_cast<PyObject*>(array_type)).attr(dlpack::kExchangeAttribute) = exchange;
}

}  // namespace weft::bindings
