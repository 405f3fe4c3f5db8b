// The lane count of a kernel on a CPU, from its operations and the width of the machine's registers. The estimate is
// static; nothing is measured.
#pragma once

#include <string>

#include "ir/ir.h"
#include "transform/analysis/uniformity.h"

namespace weft::transform {

// Lanes are neighbours on the last axis of a launch: rows of so few threads leave most lanes idle.
inline constexpr int kShortRow = 4;

// The properties of a processor that decide about lanes.
struct VectorUnit {
    int bits = 128;               // of a register
    bool fast_gathers = false;    // they beat single loads
    bool mask_registers = false;  // masks have registers of their own
};

struct LaneChoice {
    int lanes = 1;         // a power of two
    std::string why = {};  // if 1 because lanes would cost more than they save: a sentence
};
// `asked`: the lane count that the caller wishes; 0 leaves it to the estimate. `short_rows`: launches have at most
// kShortRow threads on the last of several axes.
LaneChoice choose_lanes(const ir::Function& kernel, const Uniformity& uniformity, const VectorUnit& unit, int asked,
                        bool short_rows);

}  // namespace weft::transform
