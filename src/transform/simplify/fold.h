// Values of operations on constants. Folding must not be observable: an operation is folded only if every target
// computes the same bits. So sin, exp, pow and the like are not folded, nor division by zero (a fault in debug builds).
// Nor are results that are NaN: sign and payload differ between machines.
#pragma once

#include <optional>

#include "ir/ir.h"

namespace weft::transform {

std::optional<Number> fold_unary(ir::Op op, Scalar scalar, Number a);
std::optional<Number> fold_binary(ir::Op op, Scalar scalar, Number a, Number b);
std::optional<Number> fold_fma(Scalar scalar, Number a, Number b, Number c);
std::optional<bool> fold_compare(ir::Op op, Scalar scalar, Number a, Number b);
std::optional<bool> fold_classify(ir::Op op, Number a);
std::optional<Number> fold_cast(Scalar from, Scalar to, Number a);
std::optional<Number> fold_bitcast(Scalar from, Scalar to, Number a);
std::int64_t fold_bit_count(Scalar scalar, Number a);

}  // namespace weft::transform
