#pragma once
// The functions that a device's system has for kernels: vprintf, __assertfail, malloc, free,
// cudaGraphSetConditional.
#include "emulator/engine/warp.h"

namespace weft::emulator {

uint64_t call_system(Warp& warp, int lane, SystemCall call, const uint64_t* arguments);

// Conditions of graphs: cudaGraphSetConditional() in a kernel sets one.
void set_condition(uint64_t handle, uint32_t value);
uint32_t condition_value(uint64_t handle);

// What kernels printed since the last call.
std::string take_printed();

}  // namespace weft::emulator
