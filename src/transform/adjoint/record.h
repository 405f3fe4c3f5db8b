// What atomics gave depends on the order of the threads, which the way back cannot repeat: the launch that a tape
// records keeps it, one element for each thread and atomic.
//
// before:   %old = atomic.add %counter[0], 1          written:  %old = atomic.add %counter[0], 1; store %record[%tid],
// %old
//           store %out[%old], %x                                store %out[%old], %x
//                                                     read:     %old = load %record[%tid]; store %out[%old], %x
//
// Of extremes it keeps what each thread offered, bit by bit: who gave the extreme is who gave just what the array ends
// up with. Atomics in loops are left alone.
#pragma once

#include <memory>

#include "ir/ir.h"

namespace weft::transform {

bool has_records(const ir::Function& kernel);

// The kernel with parameters for its records (ir::Extra::Kind::record), for the recorded launch or for the adjoint. In
// the latter, an atomic whose offer was kept has the number of that parameter as its attribute.
enum class Records { written, read };
std::unique_ptr<ir::Function> with_records(const ir::Function& kernel, Records how);

}  // namespace weft::transform
