// Tensors of PyTorch and Paddle as arrays, and arrays as their tensors, with shared gradients.
#pragma once

#include <nanobind/nanobind.h>

#include "runtime/array.h"

namespace weft::bindings {

// The scalar type of the numbers in a tensor: the frameworks compute nothing with unsigned integers of more than 8
// bits, and see them as signed ones.
Scalar scalar_of_tensor(Scalar scalar);
// A tensor of PyTorch over the memory of an array. Throws UsageError for arrays of structs and read-only memory.
nanobind::object torch_tensor_of(const runtime::Array& array);
void bind_tensors(nanobind::module_& m);

}  // namespace weft::bindings
