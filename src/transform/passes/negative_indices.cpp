#include "transform/passes/negative_indices.h"

#include "transform/analysis/negative_index_checks.h"

namespace weft::transform {

bool drop_negative_indices(ir::Function& function) {
    bool changed = false;
    find_redundant_choices(function, [&](ir::Operation& choice) {
        choice.operands[1] = choice.operands[2];
        changed = true;
    });
    return changed;
}

}  // namespace weft::transform
