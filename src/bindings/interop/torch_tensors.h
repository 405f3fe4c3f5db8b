// Tensors of PyTorch on GPUs, for operators: the device, PyTorch's stream there, and new tensors in PyTorch's memory.
//
// Its allocator frees memory in the order of the stream for which it was taken, and knows PyTorch's own graphs. Results
// of operators are therefore in its memory. Memory of ours would be freed in the order of our current stream.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>

#include "bindings/foreign/foreign.h"
#include "runtime/array.h"

namespace weft::bindings {

// The device of the tensor's memory.
runtime::Device& device_of_tensor(nb::handle tensor, const ForeignName& name);
// PyTorch's current stream on the device of the tensor; null on the CPU.
std::shared_ptr<runtime::Stream> torch_stream(nb::handle tensor, const runtime::Device& device);

struct NewTensor {
    runtime::Array array;  // keeps the tensor alive
    nb::object tensor;
};
// A tensor like a contiguous array of these elements, on a GPU; the numbers are uninitialised. `like`: any tensor.
NewTensor new_tensor(nb::handle like, Type element, std::span<const std::int64_t> shape, runtime::Device& device,
                     const ForeignName& name);

}  // namespace weft::bindings
