// Products of matrices that lie in arrays. BLIS multiplies blocks, on one thread each; the blocks are dealt out to our
// own pool, so that there is one set of threads in the process.
#pragma once

#include "runtime/array.h"

namespace weft::runtime {

// d = alpha * (a @ b) + beta * c, of two or three dimensions, the first of three being a batch. `c` may be null where
// beta is 0, and its values are not read then. Any strides; `d` may overlap the others.
// Precondition: equal dtypes among f16, bf16, f32 and f64, on the CPU; shapes that fit. 16-bit floats are multiplied in
// f32 and rounded once.
void matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta);

}  // namespace weft::runtime
