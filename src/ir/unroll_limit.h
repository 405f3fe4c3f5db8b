// How large a vector or matrix may be to stand in registers, component by component.
#pragma once

namespace weft::ir {

// In components. Operations on larger ones become loops (transform/vectors_in_memory), and what would write an
// operation for each of their components writes a loop, too.
inline constexpr int kMostUnrolled = 200;

}  // namespace weft::ir
