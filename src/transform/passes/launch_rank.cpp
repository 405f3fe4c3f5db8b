#include "transform/passes/launch_rank.h"

#include <algorithm>

#include "ir/walk.h"

namespace weft::transform {

int fitted_rank(int names, int launch_rank) { return names == 0 || launch_rank == 0 ? names : launch_rank; }

void fit_to_launch(ir::Module& module, int launch_rank) {
    const auto kernel = std::find_if(module.functions.begin(), module.functions.end(),
                                     [](const auto& function) { return function->is_kernel; });
    if (kernel == module.functions.end()) return;
    const int names = (*kernel)->tid_rank;
    const int dimensions = fitted_rank(names, launch_rank);
    if (dimensions == names) return;
    for (const auto& function : module.functions) {
        if (function->tid_rank == 0) continue;
        function->tid_rank = dimensions;
        ir::for_each_operation(function->body, [&](ir::Operation& operation) {
            if (operation.op != ir::Op::tid || operation.ints[0] < dimensions) return;
            operation.op = ir::Op::constant;
            operation.ints.clear();
            operation.numbers = {Number::integer(0)};
        });
    }
}

}  // namespace weft::transform
