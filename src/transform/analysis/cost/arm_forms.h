// The form of the arms of branches that differ between lanes.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/ir.h"

namespace weft::transform {

enum class ArmForm : std::uint8_t {
    computed,  // for all lanes, and blended: that costs less than a branch
    masked,    // under its mask, and branched around if no lane takes it
    twice,     // the same, and once more without a mask, for groups whose lanes all take it
};
using ArmForms = std::unordered_map<const ir::Region*, ArmForm>;

// Of both arms of each `if` in the kernel.
ArmForms find_arm_forms(const ir::Function& kernel);

}  // namespace weft::transform
