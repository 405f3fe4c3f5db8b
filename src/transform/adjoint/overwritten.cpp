#include <algorithm>

#include "ir/walk.h"
#include "transform/adjoint/adjoint.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// The coordinate at each index; empty unless the indices are all coordinates of the thread, each once.
std::vector<int> coordinates(const ir::Function& kernel, const Operation& store) {
    std::vector<int> axes;
    for (std::size_t i = 1; i + 1 < store.operands.size(); ++i) {
        const Operation* index = store.operands[i]->definition;
        if (!index || index->op != Op::tid) return {};
        const int axis = static_cast<int>(index->ints[0]);
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return {};
        axes.push_back(axis);
    }
    return static_cast<int>(axes.size()) == kernel.tid_rank ? axes : std::vector<int>();
}

}  // namespace

std::vector<std::vector<int>> overwritten(const ir::Function& kernel) {
    const std::vector<Value*>& parameters = kernel.parameters();
    std::vector<std::vector<int>> result(parameters.size());
    for (const Operation* operation : kernel.body.operations) {
        if (operation->op != Op::store) continue;
        const auto at = std::find(parameters.begin(), parameters.end(), operation->operands[0]);
        if (at != parameters.end())
            result[static_cast<std::size_t>(at - parameters.begin())] = coordinates(kernel, *operation);
    }
    std::vector<int> uses(parameters.size(), 0);
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::dim || operation.op == Op::is_null) return;
        for (const Value* operand : operation.operands) {
            const auto at = std::find(parameters.begin(), parameters.end(), operand);
            if (at != parameters.end()) ++uses[static_cast<std::size_t>(at - parameters.begin())];
        }
    });
    for (std::size_t i = 0; i < uses.size(); ++i)
        if (uses[i] != 1) result[i].clear();
    return result;
}

}  // namespace weft::transform
