#include "transform/tiles/fuse_tiles.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/tile_builder.h"
#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool has_indices(const Operation& operation) {
    return operation.op == Op::tile_generate || operation.op == Op::tile_each;
}

// Effects of an operation and of those in its regions on memory.
struct Access {
    bool reads = false, writes = false;
};
Access access_of(const Operation& operation) {
    Access access;
    const auto add = [&](const Operation& one) {
        if (one.op == Op::load || one.op == Op::call || one.op == Op::call_library) access.reads = true;
        if (one.regions.empty() && ir::has_effects(one)) access.writes = true;
    };
    add(operation);
    for (const Region* region : operation.regions) ir::for_each_operation(*region, add);
    return access;
}

std::int64_t integer_of(const Value* value) {
    return value->definition && value->definition->op == Op::constant ? value->definition->numbers[0].i : -1;
}

// Whether the value is the number of the element at the arguments of this region.
bool is_flat_index(const Value* value, const std::vector<Value*>& arguments, const std::vector<std::int64_t>& extents,
                   std::size_t count) {
    if (count == 1) return value == arguments[0];
    const Operation* sum = value->definition;
    if (!sum || sum->op != Op::add || sum->operands[1] != arguments[count - 1]) return false;
    const Operation* product = sum->operands[0]->definition;
    return product && product->op == Op::mul && integer_of(product->operands[1]) == extents[count - 1] &&
           is_flat_index(product->operands[0], arguments, extents, count - 1);
}

class Fusion {
public:
    explicit Fusion(ir::Function& function) : function_(function) {}

    std::unordered_set<const Operation*> run() {
        while (drop_unused()) {
        }
        visit(function_.body);
        return std::move(inlined_);
    }

private:
    void visit(Region& region) {
        bool any = false;
        for (Operation* operation : region.operations) {
            for (Region* inner : operation->regions) visit(*inner);
            any |= operation->op == Op::tile_generate;
        }
        if (!any) return;
        count_uses();
        // The last producer first: its own producers move on with it.
        for (std::size_t i = region.operations.size(); i-- > 0;) {
            Operation* made = region.operations[i];
            if (made->op == Op::tile_generate && move(*made, region, i))
                region.operations.erase(region.operations.begin() + i);
        }
    }

    // Sema reads a view at each use of its name, and few of these values are used.
    bool drop_unused() {
        const std::unordered_set<const Value*> used = ir::used_values(function_);
        bool any = false;
        ir::for_each_region(function_.body, [&](Region& region) {
            any |= std::erase_if(region.operations, [&](const Operation* operation) {
                       return operation->op == Op::tile_generate && !used.contains(operation->result()) &&
                              !ir::has_effects(*operation);
                   }) > 0;
        });
        return any;
    }

    void count_uses() {
        uses_.clear();
        ir::for_each_operation(function_.body, [&](Operation& operation) {
            for (const Value* operand : operation.operands)
                if (operand->type.is_tile()) uses_[operand].push_back(&operation);
        });
    }

    // The uses of tiles in a producer's body are those of its copy now.
    void move_uses(const Region& from, const std::vector<Operation*>& to) {
        ir::for_each_operation(from, [&](Operation& operation) {
            for (const Value* operand : operation.operands)
                if (operand->type.is_tile()) std::erase(uses_[operand], &operation);
        });
        const auto add = [&](Operation& operation) {
            for (const Value* operand : operation.operands)
                if (operand->type.is_tile()) uses_[operand].push_back(&operation);
        };
        for (Operation* operation : to) {
            add(*operation);
            for (Region* inner : operation->regions) ir::for_each_operation(*inner, add);
        }
    }

