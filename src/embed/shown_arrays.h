// Arrays that structs refer to: a view is an address, and this finds the owner of its memory. Array::view(), which
// makes such views, remembers the memory. A view that was made in another way is assumed to have memory of its own.
#pragma once

#include <vector>

#include "program/tape/variable.h"

namespace weft {

// Remembers the memory until it is freed. Ignores null and memory without bytes.
void remember_memory(const runtime::BufferPtr& buffer);

// The array of a view, with its gradient: it keeps both memories alive if they are known.
program::Variable shown_array(const ArrayView& view, Type array_type);

// The memory of a view; null if it is not known.
runtime::BufferPtr shown_memory(const ArrayView& view);

// The arrays that the elements of an array of structs refer to, and recursively those of their elements, without
// duplicates.
std::vector<program::Variable> arrays_within(const runtime::Array& array);

}  // namespace weft
