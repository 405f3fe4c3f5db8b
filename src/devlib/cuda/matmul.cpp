// d = alpha * (a @ b) + beta * c, in square tiles that a block of threads keeps in shared memory. Floats of 8 and 16
// bits are multiplied in single precision and rounded once.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename Real>
void multiply(const MatmulPlan& plan) {
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Real left[kTile][kTile + 1];
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Real right[kTile][kTile + 1];
    const auto scalar = static_cast<Scalar>(plan.scalar);
    const std::int64_t down = block_thread() / kTile, across = block_thread() % kTile;
    const std::int64_t tiles_down = (plan.rows + kTile - 1) / kTile, tiles_across = (plan.columns + kTile - 1) / kTile;
    const std::int64_t tiles = tiles_down * tiles_across;
    for (std::int64_t at = block_index(); at < plan.batches * tiles; at += blocks()) {
        const std::int64_t batch = at / tiles, tile = at - batch * tiles;
        const std::int64_t row = tile / tiles_across * kTile + down, column = tile % tiles_across * kTile + across;
        const auto load = [&](const MatrixView& from, std::int64_t i, std::int64_t j) {
            return load_number<Real>(scalar, from.data + batch * from.batch + i * from.row + j * from.column);
        };
        Real sum = 0;
        for (std::int64_t first = 0; first < plan.inner; first += kTile) {
            const bool has_left = row < plan.rows && first + across < plan.inner;
            const bool has_right = first + down < plan.inner && column < plan.columns;
            left[down][across] = has_left ? load(plan.a, row, first + across) : Real(0);
            right[down][across] = has_right ? load(plan.b, first + down, column) : Real(0);
            __syncthreads();
            for (int i = 0; i < kTile; ++i) sum = __builtin_elementwise_fma(left[down][i], right[i][across], sum);
            __syncthreads();
        }
        if (row >= plan.rows || column >= plan.columns) continue;
        Real result = static_cast<Real>(plan.alpha) * sum;
        if (plan.beta != 0) result += static_cast<Real>(plan.beta) * load(plan.c, row, column);
        store_number(static_cast<double>(result), scalar, scalar,
                     plan.d.data + batch * plan.d.batch + row * plan.d.row + column * plan.d.column);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_matmul_f32(MatmulPlan plan) { multiply<float>(plan); }
[[clang::device_kernel]] void weft_matmul_f64(MatmulPlan plan) { multiply<double>(plan); }

}  // extern "C"

}  // namespace weft::devlib
