// Arrays that a kernel only combines into: sums, counts, extremes.
//
// An atomic whose old value nobody looks at says nothing about order. Where a kernel touches an array by such atomics
// only, and all of one kind that commutes, then no thread of the launch can tell when a contribution arrives.
// Contributions of many threads may be put together first, in a register or in a private copy, and arrive as one atomic
// at the end of a chunk of threads.
//
// This holds only while no other array of the launch overlaps the combined one (codegen::Options::noalias).
#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// By parameter: the kind of its atomics (atomic_add stands for additions and subtractions), or nothing where the
// parameter is not an array that is only combined into. Calls must be inlined.
std::vector<std::optional<ir::Op>> combined_parameters(const ir::Function& kernel);

// The number of the array parameter that `array` is, or is a part of by view, components or member; -1 where that is
// not known.
int array_parameter(const ir::Function& kernel, const ir::Value* array);

// Whether a value is the same in all threads of a launch, and computed from parameters and constants alone.
bool is_launch_invariant(const ir::Function& kernel, const ir::Value* value);

}  // namespace weft::transform
