// GPUs of NVIDIA as a back end (runtime/backend.h).
#pragma once

#include "runtime/backend.h"

namespace weft::runtime {

extern const Backend kCudaBackend;

}  // namespace weft::runtime
