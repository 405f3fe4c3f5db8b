// Checks at stores and atomics that note whether an element stops being finite. If an array has become so at the end,
// the launch reports the write that was noted (wp.config.verify_fp). A store is checked before it, an atomic after it.
//
// before:  store %a[%i], %x
// after:   %old = load %a[%i]
//          %is = isfinite %x; %was = isfinite %old; %fine = or (invert %was), %is
//          note_finite %fine
//          store %a[%i], %x
#include "transform/passes/nan_check.h"

#include <utility>

#include "ir/builder.h"
#include "ir/component_loops.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/passes/uncontended_atomics.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

class NanCheckInsertion {
public:
    explicit NanCheckInsertion(ir::Function& kernel) : kernel_(kernel), b_(kernel, kernel.body) {}

    void region(Region& region) {
        const std::vector<Operation*> before = std::exchange(region.operations, {});
        for (Operation* operation : before) {
            for (Region* inner : operation->regions) this->region(*inner);
            ir::Builder::Inside inside(b_, region);
            const bool is_atomic = ir::is_atomic(operation->op);
            if (is_atomic) region.operations.push_back(operation);
            if (ir::writes(operation->op) && is_users(operation->operands[0])) note(*operation);
            if (!is_atomic) region.operations.push_back(operation);
        }
    }

private:
    // Whether the user sees the memory: it is neither local to the kernel nor added by the compiler.
    bool is_users(const Value* array) const {
        return !ir::is_of_thread(array) && !kernel_.implicit(ir::root_of(array));
    }

    void note(const Operation& write) {
        b_.span = write.span;
        const bool is_store = write.op == Op::store;
        Value* old = is_store ? nullptr : write.result();
        Value* is = finite(is_store ? write.operands.back() : atomic_leaves(b_, write, old));
        if (!is) return;
        if (is_store) old = b_.load(write.operands[0], {write.operands.begin() + 1, write.operands.end() - 1});
        Value* was = finite(old);
        b_.note_finite(b_.binary(Op::or_, b_.unary(Op::invert, was), is));
        b_.region().operations.back()->inlined = write.inlined;
    }

    // Whether all floats in the value are finite; null if it has none.
    Value* finite(Value* value) {
        const Type type = value->type;
        if (type.is_scalar()) return type.is_float() ? b_.classify(Op::isfinite, value) : nullptr;
        if (ir::most_components(type) > ir::kMostUnrolled && !type.is_struct()) {
            if (!info(type.scalar()).is_float()) return nullptr;
            const auto step = [&](const std::vector<Value*>& carried, const std::vector<Value*>& indices) {
                Value* is = b_.classify(Op::isfinite, b_.extract_at(value, indices));
                return std::vector<Value*>{b_.binary(Op::and_, carried[0], is)};
            };
            return ir::over_components(b_, type, {b_.boolean(true)}, step)[0];
        }
        Value* all = nullptr;
        const auto add = [&](std::vector<std::int64_t> path) {
            Value* part = finite(b_.extract(value, std::move(path)));
            if (part) all = all ? b_.binary(Op::and_, all, part) : part;
        };
        if (type.is_struct()) {
            for (std::size_t i = 0; i < type.fields().size(); ++i) add({static_cast<std::int64_t>(i)});
        } else if (type.is_numeric_aggregate()) {
            for (std::int64_t i = 0; i < type.components(); ++i)
                add(type.is_matrix() ? std::vector<std::int64_t>{i / type.cols(), i % type.cols()}
                                     : std::vector<std::int64_t>{i});
        }
        return all;
    }

    const ir::Function& kernel_;
    ir::Builder b_;
};

}  // namespace

void insert_nan_checks(ir::Function& kernel) { NanCheckInsertion(kernel).region(kernel.body); }

}  // namespace weft::transform
