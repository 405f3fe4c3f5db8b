// Whether the objects that a launch finds by ids are on its device.
#pragma once

#include <cstddef>

#include "program/kernel/kernel.h"

namespace weft::program {

// Throws UsageError if a number among the arguments is the id of a mesh, a BVH, a hash grid or a volume that kernels of
// this device cannot read. Ids in arrays are not looked at: they find an empty object.
void check_objects(const Kernel& kernel, const CompiledKernel& compiled, const runtime::Device& device,
                   const std::byte* block);

}  // namespace weft::program
