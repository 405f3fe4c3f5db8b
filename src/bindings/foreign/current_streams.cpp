#include "bindings/foreign/current_streams.h"

#include <array>
#include <string_view>

#include "bindings/foreign/foreign.h"
#include "bindings/python/python_function.h"

namespace weft::bindings {
namespace {

// Libraries whose module has a function for it: python/warp/_interop/current_streams.py.
constexpr std::array<std::string_view, 3> kAsked = {"cupy", "torch", "paddle"};

// The library of a class by the first part of its module's name, an index of kAsked; -1 for all others.
int library_of(PyTypeObject* type) {
    static PyObject* const name = PyUnicode_InternFromString("__module__");
    const nb::object module = nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
    if (!module.is_valid()) PyErr_Clear();
    if (!module.is_valid() || !PyUnicode_Check(module.ptr())) return -1;
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(module.ptr(), &size);
    if (!text) throw nb::python_error();
    const std::string_view full(text, static_cast<std::size_t>(size)), first = full.substr(0, full.find('.'));
    for (std::size_t i = 0; i < kAsked.size(); ++i)
        if (first == kAsked[i]) return static_cast<int>(i);
    return -1;
}

}  // namespace

std::optional<std::uint64_t> current_stream_of(nb::handle object, const runtime::Device& device) {
    PyTypeObject* const type = Py_TYPE(object.ptr());
    if (const dlpack::ExchangeApi* const api = exchange_api(type); api && api->current_stream && api->view_of_object) {
        // Paddle's build for the CPU ends the process if it is asked for a stream.
        dlpack::Tensor seen;
        if (api->view_of_object(object.ptr(), &seen) != 0) {
            PyErr_Clear();
            return std::nullopt;  // a read of the memory raises the error
        }
        const bool is_there = seen.device.type == dlpack::DeviceType::cuda && seen.device.ordinal == device.ordinal;
        if (!is_there) return std::nullopt;
        void* stream = nullptr;
        if (api->current_stream(dlpack::DeviceType::cuda, device.ordinal, &stream) != 0) {
            // A build for GPUs has no stream if there is none but the emulated one.
            if (!device.gpu()->is_emulated) throw nb::python_error();
            PyErr_Clear();
            return std::nullopt;
        }
        return reinterpret_cast<std::uint64_t>(stream);
    }
    const int library = library_of(type);
    if (library < 0) return std::nullopt;
    static PyObject* module = nullptr;
    const std::string_view name = kAsked[static_cast<std::size_t>(library)];
    const nb::object found = function_of("warp._interop.current_streams", module, "current_stream")(
        nb::str(name.data(), name.size()), object, device.ordinal);
    if (found.is_none()) return std::nullopt;
    return nb::cast<std::uint64_t>(found);
}

}  // namespace weft::bindings
