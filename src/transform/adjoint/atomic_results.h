// Recorded results of atomics. They depend on the order of the threads, which the backward pass cannot repeat, so a
// launch on a tape keeps them. Outside of loops there is one element for each thread and atomic:
//
//   before:   %old = atomic.add %counter[0], 1     written:  %old = atomic.add %counter[0], 1
//                                                            store %returned[%tid], %old
//             store %out[%old], %x                           store %out[%old], %x
//                                                  read:     %old = load %returned[%tid]; store %out[%old], %x
//
// In loops all threads append to one log, in which each finds its own entries, one after the other:
//
//   heads    the number of entries, then the extents of the grid
//   next     by entry: the thread's next one. The first entries stand for the threads and hold nothing.
//   values   by entry: the result of the atomic; one array for each type
//
// For atomic minima and maxima the operand of each thread is recorded instead. The thread whose operand equals the
// final value, bit by bit, gets the gradient.
#pragma once

#include <memory>

#include "ir/ir.h"

namespace weft::transform {

// Atomics whose gradient goes to the thread that gave the minimum or maximum.
bool is_extreme(const ir::Operation& atomic);

bool has_atomic_results(const ir::Function& kernel);

// The kernel with parameters for the atomic results (ir::ImplicitParameter::Kind::returned and log), for the recorded
// launch or for the adjoint.
enum class AtomicResults { written, read };
std::unique_ptr<ir::Function> with_atomic_results(const ir::Function& kernel, AtomicResults how);

// The recorded operand of a minimum or maximum: an extra operand before the last one. Null if none was recorded.
const ir::Value* offer_of(const ir::Operation& atomic);

}  // namespace weft::transform
