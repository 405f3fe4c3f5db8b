#include "bindings/kernels/launch_streams.h"

#include <algorithm>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/array_structure.h"
#include "bindings/foreign/current_streams.h"
#include "bindings/structs/structs.h"
#include "runtime/foreign_memory.h"
#include "runtime/recording.h"

namespace weft::bindings {

bool may_be_foreign(PyObject* value) {
    return value != Py_None && !PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value) &&
           !array_pointer(value) && !is_array_structure(value) && !struct_pointer(value);
}

LaunchStreams::LaunchStreams(runtime::Device& device, std::span<PyObject* const> values, bool is_chosen)
    : device_(device) {
    for (PyObject* const value : values) {
        if (!may_be_foreign(value)) continue;
        const std::optional<std::uint64_t> stream = current_stream_of(value, device);
        if (stream && std::ranges::find(current_, *stream) == current_.end()) current_.push_back(*stream);
    }
    if (is_chosen || runtime::current_recording(device)) return;
    for (const std::uint64_t stream : current_) {
        if (!runtime::is_captured_stream(device, stream)) continue;
        captured_.emplace(runtime::stream_of_handle(device, stream));
        return;
    }
}

void LaunchStreams::begin() {
    for (const std::uint64_t stream : current_) runtime::wait_for_foreign_stream(device_, stream, "launch()");
}

void LaunchStreams::end() {
    for (const std::vector<std::uint64_t>* const streams : {&current_, &named_})
        for (const std::uint64_t stream : *streams) runtime::continue_foreign_stream(device_, stream);
}

}  // namespace weft::bindings
