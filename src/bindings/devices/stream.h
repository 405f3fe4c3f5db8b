// Streams of devices, and calls of Python functions in captured graphs.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace weft::bindings {

namespace nb = nanobind;

// wp.Stream
struct PyStream {
    std::shared_ptr<runtime::Stream> stream;
    runtime::Device& device() const { return stream->device(); }
    runtime::Stream* operator->() const { return stream.get(); }
};

// The given stream, or the current one of a device. Throws UsageError in the name of `api` if the object is no stream,
// or one of another device than the named one.
PyStream stream_argument(nb::handle stream, nb::handle device, const char* api);

// For calls with a device and a `stream` that is not None.
std::shared_ptr<runtime::Stream> launch_stream(PyObject* stream, const runtime::Device& device, const char* api);

// While this thread's work for the device is recorded: `work` is done, with the GIL, when the graph runs, and `held`
// lives as long as the graph. False if nothing is recorded.
bool record_call(const runtime::Device& device, const char* name, std::vector<nb::object> held,
                 std::function<void()> work);

void bind_streams(nb::module_& m);

}  // namespace weft::bindings
