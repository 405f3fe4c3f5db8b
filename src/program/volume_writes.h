// Kernels that store into volumes. Before each launch tapes are told, which keep volumes as earlier launches saw them
// (runtime/spatial/handles.h). Other launches need not ask whether they do such a thing.
#pragma once

#include <memory>

#include "program/transformed.h"
#include "runtime/executable.h"

namespace weft::program {

bool writes_volumes(const KernelFacts& facts);

// The kernel of an executable, which lives as long, with that in front of its launches.
std::shared_ptr<const runtime::LoadedKernel> volume_writing_kernel(
    std::shared_ptr<const runtime::Executable> executable, const runtime::LoadedKernel& kernel,
    const KernelFacts& facts);

}  // namespace weft::program
