// Reading DLPack: tensors, capsules of both versions, objects with __dlpack__, and the C exchange API of classes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "bindings/foreign/foreign.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"

namespace weft::bindings {
namespace {

std::string device_text(dlpack::Device device) {
    using enum dlpack::DeviceType;
    const char* name = "a device of an unknown kind";
    switch (device.type) {
        case cpu:
            name = "the CPU";
            break;
        case cuda:
            name = "cuda";
            break;
        case cuda_host:
            name = "pinned memory";
            break;
        case opencl:
            name = "OpenCL";
            break;
        case vulkan:
            name = "Vulkan";
            break;
        case metal:
            name = "Metal";
            break;
        case vpi:
            name = "VPI";
            break;
        case rocm:
            name = "ROCm";
            break;
        case rocm_host:
            name = "pinned memory of ROCm";
            break;
        case cuda_managed:
            name = "managed memory";
            break;
        case one_api:
            name = "oneAPI";
            break;
        case web_gpu:
            name = "WebGPU";
            break;
        case hexagon:
            name = "Hexagon";
            break;
        case maia:
            name = "MAIA";
            break;
        case trainium:
            name = "Trainium";
            break;
    }
    return std::string(name) + ":" + std::to_string(device.ordinal);
}

runtime::Device& cuda_device_of(std::int32_t ordinal, nb::handle object, const ForeignName& name) {
    const std::vector<runtime::Device*> there = runtime::cuda_devices();
    for (runtime::Device* const device : there)
        if (device->ordinal == ordinal) return *device;
    refuse(name, object,
           "its memory is on 'cuda:" + std::to_string(ordinal) + "', and there is none here (" +
               (there.empty() ? runtime::cuda_problem() : "the last one is '" + there.back()->alias + "'") +
               "). help: copy it to the CPU first",
           ErrorCategory::runtime);
}

// The device of the memory. The host reads and writes pinned and managed memory too.
runtime::Device& device_of(dlpack::Device device, nb::handle object, const ForeignName& name) {
    using enum dlpack::DeviceType;
    if (device.type == cpu || device.type == cuda_host || device.type == cuda_managed) return runtime::host_device();
    if (device.type == cuda) return cuda_device_of(device.ordinal, object, name);
    refuse(name, object,
           "its memory is on " + device_text(device) +
               ", expected the CPU or a CUDA device. help: copy it to the CPU first",
           ErrorCategory::runtime);
}

std::string type_text(dlpack::DataType type) {
    using enum dlpack::TypeCode;
    std::string text;
    switch (type.code) {
        case signed_int:
            text = "int";
            break;
        case unsigned_int:
            text = "uint";
            break;
        case floating:
            text = "float";
            break;
        case opaque:
            text = "opaque numbers of bits ";
            break;
        case bfloat:
            text = "bfloat";
            break;
        case complex:
            text = "complex";
            break;
        case boolean:
            text = "bool";
            break;
        case float8_e4m3fn:
            return "float8_e4m3fn";
        case float8_e5m2:
            return "float8_e5m2";
        default:
            text = "a type of code " + std::to_string(static_cast<int>(type.code)) + " and bits ";
            break;
    }
    text += std::to_string(type.bits);
    return type.lanes == 1 ? text : text + " in lanes of " + std::to_string(type.lanes);
}

// A Python object that owns the contents of a capsule and frees them.
template <typename Managed>
nb::object owner_of(Managed* managed) {
    constexpr const char* kName = "weft_dlpack";
    const auto release = [](PyObject* capsule) {
        auto* held = static_cast<Managed*>(PyCapsule_GetPointer(capsule, "weft_dlpack"));
        if (held->deleter) held->deleter(held);
    };
    nb::object owner = nb::steal(PyCapsule_New(managed, kName, release));
    if (!owner.is_valid()) throw nb::python_error();
    return owner;
}

}  // namespace

dlpack::DataType dlpack_type(Scalar scalar) {
    const auto bits = static_cast<std::uint8_t>(info(scalar).bits);
    using enum dlpack::TypeCode;
    switch (scalar) {
        case Scalar::boolean:
            return {boolean, bits, 1};
        case Scalar::bf16:
            return {bfloat, bits, 1};
        case Scalar::f8e4m3fn:
            return {float8_e4m3fn, bits, 1};
        case Scalar::f8e5m2:
            return {float8_e5m2, bits, 1};
        default:
            break;
    }
    if (info(scalar).is_float()) return {floating, bits, 1};
    return {info(scalar).kind == ScalarKind::signed_int ? signed_int : unsigned_int, bits, 1};
}

std::optional<Scalar> scalar_of(dlpack::DataType type) {
    // By code and bits: each launch looks up each tensor.
    constexpr std::size_t kCodes = 16, kWidths = 65;
    static const auto known = [] {
        std::array<std::array<std::optional<Scalar>, kWidths>, kCodes> table;
        for (const ScalarInfo& row : all_scalars()) {
            const dlpack::DataType type = dlpack_type(row.id);
            table.at(static_cast<std::size_t>(type.code)).at(type.bits) = row.id;
        }
        return table;
    }();
    const auto code = static_cast<std::size_t>(type.code);
    if (type.lanes != 1 || code >= kCodes || type.bits >= kWidths) return std::nullopt;
    return known[code][type.bits];
}

ForeignArray read_tensor(const dlpack::Tensor& tensor, nb::handle object, const ForeignName& name) {
    ForeignArray result;
    result.device = &device_of(tensor.device, object, name);
    const std::optional<Scalar> scalar = scalar_of(tensor.dtype);
    if (!scalar) {
        refuse(name, object,
               "its numbers are " + type_text(tensor.dtype) +
                   ", expected bool, integers of 8 to 64 bits, or floats of 8 to 64 bits");
    }
    if (tensor.ndim > kMaxForeignDims)
        refuse(name, object, "it has " + std::to_string(tensor.ndim) + " dimensions, expected at most 6");
    result.scalar = *scalar;
    result.ndim = tensor.ndim;
    std::copy(tensor.shape, tensor.shape + tensor.ndim, result.shape);
    const std::int64_t bytes = info(*scalar).bytes();
    std::int64_t step = bytes;
    for (int i = tensor.ndim - 1; i >= 0; --i) {
        result.strides[i] = tensor.strides ? tensor.strides[i] * bytes : step;
        step *= tensor.shape[i];
    }
    result.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    if (!tensor.data && step != 0) {
        refuse(name, object, "it has no memory: it is a description for tracing or shapes (a fake or meta tensor)",
               ErrorCategory::runtime);
    }
    if (reinterpret_cast<std::uintptr_t>(result.data) % static_cast<std::uintptr_t>(bytes) != 0)
        refuse(name, object, "its memory is not aligned to its numbers. help: a copy of it is");
    return result;
}

ForeignArray read_capsule(nb::handle capsule, nb::handle object, const ForeignName& name) {
    const auto taken = [&](auto* managed, const char* used, bool is_read_only) {
        ForeignArray result = read_tensor(managed->tensor, object, name);
        result.is_read_only = is_read_only;
        if (PyCapsule_SetName(capsule.ptr(), used) < 0) throw nb::python_error();
        result.owner = owner_of(managed);
        return result;
    };
    if (PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedCapsule)) {
        auto* managed =
            static_cast<dlpack::VersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kVersionedCapsule));
        if (managed->version.major > dlpack::kVersion.major) {
            refuse(name, object,
                   "it speaks DLPack " + std::to_string(managed->version.major) + "." +
                       std::to_string(managed->version.minor) + ", expected 1.x",
                   ErrorCategory::runtime);
        }
        return taken(managed, dlpack::kUsedVersionedCapsule, (managed->flags & dlpack::kReadOnly) != 0);
    }
    if (PyCapsule_IsValid(capsule.ptr(), dlpack::kCapsule)) {
        auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kCapsule));
        return taken(managed, dlpack::kUsedCapsule, false);
    }
    const char* found = PyCapsule_CheckExact(capsule.ptr()) ? PyCapsule_GetName(capsule.ptr()) : nullptr;
    const bool is_used = found && (std::strcmp(found, dlpack::kUsedCapsule) == 0 ||
                                   std::strcmp(found, dlpack::kUsedVersionedCapsule) == 0);
    refuse(name, object,
           is_used ? "this capsule was taken by another array before; each can be taken once. help: make a new one"
                   : "expected a DLPack capsule or an object with __dlpack__",
           ErrorCategory::type);
}

