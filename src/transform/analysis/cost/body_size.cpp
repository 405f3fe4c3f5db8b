#include "transform/analysis/cost/body_size.h"

#include "ir/walk.h"
#include "types/leaves.h"

namespace weft::transform {

BodySize body_size(const ir::Region& region) {
    BodySize size;
    ir::for_each_operation(region, [&](const ir::Operation& operation) {
        size.leaves += operation.results.empty() ? 1 : leaf_count(operation.results[0]->type);
        size.has_loops |= operation.op == ir::Op::for_ || operation.op == ir::Op::while_;
    });
    return size;
}

}  // namespace weft::transform
