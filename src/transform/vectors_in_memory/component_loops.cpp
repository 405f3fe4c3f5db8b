// Operations on whole values, as loops over components:
//
//     %y = matmul %m, %x      →   for %r = 0 to 64 step 8: for %k = 1 to 64: eight sums side by side
//     %z = add %y, %y         →   for %k = 0 to 64: store %z[%k], load %y[%k] + load %y[%k]
//
// Sums are rounded from left to right, each product fused into the sum, as in registers.
#include <algorithm>
#include <unordered_map>

#include "ir/loop_builder.h"
#include "support/error.h"
#include "transform/vectors_in_memory/large_values.h"

namespace weft::transform {

using ir::Op;

// The number of sums formed together. Their chains are independent, which hides the latency of each.
static constexpr int kTogether = 8;

std::vector<VectorsInMemory::Value*> VectorsInMemory::counted(std::int64_t first, std::int64_t end, std::int64_t step,
                                                              std::vector<Value*> starts, const LoopBody& body) {
    Value* const lo = number(first);
    Value* const hi = number(end);
    return ir::build_for(b_, lo, hi, number(step), std::move(starts), body);
}

void VectorsInMemory::for_each(std::int64_t count, const std::function<void(Value*)>& body, std::int64_t step) {
    counted(0, count, step, {}, [&](Value* k, const std::vector<Value*>&) {
        body(k);
        return std::vector<Value*>{};
    });
}

void VectorsInMemory::for_each_position(Type type, bool by_rows, const AtPosition& body) {
    if (!by_rows) return for_each(type.components(), [&](Value* k) { body({k}); });
    for_each(type.rows(), [&](Value* row) { for_each(type.cols(), [&](Value* col) { body({nullptr, row, col}); }); });
}

VectorsInMemory::Position VectorsInMemory::position_of(Type type, std::int64_t flat) {
    if (!type.is_matrix()) return {number(flat)};
    return {number(flat), number(flat / type.cols()), number(flat % type.cols())};
}

VectorsInMemory::Value* VectorsInMemory::flat(Type type, const Position& at) {
    if (at.flat) return at.flat;
    return b_.binary(Op::add, b_.binary(Op::mul, at.row, b_.integer(type.cols(), at.row->type)), at.col);
}

std::vector<VectorsInMemory::Value*> VectorsInMemory::indices_of(const Operation& access, const Position& at) {
    const Type array = access.operands[0]->type;
    std::vector<Value*> indices;
    for (int i = 1; i <= array.ndim(); ++i) indices.push_back(map_[access.operands[static_cast<std::size_t>(i)]]);
    if (!array.element().is_matrix()) {
        indices.push_back(at.flat);
    } else {
        indices.push_back(at.row);
        indices.push_back(at.col);
    }
    return indices;
}

VectorsInMemory::Value* VectorsInMemory::component(Value* value, const Position& at) {
    if (value->type.is_scalar()) return map_[value];
    if (is_placed(value)) return b_.load(memory(value), {flat(value->type, at)});
    WEFT_CHECK(large_.is_computed(value), "storage: a component of a value that stands in registers");
    return component_of(*value->definition, at);
}

VectorsInMemory::Value* VectorsInMemory::component_of(const Operation& operation, const Position& at) {
    const auto& operands = operation.operands;
    const Type scalar = operation.result()->type.scalar_type();
    switch (operation.op) {
        case Op::constant:
            return b_.constant(scalar, {operation.numbers[0]});
        case Op::splat:
            return map_[operands[0]];
        case Op::transpose:
            return component(operands[0], {nullptr, at.col, at.row});
        case Op::matmul: {
            Value* const zero = b_.integer(0, at.row->type);
            Value* const left = component(operands[0], {at.row, at.row, zero});
            return b_.binary(Op::mul, left, component(operands[1], {at.col, zero, at.col}));
        }
        case Op::make:
            return component(const_cast<Value*>(reshaped(operation)), {flat(operation.result()->type, at)});
        case Op::load:
            return b_.load(b_.components(map_[operands[0]]), indices_of(operation, at));
        default:
            break;
    }
    WEFT_CHECK(is_componentwise(operation.op), "storage: an operation without components");
    std::vector<Value*> parts;
    for (Value* operand : operands) parts.push_back(component(operand, at));
    return b_.append(operation.op, std::move(parts), {scalar})->result();
}

// Fills `to` with the most frequent part, and then stores the others.
void VectorsInMemory::store_parts(Value* to, const std::vector<Value*>& parts) {
    std::unordered_map<const Value*, int> counts;
    Value* most = parts[0];
    for (Value* part : parts)
        if (++counts[part] > counts[most]) most = part;
    const bool fills = counts[most] > 1;
    if (fills) for_each(static_cast<std::int64_t>(parts.size()), [&](Value* k) { b_.store(to, {k}, map_[most]); });
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (!fills || parts[i] != most) b_.store(to, {number(static_cast<std::int64_t>(i))}, map_[parts[i]]);
}

// True if the operation has been written as loops, or its result is computed at its uses.
bool VectorsInMemory::lower_in_loops(Operation& operation) {
    if (!operation.regions.empty()) return false;
    const auto in_loops = [&](const Value* value) { return large_.in_loops(value); };
    const bool gives = operation.results.size() == 1 && in_loops(operation.result());
    if (gives && large_.is_computed(operation.result())) return true;
    if (operation.op == Op::reduce_add && in_loops(operation.operands[0])) {
        lower_sum(operation);
        return true;
    }
    if (operation.op == Op::store && in_loops(operation.operands.back())) {
        Value *array = b_.components(map_[operation.operands[0]]), *stored = operation.operands.back();
        for_each_position(stored->type, stored->type.is_matrix(), [&](const Position& at) {
            Value* read = component(stored, at);
            b_.store(array, indices_of(operation, at), read);
        });
        return true;
    }
    if (ir::is_atomic(operation.op) && in_loops(operation.operands.back())) {
        lower_atomic(operation);
        return true;
    }
    const bool reports = operation.op == Op::print || operation.op == Op::raise;
    if (reports && std::ranges::any_of(operation.operands, in_loops)) {
        lower_print(operation);
        return true;
    }
    if (!gives) return false;
    Value* to = memory(operation.result());
    const Type type = operation.result()->type;
    if (operation.op == Op::constant) {
        store_numbers(to, type, operation.numbers);
    } else if (operation.op == Op::make) {
        store_parts(to, operation.operands);
    } else if (operation.op == Op::matmul && !is_outer_product(operation)) {
        lower_product(operation);
    } else if (operation.op == Op::load || ((is_componentwise(operation.op) || is_outer_product(operation)) &&
                                            large_.reads_components(operation))) {
        bool by_rows = type.is_matrix() && (operation.op == Op::load || operation.op == Op::matmul);
        for (const Value* operand : operation.operands) by_rows |= large_.needs_rows(operand);
        for_each_position(type, by_rows, [&](const Position& at) {
            Value* made = component_of(operation, at);
            b_.store(to, {flat(type, at)}, made);
        });
    } else {
        return false;
    }
    return true;
}

// A vector on the left is a row, on the right a column. Sums that are side by side in a row of the product read
// neighbours of the right operand.
void VectorsInMemory::lower_product(const Operation& operation) {
    const Type left = operation.operands[0]->type, right = operation.operands[1]->type;
    const int rows = left.is_matrix() ? left.rows() : 1, cols = right.is_matrix() ? right.cols() : 1;
    const bool along_rows = cols > 1;
    const int count = along_rows ? cols : rows;
    const auto blocks = [&](Value* other) {
        const auto block = [&](Value* first, int together) {
            store_products(operation, along_rows ? other : first, along_rows ? first : other, together);
        };
        const int full = count - count % kTogether;
        if (full > 0) for_each(full, [&](Value* first) { block(first, kTogether); }, kTogether);
        if (full < count) block(number(full), count - full);
    };
    if (along_rows && rows > 1)
        for_each(rows, blocks);
    else
        blocks(number(0));
}

// `count` entries of a product, from (row, col) on: side by side, or one below the other in a column.
void VectorsInMemory::store_products(const Operation& operation, Value* row, Value* col, int count) {
    Value *left = operation.operands[0], *right = operation.operands[1];
    const Type type = operation.result()->type;
    const int inner = left->type.is_matrix() ? left->type.cols() : left->type.rows();
    const bool along_rows = right->type.is_matrix() && right->type.cols() > 1;
    std::vector<Value*> steps;
    for (int i = 0; i < count; ++i) steps.push_back(number(i));
    const auto row_of = [&](std::size_t i) { return along_rows ? row : b_.binary(Op::add, row, steps[i]); };
    const auto col_of = [&](std::size_t i) { return along_rows ? b_.binary(Op::add, col, steps[i]) : col; };
    const auto products = [&](Value* k) {
        const auto of_left = [&](std::size_t i) {
            return left->type.is_matrix() ? component(left, {nullptr, row_of(i), k}) : component(left, {k});
        };
        const auto of_right = [&](std::size_t i) {
            return right->type.is_matrix() ? component(right, {nullptr, k, col_of(i)}) : component(right, {k});
        };
        Value* shared = along_rows ? of_left(0) : of_right(0);
        std::vector<Value*> made;
        for (std::size_t i = 0; i < steps.size(); ++i)
            made.push_back(along_rows ? b_.binary(Op::mul, shared, of_right(i))
                                      : b_.binary(Op::mul, of_left(i), shared));
        return made;
    };
    std::vector<Value*> sums = products(number(0));
    if (inner > 1) {
        sums = counted(1, inner, 1, std::move(sums), [&](Value* k, const std::vector<Value*>& carried) {
            std::vector<Value*> next = products(k);
            for (std::size_t i = 0; i < next.size(); ++i) next[i] = b_.binary(Op::add, carried[i], next[i]);
            return next;
        });
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const Position at =
            type.is_matrix() ? Position{nullptr, row_of(i), col_of(i)} : Position{along_rows ? col_of(i) : row_of(i)};
        b_.store(memory(operation.result()), {flat(type, at)}, sums[i]);
    }
}

void VectorsInMemory::lower_sum(const Operation& operation) {
    Value* source = operation.operands[0];
    const Type type = source->type;
    const auto sum_up = [&](Value* start, std::int64_t first, std::int64_t end,
                            const std::function<Position(Value*)>& place) {
        const auto add = [&](Value* k, const std::vector<Value*>& carried) -> std::vector<Value*> {
            return {b_.binary(Op::add, carried[0], component(source, place(k)))};
        };
        return counted(first, end, 1, {start}, add)[0];
    };
    Value* sum = component(source, position_of(type, 0));
    if (!large_.needs_rows(source)) {
        sum = sum_up(sum, 1, type.components(), [](Value* k) { return Position{k}; });
    } else {
        const auto along = [](Value* row) { return [row](Value* col) { return Position{nullptr, row, col}; }; };
        sum = sum_up(sum, 1, type.cols(), along(number(0)));
        if (type.rows() > 1) {
            const auto add_row = [&](Value* row, const std::vector<Value*>& carried) -> std::vector<Value*> {
                return {sum_up(carried[0], 0, type.cols(), along(row))};
            };
            sum = counted(1, type.rows(), 1, {sum}, add_row)[0];
        }
    }
    map_.set(operation.result(), sum);
}

void VectorsInMemory::lower_atomic(const Operation& operation) {
    Value *array = b_.components(map_[operation.operands[0]]), *value = operation.operands.back();
    Value* const before = operation.result();
    for_each_position(value->type, value->type.is_matrix(), [&](const Position& at) {
        Value* old = b_.atomic(operation.op, array, indices_of(operation, at), {component(value, at)});
        if (is_placed(before)) b_.store(memory(before), {flat(before->type, at)}, old);
    });
}

// Large operands are printed from a local array, component by component.
void VectorsInMemory::lower_print(Operation& operation) {
    for (Value*& operand : operation.operands) {
        if (!large_.in_loops(operand)) {
            if (!is_in_registers(operand)) operand = whole(operand);
            continue;
        }
        const Type type = operand->type;
        Value* numbers = b_.local_array(Type::array(type.scalar_type(), 1), {type.components()});
        numbers->definition->unset = true;
        copy(numbers, operand);
        operand = numbers;
    }
    append(operation);
}

}  // namespace weft::transform
