// Products of matrices by cuBLAS, NVIDIA's library, loaded when it is first needed. It is asked only for products that
// need not be exact, and that it can compute in place.
#pragma once

#include "devlib/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/primitives.h"

namespace weft::runtime {

// A product by cuBLAS; nothing if it has none for these arguments, or is not found or not wanted. Throws UsageError if
// $WEFT_CUBLAS names no cuBLAS. The views of `plan` need no accesses; that of c is not read.
class CublasProduct {
public:
    CublasProduct(const Workplace& at, const devlib::MatmulPlan& plan, Scalar scalar, MatmulPrecision precision);
    explicit operator bool() const { return is_possible_; }
    // Precondition: d holds c, if beta is not 0. Throws UsageError if a call fails.
    void run(const Workplace& at) const;

private:
    struct Factor {
        const void* data;
        int operation, leading;
        long long batch;
    };
    bool is_possible_ = false;
    Factor left_{}, right_{};
    void* result_ = nullptr;
    int result_leading_ = 0, rows_ = 0, columns_ = 0, inner_ = 0, batches_ = 0, type_ = 0, compute_ = 0;
    long long result_batch_ = 0;
    double alpha_ = 0.0, beta_ = 0.0;
};

}  // namespace weft::runtime
