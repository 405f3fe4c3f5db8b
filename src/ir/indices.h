// Negative indices, which count from the end of their axis.
//
//     %negative = cmp.lt %i, 0;  %end = add %i, %extent;  %at = select %negative, %end, %i
#pragma once

#include <functional>

#include "ir/builder.h"

namespace weft::ir {

// `index` itself if its operations show that it is never negative.
Value* counted_from_end(Builder& b, Value* index, const std::function<Value*()>& extent);
// The same along an axis of an array, for each of the indices.
void count_from_end(Builder& b, Value* array, std::vector<Value*>& indices);
// The extent that a result of counted_from_end() was given.
const Value* extent_of(const Value* index);
// The index that counted_from_end() was given; null for any other value.
const Value* as_written(const Value* index);

}  // namespace weft::ir
