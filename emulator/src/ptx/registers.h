#pragma once
// How many registers a thread of a kernel needs, estimated: a driver knows it from its compiler, which the emulated
// device does not have.
#include "ptx/module.h"

namespace weft::emulator::ptx {

// The most registers of 32 bits that hold values at one point of the function, by liveness. Predicates have registers
// of their own. Values that are cheap to make again take none: parameters of an entry, constants, special registers.
int live_registers(const Function& function);

// For an entry and all functions that it calls, with what every thread needs besides. At most `.maxnreg`, and as many
// as blocks of `.maxntid` or `.reqntid` leave to a thread: the compiler would spill the rest. At most 255.
int registers_of_entry(const Module& module, const Function& entry);

}  // namespace weft::emulator::ptx
