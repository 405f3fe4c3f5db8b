// Work on the elements of whole arrays: copies and fills, in the current stream of this thread on their device.
#pragma once

#include "runtime/array.h"

namespace weft::runtime {

Array contiguous(const Array& array);  // the array itself if it is contiguous
Array clone(const Array& array);
Array clone(const Array& array, Device& device);
// Same shape and dtype; any devices and strides. Overlapping source and destination are handled as if copied through a
// temporary.
void copy(const Array& destination, const Array& source);
// Copies the bytes alone; the caller must update references to the memory that they point to.
void transfer(const Array& destination, const Array& source);
// A copy between devices is work of one of them. Throws UsageError if a capture on the other would miss it.
void refuse_lost_copy(Device& to, Device& from);
// `element` is in the host's memory.
void fill(const Array& array, const void* element);
void zero(const Array& array);

}  // namespace weft::runtime