namespace {

// The device that the object names before it gives its memory; empty if it names none. An object that cannot name it (a
// deleted array) is asked for its memory anyway, and gives the reason then.
std::optional<dlpack::Device> named_device(nb::handle object, const ForeignName& name) {
    static PyObject* const method = PyUnicode_InternFromString("__dlpack_device__");
    PyObject* arguments[] = {object.ptr()};
    const nb::object answer = nb::steal(PyObject_VectorcallMethod(method, arguments, 1, nullptr));
    if (!answer.is_valid()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
        PyErr_Clear();
        return std::nullopt;
    }
    std::pair<int, std::optional<int>> found;
    if (!nb::try_cast(answer, found)) {
        refuse(name, object,
               "its __dlpack_device__() is " + nb::cast<std::string>(nb::repr(answer)) +
                   ", expected the kind and the number of a device");
    }
    return dlpack::Device{static_cast<dlpack::DeviceType>(found.first),
                          found.second.value_or(0)};  // Paddle's CPU: None
}

PyObject* keyword_names(std::initializer_list<const char*> names) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
    Py_ssize_t count = 0;
    for (const char* name : names) PyTuple_SET_ITEM(tuple, count++, PyUnicode_InternFromString(name));
    return tuple;
}

// The result of __dlpack__(), or null if it raises. Without `stream` the argument is left out.
nb::object capsule_from(nb::handle object, nb::handle stream, bool knows_versions) {
    static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
    static PyObject* const version = Py_BuildValue("(ii)", static_cast<int>(dlpack::kVersion.major), 0);
    static PyObject* const both = keyword_names({"stream", "max_version"});
    static PyObject* const only_version = keyword_names({"max_version"});
    static PyObject* const only_stream = keyword_names({"stream"});
    if (!stream) {
        PyObject* arguments[] = {object.ptr(), version};
        return nb::steal(PyObject_VectorcallMethod(method, arguments, 1, knows_versions ? only_version : nullptr));
    }
    PyObject* arguments[] = {object.ptr(), stream.ptr(), version};
    return nb::steal(PyObject_VectorcallMethod(method, arguments, 1, knows_versions ? both : only_stream));
}

}  // namespace

