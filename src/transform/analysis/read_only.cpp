#include "transform/analysis/read_only.h"

#include "ir/typing.h"
#include "ir/walk.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;

namespace {

bool is_own(const ir::Value* array) {
    const Operation* made = ir::root_of(array)->definition;
    return made && (made->op == Op::local_array || made->op == Op::stack);
}

}  // namespace

std::set<Memory> read_only_memories(const ir::Function& kernel) {
    std::set<Memory> found;
    for (const ir::Value* parameter : kernel.parameters())
        if (parameter->type.is_array())
            for (const bool gradient : {false, true}) found.insert({parameter->index, gradient});
    bool may_write_all = false;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::call || (operation.op == Op::call_library && !operation.library->pure)) {
            may_write_all = true;
        } else if (operation.op == Op::store || ir::is_atomic(operation.op)) {
            const Memory written = memory_of(kernel, operation.operands[0]);
            found.erase(written);
            may_write_all |= !written.is_known() && !is_own(operation.operands[0]);
        }
    });
    if (may_write_all) found.clear();
    for (const ir::Value* parameter : kernel.parameters())
        if (!parameter->type.is_array()) found.insert({parameter->index, false});
    return found;
}

}  // namespace weft::transform
