// Reports that kernels on a CUDA device write when a check fails and when they print. binary/cuda_abi.h has these
// structs for the host, and documents their fields.
#pragma once

namespace weft::devlib {

using Int32 = __INT32_TYPE__;
using Int64 = __INT64_TYPE__;

inline constexpr int kMostRaisedArguments = 29;
inline constexpr Int64 kCudaPrintWords = 128 * 1024;

struct CudaFault {
    Int32 claimed;
    Int32 kind;
    Int64 thread, index, size;
    Int32 axis, site;
    Int64 format;
    Int64 arguments[kMostRaisedArguments];
};

struct CudaReports {
    CudaFault fault, not_finite;
    Int64 printed;
};

}  // namespace weft::devlib
