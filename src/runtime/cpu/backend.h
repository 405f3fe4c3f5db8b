// The host's CPU as a back end (runtime/backend.h).
#pragma once

#include "runtime/backend.h"

namespace weft::runtime {

extern const Backend kCpuBackend;

}  // namespace weft::runtime
