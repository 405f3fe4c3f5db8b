// Kernels that store into volumes. Before each of their launches, tapes are told to keep the volumes as earlier
// launches saw them (runtime/handles.h). Other launches pay nothing for this.
#pragma once

#include <memory>

#include "program/kernel/transformed.h"
#include "runtime/executable.h"

namespace weft::program {

bool writes_volumes(const KernelFacts& facts);

// The kernel of an executable with that step before its launches. It keeps the executable alive.
std::shared_ptr<const runtime::LoadedKernel> volume_writing_kernel(
    std::shared_ptr<const runtime::Executable> executable, const runtime::LoadedKernel& kernel,
    const KernelFacts& facts);

}  // namespace weft::program
