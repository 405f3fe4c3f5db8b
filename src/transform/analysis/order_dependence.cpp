#include "transform/analysis/order_dependence.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "ir/walk.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;

namespace {

struct Access {
    transform::Memory memory;
    std::optional<Scalar> scalar;  // empty for structs
    std::optional<Op> kind;        // of an atomic; empty for loads and stores

    auto key() const { return std::tie(memory, scalar, kind); }
    bool operator<(const Access& other) const { return key() < other.key(); }
};

std::optional<Scalar> scalar_of(Type type) {
    if (type.is_scalar() || type.is_numeric_aggregate()) return type.scalar();
    return {};
}

// Whether both may access the same number.
bool may_meet(const Access& a, const Access& b, bool noalias) {
    if (a.memory.is_known() && b.memory.is_known() && noalias) return a.memory == b.memory;
    return !a.scalar || !b.scalar || a.scalar == b.scalar;
}

// Whether atomics of one kind, among themselves, give the same result in any order.
bool commutes(const Operation& atomic) {
    if (!ir::applied(atomic.op)) return false;
    const std::optional<Scalar> scalar = scalar_of(atomic.operands.back()->type);
    const bool sums = atomic.op == Op::atomic_add || atomic.op == Op::atomic_sub;
    return scalar && !(sums && info(*scalar).is_float());
}

}  // namespace

bool depends_on_order(const ir::Function& function, bool noalias) {
    const std::unordered_set<const ir::Value*> used = ir::used_values(function);
    bool depends = false;
    std::set<Access> accesses;
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.op == Op::call_library)
            depends |= !operation.library->pure && (operation.library->native || operation.library->reaches_memory());
        const bool is_atomic = ir::is_atomic(operation.op);
        if (!is_atomic && operation.op != Op::load && operation.op != Op::store) return;
        const ir::Value* array = operation.operands[0];
        if (ir::is_of_thread(array)) return;
        if (is_atomic) depends |= !function.is_kernel || !commutes(operation) || used.contains(operation.result());
        std::optional<Op> kind;
        if (is_atomic) kind = operation.op == Op::atomic_sub ? Op::atomic_add : operation.op;
        accesses.insert({transform::memory_of(function, array), scalar_of(array->type.element()), kind});
    });
    return depends || std::any_of(accesses.begin(), accesses.end(), [&](const Access& atomic) {
               return atomic.kind && std::any_of(accesses.begin(), accesses.end(), [&](const Access& other) {
                          return other.kind != atomic.kind && may_meet(atomic, other, noalias);
                      });
           });
}

}  // namespace weft::transform
