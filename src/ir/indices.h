// Indices that count from the end of their axis where they are negative.
//
//     %negative = cmp.lt %i, 0;  %end = add %i, %extent;  %at = select %negative, %end, %i
#pragma once

#include <functional>

#include "ir/builder.h"

namespace weft::ir {

// `index` itself where it is never negative, as far as the operations say that it comes from.
Value* counted_from_end(Builder& b, Value* index, const std::function<Value*()>& extent);
// The same along an axis of an array, for each of the indices.
void count_from_end(Builder& b, Value* array, std::vector<Value*>& indices);
// The extent that the result of counted_from_end() counts back from.
const Value* extent_of(const Value* index);
// The index that counted_from_end() was given; null where the value is none of its results.
const Value* as_written(const Value* index);

}  // namespace weft::ir
