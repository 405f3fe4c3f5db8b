// Large vectors that are indexed at run time go to memory of the thread (storage.h):
//
//     before:  %s = for %k = %0 to %n step %1 carry (%v = %zeros) { %x = load %a[%k]; %w = insert_at %v[%k], %x; yield
//     %w } after:   fill %m with 0; for %k = %0 to %n step %1 { %x = load %a[%k]; store %m[%k], %x }
//
// What is read there is what the index chose before, also where it lies outside: the first component. What is written
// outside goes to an element behind the others, which nobody reads.
#include <algorithm>
#include <utility>

#include "ir/walk.h"
#include "transform/pipeline.h"
#include "transform/simplify/simplify.h"
#include "transform/storage/storage.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

class LargeValues {
public:
    LargeValues(ir::Function& function, Storage storage)
        : function_(function), storage_(std::move(storage)), b_(function, function.body), map_(function) {}

    void run() {
        Region& body = function_.body;
        std::vector<Operation*> rest = std::exchange(body.operations, {});
        if (!rest.empty()) b_.span = rest.front()->span;
        for (const Type type : storage_.types) {
            const int behind = type.is_matrix() ? type.cols() : 1;
            const Type array = Type::array(Type::scalar(type.scalar()), 1);
            memories_.push_back(b_.local_array(array, {type.components() + behind}));
            body.operations.back()->unset = true;
        }
        for (Value* parameter : function_.parameters())
            if (is_placed(parameter)) store_whole(memory(parameter), parameter);
        lower_all(body, rest);
        ir::replace_uses(body, map_);
    }

private:
    // ---- memory ----

    Value* memory(const Value* value) const { return memories_[static_cast<std::size_t>(storage_.place(value))]; }
    bool is_placed(const Value* value) const { return storage_.place(value) >= 0; }

    // Runs `body` with each position of a value of this type.
    template <typename Body>
    void for_each_position(Type type, const Body& body) {
        Value* const lo = b_.integer(0);
        Value* const hi = b_.integer(type.components());
        Operation* loop = b_.for_(lo, hi, b_.integer(1), {});
        ir::Builder::Inside inside(b_, loop->body());
        body(loop->body().arguments[0]);
        b_.yield({});
    }

    // From registers to memory.
    void store_whole(Value* to, Value* value) {
        const Type type = value->type;
        Value* same = nullptr;  // in all components
        if (value->definition && value->definition->op == Op::splat) same = value->definition->operands[0];
        if (const Number* number = uniform_constant(value)) same = b_.constant(Type::scalar(type.scalar()), {*number});
        if (same) return for_each_position(type, [&](Value* k) { b_.store(to, {k}, same); });
        for (int i = 0; i < type.components(); ++i) {
            Value* component =
                type.is_matrix() ? b_.extract(value, {i / type.cols(), i % type.cols()}) : b_.extract(value, {i});
            b_.store(to, {b_.integer(i)}, component);
        }
    }

    Value* load_part(Type type, Value* from, Value* first) {
        if (type.is_scalar()) return b_.load(from, {first});
        std::vector<Value*> parts;
        for (int i = 0; i < type.components(); ++i)
            parts.push_back(b_.load(from, {b_.binary(Op::add, first, b_.integer(i))}));
        return b_.make(type, std::move(parts));
    }

    void store_part(Value* to, Value* first, Value* part) {
        if (part->type.is_scalar()) return b_.store(to, {first}, part);
        for (int i = 0; i < part->type.components(); ++i)
            b_.store(to, {b_.binary(Op::add, first, b_.integer(i))}, b_.extract(part, {i}));
    }

    // The value in registers.
    Value* whole(Value* value) {
        return is_placed(value) ? load_part(value->type, memory(value), b_.integer(0)) : map_[value];
    }

    // Makes `to` what `from` is.
    void move(const Value* to, Value* from) {
        if (!is_placed(to)) return;
        if (!is_placed(from)) return store_whole(memory(to), map_[from]);
        if (storage_.place(to) == storage_.place(from)) return;
        Value *source = memory(from), *target = memory(to);
        for_each_position(to->type, [&](Value* k) { b_.store(target, {k}, b_.load(source, {k})); });
    }

    // The number of the first component that indices name, of a part of `width`; `outside` where they name none.
    Value* position(Type type, const std::vector<Value*>& indices, int width, std::int64_t outside) {
        Value* at = b_.cast(map_[indices[0]], Scalar::i32);
        if (indices.size() > 1)
            at = b_.binary(Op::add, b_.binary(Op::mul, at, b_.integer(type.cols())),
                           b_.cast(map_[indices[1]], Scalar::i32));
        const int count = type.components() / width;
        Value* limit = b_.constant(Type::scalar(Scalar::u32), {Number::integer(count)});
        Value* inside = b_.compare(Op::cmp_lt, b_.bitcast(at, Scalar::u32), limit);
        at = b_.select(inside, at, b_.integer(outside));
        return width == 1 ? at : b_.binary(Op::mul, at, b_.integer(width));
    }

    Value* position(Type type, const std::vector<std::int64_t>& path) {
        const std::int64_t cols = type.is_matrix() ? type.cols() : 1;
        return b_.integer(path[0] * cols + (path.size() > 1 ? path[1] : 0));
    }

    // ---- operations ----

