#include "transform/analysis/uncontended.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/analysis/elements.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// The array, if launches promise something about it: gradients have promises in adjoints only, and not within structs.
std::optional<Array> promised_array(const ir::Function& kernel, const Value* value) {
    std::optional<Array> array = array_of(kernel, value);
    if (array && array->gradient && (!kernel.is_adjoint || !array->path.empty())) return {};
    return array;
}

}  // namespace

std::unordered_set<const Operation*> uncontended_atomics(const ir::Function& kernel, bool noalias) {
    std::unordered_set<const Operation*> result;
    std::map<Array, Indices> written;
    std::vector<std::pair<const Operation*, Array>> atomics;
    bool all_known = true;
    const auto add = [&](const Array& array, const Indices& indices) {
        const auto [at, fresh] = written.try_emplace(array, indices);
        if (!fresh) join(at->second, indices);
    };
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        if (operation.op == Op::call_library && operation.library->reaches_memory()) all_known = false;
        if (operation.op == Op::call || (operation.op == Op::call_library && !operation.library->pure)) {
            for (const Value* operand : operation.operands) {
                if (!ir::holds_array(operand->type)) continue;
                const auto array = operand->type.is_array() ? promised_array(kernel, operand) : std::nullopt;
                if (array && !ir::holds_array(operand->type.element()))
                    add(*array, {});
                else
                    all_known = false;
            }
        }
        if (!ir::writes(operation.op)) return;
        const bool is_atomic = ir::is_atomic(operation.op);
        if (ir::is_of_thread(operation.operands[0])) {
            if (is_atomic) result.insert(&operation);
            return;
        }
        const std::optional<Array> array = promised_array(kernel, operation.operands[0]);
        if (!array) {
            all_known = false;
            return;
        }
        add(*array, indices_of(operation));
        if (is_atomic) atomics.emplace_back(&operation, *array);
    });
    if (!all_known || (!noalias && written.size() > 1)) return result;
    for (const auto& [atomic, array] : atomics)
        if (tells_threads_apart(written.at(array), kernel.tid_rank)) result.insert(atomic);
    return result;
}

}  // namespace weft::transform
