#include "runtime/cpu/primitives/blas.h"

#include <blis.h>

namespace weft::runtime::blas {

static_assert(sizeof(dim_t) == 8, "BLIS with 64-bit sizes");

void gemm(Scalar scalar, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const void* a,
          std::int64_t a_row, std::int64_t a_column, const void* b, std::int64_t b_row, std::int64_t b_column,
          double beta, void* c, std::int64_t c_row, std::int64_t c_column) {
    if (scalar == Scalar::f32) {
        auto narrow_alpha = static_cast<float>(alpha), narrow_beta = static_cast<float>(beta);
        bli_sgemm(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, k, &narrow_alpha,
                  static_cast<float*>(const_cast<void*>(a)), a_row, a_column, static_cast<float*>(const_cast<void*>(b)),
                  b_row, b_column, &narrow_beta, static_cast<float*>(c), c_row, c_column);
    } else {
        bli_dgemm(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, k, &alpha, static_cast<double*>(const_cast<void*>(a)),
                  a_row, a_column, static_cast<double*>(const_cast<void*>(b)), b_row, b_column, &beta,
                  static_cast<double*>(c), c_row, c_column);
    }
}

}  // namespace weft::runtime::blas
