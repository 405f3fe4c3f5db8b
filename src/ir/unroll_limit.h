// The limit on vectors and matrices in registers, component by component.
#pragma once

namespace weft::ir {

// In components. Larger ones are processed by loops (transform/vectors_in_memory), and so must be any code that would
// write an operation for each component.
inline constexpr int kMostUnrolled = 64;

}  // namespace weft::ir