ForeignArray read_by_dlpack(nb::handle object, const ForeignName& name) {
    // Without a CUDA device no order of work is needed. JAX takes 1.5 us for the question.
    std::optional<dlpack::Device> device;
    if (!runtime::cuda_devices().empty()) device = named_device(object, name);
    // The producer makes our stream wait for its work on memory of a GPU. The host waits itself before it uses memory
    // that both reach.
    using enum dlpack::DeviceType;
    runtime::Device* gpu = nullptr;
    if (device && (device->type == cuda || device->type == cuda_managed))
        gpu = &cuda_device_of(device->ordinal, object, name);
    nb::object stream;
    if (gpu) stream = nb::int_(runtime::stream_that_waits(*gpu));
    nb::object capsule = capsule_from(object, stream, true);
    if (!capsule.is_valid() && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = capsule_from(object, stream, false);  // a producer older than versions
    }
    if (!capsule.is_valid()) refuse(name, object, taken_error());
    if (gpu) runtime::notice_foreign_capture(*gpu);
    ForeignArray result = read_capsule(capsule, object, name);
    if (result.device->gpu() && result.device != gpu) {
        refuse(name, object,
               "its memory is on '" + result.device->alias + "', and its __dlpack_device__() " +
                   (device ? "names another device" : "is missing") +
                   ": streams are put in order for the device that it names",
               ErrorCategory::runtime);
    }
    if (gpu && result.device != gpu) {
        const nb::gil_scoped_release released;
        runtime::current_stream(*gpu).synchronize();
    }
    // JAX's arrays never change, but its capsules do not say so.
    if (std::string_view(Py_TYPE(object.ptr())->tp_name).starts_with("jaxlib.")) result.is_read_only = true;
    return result;
}

namespace {

struct KnownClass {
    PyTypeObject* type;  // owned, so that no other class gets its address
    const dlpack::ExchangeApi* api;
    PyCFunction is_negated;  // PyTorch's is_neg(); null if the class has none
    bool is_torch;
};

const KnownClass& known_class(PyTypeObject* type) {
    static std::array<KnownClass, 64> known{};  // guarded by the GIL
    static std::size_t count = 0;
    for (std::size_t i = 0; i < count; ++i)
        if (known[i].type == type) return known[i];
    KnownClass found{type, nullptr, nullptr, false};
    const auto attribute = [&](const char* name) {
        nb::object value = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name));
        if (!value.is_valid()) PyErr_Clear();
        return value;
    };
    const nb::object capsule = attribute(dlpack::kExchangeAttribute);
    if (capsule.is_valid() && PyCapsule_IsValid(capsule.ptr(), dlpack::kExchangeCapsule)) {
        void* first = PyCapsule_GetPointer(capsule.ptr(), dlpack::kExchangeCapsule);
        for (auto* header = static_cast<dlpack::ExchangeApi::Header*>(first); header; header = header->previous) {
            if (header->version.major != dlpack::kVersion.major) continue;
            found.api = reinterpret_cast<const dlpack::ExchangeApi*>(header);
            break;
        }
    }
    const auto method = [&](const char* name) -> PyCFunction {
        const nb::object value = attribute(name);
        if (!value.is_valid() || !Py_IS_TYPE(value.ptr(), &PyMethodDescr_Type)) return nullptr;
        const PyMethodDef* definition = reinterpret_cast<PyMethodDescrObject*>(value.ptr())->d_method;
        return definition->ml_flags == METH_NOARGS ? definition->ml_meth : nullptr;
    };
    if (found.api) {
        found.is_negated = method("is_neg");
        found.is_torch = method("untyped_storage") != nullptr;
    }
    constexpr std::size_t kMostWithout = 32;  // classes without it must leave room for those that have it
    if (count < (found.api ? known.size() : kMostWithout)) {
        Py_INCREF(type);
        return known[count++] = found;
    }
    static KnownClass last;
    return last = found;
}

}  // namespace

const dlpack::ExchangeApi* exchange_api(PyTypeObject* type) { return known_class(type).api; }

bool is_negated(nb::handle tensor) {
    const KnownClass& known = known_class(Py_TYPE(tensor.ptr()));
    const PyCFunction question = known.is_negated;
    if (!question) return false;
    if (known.is_torch)
        if (const std::optional<bool> answer = known_negation(tensor)) return *answer;
    const nb::object answer = nb::steal(question(tensor.ptr(), nullptr));
    if (!answer.is_valid()) throw nb::python_error();
    return answer.ptr() == Py_True;
}

bool is_torch_tensor(nb::handle object) { return known_class(Py_TYPE(object.ptr())).is_torch; }

}  // namespace weft::bindings
