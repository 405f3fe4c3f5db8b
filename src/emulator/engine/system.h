#pragma once
// The functions that a device's system has for kernels: vprintf, __assertfail, malloc, free.
#include "emulator/engine/warp.h"

namespace weft::emulator {

uint64_t call_system(Warp& warp, int lane, SystemCall call, const uint64_t* arguments);

// What kernels printed since the last call.
std::string take_printed();

}  // namespace weft::emulator
