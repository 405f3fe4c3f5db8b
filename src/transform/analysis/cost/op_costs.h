// Landmarks in the cost column of ir/ops.def, in nanoseconds of one scalar operation.
#pragma once

namespace weft::transform {

inline constexpr double kSimpleCost = 0.3;     // one instruction on a number
inline constexpr double kFunctionCost = 8.0;   // from here on: a call of the math library
inline constexpr double kProgramCost = 100.0;  // from here on: code with several such calls

}  // namespace weft::transform
