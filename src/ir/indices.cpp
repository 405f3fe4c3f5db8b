#include "ir/indices.h"

#include "ir/lower_bounds.h"

namespace weft::ir {

Value* counted_from_end(Builder& b, Value* index, const std::function<Value*()>& extent) {
    if (LowerBounds().is_never_negative(index)) return index;
    if (info(index->type.scalar()).bits < 32) index = b.cast(index, Scalar::i32);
    Value* size = extent();
    if (!(size->type == index->type)) size = b.cast(size, index->type.scalar());
    Value* is_negative = b.compare(Op::cmp_lt, index, b.integer(0, index->type));
    return b.select(is_negative, b.binary(Op::add, index, size), index);
}

void count_from_end(Builder& b, Value* array, std::vector<Value*>& indices) {
    for (std::size_t axis = 0; axis < indices.size(); ++axis)
        indices[axis] = counted_from_end(b, indices[axis], [&] { return b.dim(array, static_cast<int>(axis)); });
}

const Value* extent_of(const Value* index) {
    const Operation* sum = index->definition->operands[1]->definition;
    return sum && sum->op == Op::add && sum->operands[0] == as_written(index) ? sum->operands[1] : nullptr;
}

const Value* as_written(const Value* index) {
    const Operation* choice = index->definition;
    if (!choice || choice->op != Op::select) return nullptr;
    const Operation* test = choice->operands[0]->definition;
    if (!test || test->op != Op::cmp_lt || test->operands[0] != choice->operands[2]) return nullptr;
    const Operation* zero = test->operands[1]->definition;
    const bool is_zero = zero && zero->op == Op::constant && zero->numbers[0] == Number::integer(0);
    return is_zero && index->type.is_scalar() && index->type.is_int() ? choice->operands[2] : nullptr;
}

}  // namespace weft::ir
