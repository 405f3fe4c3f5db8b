// The lane count of a kernel if the caller chooses none, from its operations and the width of the machine's registers.
// The estimate is static; nothing is measured.
#pragma once

#include <string>

#include "codegen/target.h"
#include "ir/ir.h"

namespace weft::codegen {

struct LaneChoice {
    int lanes;             // a power of two
    std::string why = {};  // if 1 because lanes would cost more than they save: a sentence
};
// The largest power of two for which the arrays that passes gave each thread fit on a worker's stack.
int most_lanes_on_stack(const ir::Function& kernel);
// `short_rows`: Options::short_rows.
LaneChoice preferred_lanes(const transform::KernelPlan& plan, const Machine& machine, bool short_rows);

}  // namespace weft::codegen
