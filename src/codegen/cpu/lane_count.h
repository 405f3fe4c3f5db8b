// How many threads of a kernel run at once where the caller does not say: from what its arithmetic and its memory look
// like, and the width of the machine's registers. Plain arithmetic on the IR; nothing is measured.
#pragma once

#include <string>

#include "codegen/target.h"
#include "ir/ir.h"

namespace weft::codegen {

struct LaneChoice {
    int lanes;             // a power of two
    std::string why = {};  // one sentence where it is 1 because lanes would cost more than they save
};
// A power of two: so many that the memory which the compiler has given each thread leaves room on a worker's stack.
int most_lanes_on_stack(const ir::Function& kernel);
// `short_rows`: Options::short_rows.
LaneChoice preferred_lanes(const transform::KernelPlan& plan, const Machine& machine, bool short_rows);

}  // namespace weft::codegen
