// Arrays that structs show: a view is an address, and this says whose memory lies there. Array::view(), which makes
// such views, remembers the memory; a view that was made in another way is taken to show memory of its own.
#pragma once

#include <vector>

#include "program/variable.h"

namespace weft {

// Until the memory is freed. Null and memory without bytes are passed over.
void remember_memory(const runtime::BufferPtr& buffer);

// What a view shows, with its gradient: an array that keeps both memories alive, where they are known.
program::Variable shown_array(const ArrayView& view, Type array_type);

// The memory that a view shows, null where it is not known.
runtime::BufferPtr shown_memory(const ArrayView& view);

// The arrays that the elements of an array of structs show, and those that their elements show, each once.
std::vector<program::Variable> arrays_within(const runtime::Array& array);

}  // namespace weft
