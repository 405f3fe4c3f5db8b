#include "transform/analysis/thread_private_elements.h"

#include <algorithm>
#include <set>

#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/analysis/elements.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// Whether the first indices are the thread's coordinates.
bool is_at_thread(const Operation& access, int rank) {
    const Indices indices = indices_of(access);
    if (indices.size() < static_cast<std::size_t>(rank)) return false;
    for (int axis = 0; axis < rank; ++axis) {
        const std::optional<Affine>& index = indices[static_cast<std::size_t>(axis)];
        if (!index || index->axis != axis || index->factor != 1 || index->low != 0 || index->high != 0) return false;
    }
    return true;
}

bool is_array(const Value* value) { return value->type.is_array(); }

}  // namespace

std::optional<std::vector<int>> thread_private_elements(const ir::Function& kernel) {
    bool is_known = kernel.tid_rank > 0 && kernel.implicit_parameters.empty();
    for (const Value* parameter : kernel.parameters()) {
        const Type type = parameter->type;
        // Arrays within structs, or in the elements of arrays, are not tracked.
        is_known &= !ir::holds_array(type) || (type.is_array() && !ir::holds_array(type.element()));
    }
    std::set<int> accessed, shared;
    ir::for_each_operation(kernel.body, [&](const Operation& operation) {
        switch (operation.op) {
            case Op::call:
            case Op::print:
            case Op::raise:
            case Op::require:
            case Op::assert_:
            case Op::note_finite:
            case Op::object:
                is_known = false;
                return;
            case Op::call_library:
                is_known &= operation.library->pure && !operation.library->reaches_memory();
                break;
            default:
                break;
        }
        if (std::ranges::none_of(operation.operands, is_array)) return;
        const Value* const array = operation.operands[0];
        if (is_array(array) && ir::is_of_thread(array)) return;
        if (operation.op == Op::dim || operation.op == Op::is_null) return;
        const bool is_access = operation.op == Op::load || operation.op == Op::store || ir::is_atomic(operation.op);
        const std::optional<Array> from = is_array(array) ? array_of(kernel, array) : std::nullopt;
        if (!is_access || !from || from->gradient || !from->path.empty()) {
            is_known = false;
            return;
        }
        accessed.insert(from->parameter);
        if (!is_at_thread(operation, kernel.tid_rank)) shared.insert(from->parameter);
    });
    if (!is_known) return {};
    std::vector<int> own;
    std::ranges::set_difference(accessed, shared, std::back_inserter(own));
    return own;
}

}  // namespace weft::transform
