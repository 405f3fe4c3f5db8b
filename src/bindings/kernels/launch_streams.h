// The order of a launch and of other libraries' work on its arguments, on CUDA devices.
//
// A launch comes after the work that is in the library's current stream, and later work in that stream after the
// launch. Nothing is put into streams that are one or that the driver orders: the legacy default stream and ours. While
// the library captures its stream, the launch is in that stream, and so in the graph.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace weft::bindings {

namespace nb = nanobind;

// Whether an argument may belong to another library.
bool may_be_foreign(PyObject* value);

class LaunchStreams {
public:
    // Precondition: a CUDA device. `is_chosen`: the program has named the stream of the launch, which stays.
    LaunchStreams(runtime::Device& device, std::span<PyObject* const> values, bool is_chosen);

    // A stream that an argument names while it is packed, for whose work the launch waits already.
    void add_named(std::optional<std::uint64_t> stream) {
        if (stream) named_.push_back(*stream);
    }
    // Makes the launch wait. To be called before it, after the arguments are packed.
    void begin();
    // Makes the libraries wait for the launch.
    void end();

private:
    runtime::Device& device_;
    std::optional<runtime::UseStream> captured_;  // in place of our current stream
    std::vector<std::uint64_t> current_, named_;  // without duplicates; nearly always empty
};

}  // namespace weft::bindings
