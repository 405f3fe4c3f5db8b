#include "transform/simplify/constants.h"

#include <cmath>

namespace weft::transform {

using ir::Op;
using ir::Value;

const std::vector<Number>* constant_numbers(const Value* value) {
    return value->definition && value->definition->op == Op::constant ? &value->definition->numbers : nullptr;
}

const Number* uniform_constant(const Value* value) {
    const std::vector<Number>* numbers = constant_numbers(value);
    if (!numbers || numbers->empty()) return nullptr;
    for (const Number& number : *numbers) {
        const Number& first = numbers->front();
        if (number != first || (number.is_float && std::signbit(number.f) != std::signbit(first.f))) return nullptr;
    }
    return &numbers->front();
}

}  // namespace weft::transform
