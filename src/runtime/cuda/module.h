// Code on a device: machine code for its architecture where there is some, else PTX, which the driver compiles. What it
// has compiled is kept from one process to the next where the program says where (runtime/kept_images.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/cuda/device.h"

namespace weft::runtime {

struct CudaCode {
    const char* ptx;                               // ends in a NUL
    std::span<const std::byte> machine_code = {};  // made of it ahead of time; none where it is empty
    std::string processor = {};                    // that this is for, "sm_90"
};

struct CudaModule {
    cuda::CUmodule handle = nullptr;
    std::string origin;  // what it was made of, and why not of machine code that there was; for people
};

// Throws UsageError where the driver takes neither, with what its compiler says of the PTX.
CudaModule load_module(const CudaCode& code, CudaDevice& device);

// GPUs run the machine code of their own architecture, and of older ones with the same first digit: sm_86 that of
// sm_80.
bool runs_on(const std::string& processor, int architecture);

}  // namespace weft::runtime