    void lower_all(Region& region, const std::vector<Operation*>& operations) {
        ir::Builder::Inside inside(b_, region);
        for (Operation* operation : operations) {
            b_.span = operation->span;
            const std::size_t first = region.operations.size();
            lower(*operation);
            for (std::size_t i = first; i < region.operations.size(); ++i) {
                if (region.operations[i] == operation) continue;
                region.operations[i]->inlined = operation->inlined;
                for (Region* inner : region.operations[i]->regions)
                    ir::for_each_operation(*inner, [&](Operation& made) { made.inlined = operation->inlined; });
            }
        }
    }

    void lower(Operation& operation) {
        switch (operation.op) {
            case Op::if_:
                return lower_if(operation);
            case Op::for_:
            case Op::while_:
                return lower_loop(operation);
            case Op::yield:
                return lower_yield(operation);
            case Op::extract:
            case Op::extract_at:
                if (is_placed(operation.operands[0])) return lower_extract(operation);
                break;
            case Op::insert:
            case Op::insert_at:
                if (is_placed(operation.result())) return lower_insert(operation);
                break;
            case Op::select:
                if (is_placed(operation.result())) return lower_select(operation);
                break;
            default:
                break;
        }
        for (Value*& operand : operation.operands)
            if (is_placed(operand)) operand = whole(operand);
        append(operation);
        for (Value* result : operation.results)
            if (is_placed(result)) store_whole(memory(result), result);
    }

    void append(Operation& operation) { b_.region().operations.push_back(&operation); }

    void lower_extract(Operation& operation) {
        const Type type = operation.operands[0]->type, part = operation.result()->type;
        const std::vector<Value*> indices(operation.operands.begin() + 1, operation.operands.end());
        Value* first = operation.op == Op::extract ? position(type, operation.ints)
                                                   : position(type, indices, part.components(), 0);
        map_.set(operation.result(), load_part(part, memory(operation.operands[0]), first));
    }

    void lower_insert(Operation& operation) {
        const Type type = operation.result()->type;
        Value* part = whole(operation.operands[1]);
        const int width = part->type.components();
        const std::vector<Value*> indices(operation.operands.begin() + 2, operation.operands.end());
        Value* first = operation.op == Op::insert ? position(type, operation.ints)
                                                  : position(type, indices, width, type.components() / width);
        move(operation.result(), operation.operands[0]);
        store_part(memory(operation.result()), first, part);
    }

    void lower_select(Operation& operation) {
        const Value* result = operation.result();
        Operation* branch = b_.if_(map_[operation.operands[0]], {});
        for (const std::size_t arm : {1, 2}) {
            ir::Builder::Inside inside(b_, *branch->regions[arm - 1]);
            move(result, operation.operands[arm]);
            b_.yield({});
        }
    }

    // What an arm yields, or an iteration hands on, becomes what it is there.
    void lower_yield(Operation& yield) {
        const Operation& owner = *b_.region().owner;
        const bool tests = owner.op == Op::while_ && &b_.region() == owner.regions[0];
        if (!tests) {
            const std::vector<Value*>& targets = owner.op == Op::if_ ? owner.results : owner.body(0).arguments;
            const std::size_t skipped = owner.op == Op::if_ ? 0 : ir::carried_arguments(owner);
            for (std::size_t i = 0; i < yield.operands.size(); ++i) move(targets[skipped + i], yield.operands[i]);
            std::size_t i = 0;
            std::erase_if(yield.operands, [&](const Value*) { return is_placed(targets[skipped + i++]); });
        }
        append(yield);
    }

    void lower_if(Operation& operation) {
        append(operation);
        for (Region* arm : operation.regions) lower_all(*arm, std::exchange(arm->operations, {}));
        forget_placed(operation.results);
    }

    void lower_loop(Operation& loop) {
        const std::size_t operands = ir::carried_operands(loop), arguments = ir::carried_arguments(loop);
        std::vector<Value*>& carried = loop.body(0).arguments;
        for (std::size_t i = 0; i < loop.results.size(); ++i) move(carried[arguments + i], loop.operands[operands + i]);
        append(loop);
        for (Region* region : loop.regions) {
            std::vector<Operation*> before = std::exchange(region->operations, {});
            ir::Builder::Inside inside(b_, *region);
            if (region != loop.regions[0])
                for (std::size_t i = 0; i < carried.size(); ++i) move(region->arguments[i], carried[i]);
            lower_all(*region, before);
        }
        for (std::size_t i = 0; i < loop.results.size(); ++i) move(loop.results[i], carried[arguments + i]);

        std::size_t i = 0;
        const std::vector<Value*> all = carried;
        std::erase_if(loop.operands, [&](const Value*) {
            const std::size_t at = i++;
            return at >= operands && is_placed(all[arguments + at - operands]);
        });
        for (Region* region : loop.regions) forget_placed(region->arguments);
        forget_placed(loop.results);
    }

    void forget_placed(std::vector<Value*>& values) {
        std::erase_if(values, [&](const Value* value) { return is_placed(value); });
        for (std::size_t i = 0; i < values.size(); ++i) values[i]->index = static_cast<int>(i);
    }

    ir::Function& function_;
    const Storage storage_;
    ir::Builder b_;
    ir::ValueMap map_;
    std::vector<Value*> memories_;
};

}  // namespace

bool keep_large_values_in_memory(ir::Function& function, int most_in_registers) {
    Storage storage = assign_storage(function, most_in_registers);
    if (storage.types.empty()) return false;
    LargeValues(function, std::move(storage)).run();
    return true;
}

}  // namespace weft::transform
