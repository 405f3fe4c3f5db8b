// Operations on whole arrays of a CUDA device, by the runtime's own kernels (devlib/cuda), in the current stream of the
// thread. Sums and scans add in the CPU's order, so results are bitwise equal.
#pragma once

#include "runtime/primitives.h"

namespace weft::runtime {

class CudaPrimitives final : public Primitives {
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
    void encode_and_count_runs(const Array& values, std::int64_t count, const Array& run_values,
                               const Array& run_lengths, const Array& run_count) override;
    void matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta,
                MatmulPrecision precision) override;
    void add(const Array& into, const Array& what) override;
};

}  // namespace weft::runtime
