#pragma once
// System functions of a device that kernels can call: vprintf, __assertfail, malloc, free, cudaGraphSetConditional.
#include "engine/warp.h"

namespace weft::emulator {

uint64_t call_system(Warp& warp, int lane, SystemCall call, const uint64_t* arguments);

// Values of conditions of graphs, which cudaGraphSetConditional() sets in a kernel.
void set_condition(uint64_t handle, uint32_t value);
uint32_t condition_value(uint64_t handle);

// Returns the text that kernels have printed since the last call.
std::string take_printed();

}  // namespace weft::emulator
