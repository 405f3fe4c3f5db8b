// The CPU's operations on whole arrays, on the pool: data are cut into blocks of fixed size, and the results of blocks
// are combined in a fixed order. Products of matrices are cut into blocks too, each multiplied by BLIS on one thread;
// so the process has one set of threads.
#pragma once

#include "runtime/primitives.h"

namespace weft::runtime {

class CpuPrimitives final : public Primitives {
public:
    std::vector<Total> sum(const Array& array, int axis) override;
    std::vector<Total> inner(const Array& a, const Array& b, int axis) override;
    void sum_into(const Array& array, int axis, const Array& to) override;
    void inner_into(const Array& a, const Array& b, int axis, const Array& to) override;
    void scan(const Array& from, const Array& to, bool inclusive) override;
    void sort_pairs(const Array& keys, const Array& values, std::int64_t count, int begin_bit, int end_bit) override;
    void sort_segments(const Array& keys, const Array& values, const Array& begins, const Array& ends,
                       std::int64_t count) override;
    std::int64_t encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                             const Array& run_lengths) override;
    void matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta,
                MatmulPrecision precision) override;
    void add(const Array& into, const Array& what) override;
};

}  // namespace weft::runtime
