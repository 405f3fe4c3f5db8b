// Code on a device: machine code for its architecture if there is some, else PTX, which the driver compiles. The result
// of the driver's compiler is kept across processes if the program names a place (runtime/driver_image_cache.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/cuda/context.h"

namespace weft::runtime {

struct CudaCode {
    const char* ptx;                               // NUL-terminated
    std::span<const std::byte> machine_code = {};  // compiled from the PTX ahead of time; may be empty
    std::string processor = {};                    // architecture of the machine code, "sm_90"
};

struct CudaModule {
    cuda::CUmodule handle = nullptr;
    std::string origin;  // source of the code, and the reason if given machine code was not used; for people
};

// The PTX with a bound on the threads of each kernel's blocks. The driver's compiler then keeps to as many registers as
// such a block has.
std::string with_block_bound(std::string_view ptx, unsigned threads);

// Throws UsageError if the driver takes neither, with its compiler's message on the PTX.
CudaModule load_module(const CudaCode& code, CudaContext& device);

// GPUs run machine code of their own architecture, and of older ones with the same major number: sm_86 runs sm_80.
bool runs_on(const std::string& processor, int architecture);

}  // namespace weft::runtime