    // True if nothing is left of the producer at its place.
    bool move(Operation& made, Region& region, std::size_t at) {
        const auto found = uses_.find(made.result());
        if (found == uses_.end() || found->second.size() != 1) return false;
        Operation& use = *found->second[0];
        Operation* const consumer = use.op == Op::tile_reduce ? &use : use.parent->owner;
        if (!consumer || consumer->parent != &region) return false;
        const Access own = access_of(made);
        if (own.writes) return false;
        if (own.reads) {
            const auto begin = region.operations.begin() + static_cast<std::ptrdiff_t>(at) + 1;
            // A consumer that is computed in the loop of a reduction runs there.
            const Operation* const runs =
                inlined_.contains(consumer) ? uses_.at(consumer->result())[0] : static_cast<const Operation*>(consumer);
            const auto end = std::find(begin, region.operations.end(), runs);
            const auto writes = [](const Operation* operation) { return access_of(*operation).writes; };
            if (std::any_of(begin, end, writes) || writes(consumer)) return false;
        }
        if (&use == consumer) {
            inlined_.insert(&made);
            return false;
        }
        return use.op == Op::extract_at && has_indices(*consumer) && move_into(made, *consumer, use);
    }

    bool move_into(const Operation& made, Operation& consumer, Operation& use) {
        Region& body = consumer.body();
        // Whether it reads the elements in step, all of them.
        const bool is_whole = ir::count_of(consumer.ints) == ir::count_of(made.ints) &&
                              is_flat_index(use.operands[1], body.arguments, consumer.ints, body.arguments.size());
        if (made.ints.size() > 1 && is_whole && consumer.ints.size() == 1) give_indices(consumer, made.ints);
        std::vector<Operation*> operations = std::move(body.operations);
        body.operations.clear();
        ir::Builder builder(function_, body);
        for (Operation* operation : operations) {
            if (operation != &use) {
                body.operations.push_back(operation);
                continue;
            }
            builder.span = made.span;
            std::vector<Value*> indices;
            if (made.ints.size() == 1)
                indices = {as_index(builder, use.operands[1])};
            else if (consumer.ints == made.ints && is_whole)
                indices = body.arguments;
            else
                indices = apart(builder, use.operands[1], made.ints);
            ir::ValueMap map(function_);
            for (std::size_t i = 0; i < indices.size(); ++i) map.set(made.body().arguments[i], indices[i]);
            const auto first = static_cast<std::ptrdiff_t>(body.operations.size());
            ir::clone_operations(function_, made.body(), body, map);
            move_uses(made.body(), {body.operations.begin() + first, body.operations.end()});
            ir::ValueMap replaced(function_);
            replaced.set(use.result(), map[made.body().terminator()->operands[0]]);
            Region rest;
            rest.operations = {operations.begin(), operations.end()};
            ir::replace_uses(rest, replaced);
        }
        return true;
    }

    // Lets the consumer count by these extents in place of one.
    void give_indices(Operation& consumer, const std::vector<std::int64_t>& extents) {
        Region& body = consumer.body();
        Value* const flat = body.arguments[0];
        body.arguments.clear();
        consumer.ints = extents;
        for (std::size_t i = 0; i < extents.size(); ++i) function_.add_argument(&body, i32_type());
        std::vector<Operation*> operations = std::move(body.operations);
        body.operations.clear();
        ir::Builder builder(function_, body);
        builder.span = consumer.span;
        ir::ValueMap map(function_);
        map.set(flat, ir::flat_index(builder, extents, body.arguments));
        body.operations.insert(body.operations.end(), operations.begin(), operations.end());
        ir::replace_uses(body, map);
    }

    static Value* as_index(ir::Builder& builder, Value* number) {
        return number->type == i32_type() ? number : builder.cast(number, Scalar::i32);
    }

    // The indices of the element with this number.
    static std::vector<Value*> apart(ir::Builder& builder, Value* flat, const std::vector<std::int64_t>& extents) {
        std::vector<Value*> indices(extents.size());
        flat = as_index(builder, flat);
        for (std::size_t i = extents.size(); i-- > 1;) {
            Value* const extent = builder.integer(extents[i]);
            indices[i] = builder.binary(Op::rem, flat, extent);
            flat = builder.binary(Op::div, flat, extent);
        }
        indices[0] = flat;
        return indices;
    }

    ir::Function& function_;
    std::unordered_map<const Value*, std::vector<Operation*>> uses_;
    std::unordered_set<const Operation*> inlined_;
};

}  // namespace

std::unordered_set<const ir::Operation*> fuse_tiles(ir::Function& function) { return Fusion(function).run(); }

}  // namespace weft::transform
