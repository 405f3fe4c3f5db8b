// The hash behind random numbers and noise: the PCG permutation of 32 bits (Jarzynski and Olano, "Hash Functions for
// GPU Rendering", JCGT 9(3), 2020, pcg_hash).
#pragma once

#include "builtins/expression.h"

namespace weft::builtins {

inline E pcg(E v) {
    const E state = v * 747796405.0 + 2891336453.0;
    const E word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737.0;
    return (word >> 22) ^ word;
}

}  // namespace weft::builtins
