// What atomics returned depends on the order of the threads, which the backward pass cannot repeat: the launch that a
// tape records keeps it. Outside of loops there is one element for each thread and atomic:
//
// before:   %old = atomic.add %counter[0], 1     written:  %old = atomic.add %counter[0], 1; store %returned[%tid],
// %old
//           store %out[%old], %x                           store %out[%old], %x
//                                                read:     %old = load %returned[%tid]; store %out[%old], %x
//
// In loops all threads append to one log, in which each finds its own entries, one after the other:
//
//   heads    how many entries there are; then the extents of the grid
//   next     by entry: the thread's next one. The first entries stand for the threads and hold nothing.
//   values   by entry: what the atomic gave; one array for each type
//
// Of extremes they keep what each thread offered, bit by bit: who gave the extreme is who gave just what the array ends
// up with.
#pragma once

#include <memory>

#include "ir/ir.h"

namespace weft::transform {

// Atomics whose gradient goes to the thread that gave the least or greatest number.
bool is_extreme(const ir::Operation& atomic);

bool has_atomic_results(const ir::Function& kernel);

// The kernel with parameters for the atomic results (ir::ImplicitParameter::Kind::returned and log), for the recorded
// launch or for the adjoint.
enum class AtomicResults { written, read };
std::unique_ptr<ir::Function> with_atomic_results(const ir::Function& kernel, AtomicResults how);

// What an extreme offered in the launch, where that was recorded: an operand more before its last one. Null otherwise.
const ir::Value* offer_of(const ir::Operation& atomic);

}  // namespace weft::transform
