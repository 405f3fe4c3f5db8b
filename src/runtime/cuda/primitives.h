// Operations on whole arrays of a CUDA device. In this form the host does them: arrays are copied there, the CPU's
// operation runs, and what it wrote is copied back. Results are the CPU's, bit for bit; the time is that of the copies.
#pragma once

#include "runtime/cpu/primitives/primitives.h"

namespace weft::runtime {

class CudaPrimitives final : public Primitives {
public:
    std::vector<Total> sum(const Array& array, int axis) override;
    std::vector<Total> inner(const Array& a, const Array& b, int axis) override;
    void write_totals(const std::vector<Total>& totals, Scalar of, const Array& to) override;
    void scan(const Array& from, const Array& to, bool inclusive) override;
    void sort_pairs(const Array& keys, const Array& values, std::int64_t count) override;
    void sort_segments(const Array& keys, const Array& values, const std::vector<Segment>& segments) override;
    std::int64_t encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                             const Array& run_lengths) override;
    void matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta) override;
    void add(const Array& into, const Array& what) override;

private:
    CpuPrimitives cpu_;
};

}  // namespace weft::runtime
