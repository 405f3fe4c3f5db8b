// Indexing an array that is None is a fault in release builds too.
//
// Only arrays that may be None are checked:
//
// - arrays loaded from memory, alone or in a struct;
// - gradients that the kernel itself writes to;
// - parameters, in the variant for launches that pass None (Options::null_arrays).
//
// The check is of the whole array's start, not that of a part, so that LLVM removes repeated checks. A fault leaves the
// entry. Debug builds check every access by themselves (emit_checks.cpp).
#include "codegen/emitter.h"
#include "ir/typing.h"
#include "transform/analysis/underlying_memory.h"
#include "types/objects.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// Whether the runtime made the array: it is not null, or has no elements. A mesh holds arrays of the user's.
bool is_of_runtime(const ir::Value* array) {
    const Operation* object = transform::object_behind(array);
    return object && object->ints[0] != static_cast<std::int64_t>(ObjectKind::mesh);
}

}  // namespace

bool Emitter::may_be_null(const ir::Value* root) const {
    const ir::Value* origin = ir::origin_of(root);
    const Operation* definition = origin->definition;
    if (!definition) return origin->region == &kernel_.body ? plan_.parameters_may_be_null : plan_.others_may_be_null;
    switch (definition->op) {
        case Op::local_array:
        case Op::stack:
        case Op::argument:
            return false;
        case Op::load:
            return !is_of_runtime(origin);
        case Op::null:
        case Op::array_at:
            return true;
        default:
            return plan_.others_may_be_null;
    }
}

void Emitter::guard_null(const Operation& access) {
    if (options_.debug) return;
    const ir::Value* array = access.operands[0];
    const ir::Value* root = ir::root_of(array);
    // The gradients that an adjoint adds to are not null, or the adjoint has checked.
    const ir::Value* gradient = ir::gradient_holding(array);
    if (gradient ? kernel_.is_adjoint : !may_be_null(root)) return;
    Leaf& data = value(gradient ? gradient : root).leaves[kDataLeaf];
    llvm::Value *there = nullptr, *broken = mask_ ? active_lanes() : nullptr;
    if (data.varying()) {
        llvm::Value* nothing = llvm::Constant::getNullValue(data.vector->getType());
        broken = builder_.CreateAnd(builder_.CreateICmpEQ(data.vector, nothing), active_lanes());
        there = builder_.CreateNot(lanes_.any(broken));
    } else {
        there = builder_.CreateIsNotNull(data.scalar);
        if (mask_) there = builder_.CreateOr(there, builder_.CreateNot(lanes_.any(broken)));
    }
    check(access, there, FaultKind::null_array, i64(0), i64(0), 0, leave_, broken);
}

}  // namespace weft::codegen
