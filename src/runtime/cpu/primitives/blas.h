// The one function of BLIS that is used. It has its own file because BLIS's header is large and defines short macros.
#pragma once

#include <cstdint>

#include "types/type.h"

namespace weft::runtime::blas {

// c = alpha * (a @ b) + beta * c on the calling thread, of f32 or f64; strides in elements, positive. With beta 0, c is
// not read. Callable from many threads at once.
void gemm(Scalar scalar, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const void* a,
          std::int64_t a_row, std::int64_t a_column, const void* b, std::int64_t b_row, std::int64_t b_column,
          double beta, void* c, std::int64_t c_row, std::int64_t c_column);

}  // namespace weft::runtime::blas
