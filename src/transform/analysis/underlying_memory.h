// The memory of an access, as far as it is known when the kernel is compiled: that of an array parameter, of its
// gradient, or of a parameter that is read from the argument block.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

struct Memory {
    int parameter = -1;  // -1: not known
    bool gradient = false;

    bool is_known() const { return parameter >= 0; }
    auto operator<=>(const Memory&) const = default;
};

// The memory of an array value that is a parameter, or a part of one by view, components or member.
Memory memory_of(const ir::Function& kernel, const ir::Value* array);

// The operation `object` (types/objects.h) if the array is the object's descriptor, or a field of it; else null.
// Kernels do not write to these. A launch that writes to the arrays of a mesh has no gradient.
const ir::Operation* object_behind(const ir::Value* array);

// The same, also through the address of a descriptor in another one (the groups of a hash grid).
const ir::Operation* object_reached(const ir::Value* array);

// Whether some parameter is a struct with arrays: a launch that compares the memory of its arguments does not see
// these.
bool hides_arrays(const ir::Function& kernel);

// The indices of a load, store or atomic, counted from the array that memory_of() found: those of views come first.
std::vector<const ir::Value*> indices_from_start(const ir::Operation& access);

// The number that an integer constant is; empty for any other value.
std::optional<std::int64_t> constant_integer(const ir::Value* value);

// Whether a value is the same in all threads of a launch, and computed from parameters and constants alone.
bool is_launch_invariant(const ir::Function& function, const ir::Value* value);

}  // namespace weft::transform
