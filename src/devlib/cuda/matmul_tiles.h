// The product of matrices by fused multiply-adds. A block of threads computes a tile of the result; a thread keeps
// kDown x kAcross sums of it in registers. Tiles of the operands pass through two buffers in shared memory, one of
// which is filled while the other is read.
//
// An element is alpha * s + beta * c. The sum s begins with 0 and is fma(a[i, k], b[k, j], s) for each k in ascending
// order, for every shape, tile and layout: the choice of a tile changes no bit.
#pragma once

#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

#define WEFT_GLOBAL __attribute__((address_space(1)))
#define WEFT_SHARED __attribute__((shared))
#define WEFT_INLINE [[clang::always_inline]]
// Threads of a block, and blocks of a multiprocessor for which there are registers: files with kernels like these are
// compiled as CUDA (cmake/cuda_kernels.cmake), which has the attribute.
#define WEFT_KERNEL(threads, blocks) __attribute__((global, launch_bounds(threads, blocks)))

template <typename Real>
struct Wide {
    static constexpr int kCount = 16 / sizeof(Real);
    using Vector = Real __attribute__((ext_vector_type(kCount)));
};

template <typename Real>
const WEFT_GLOBAL Real* global(const char* address) {
    return (const WEFT_GLOBAL Real*)reinterpret_cast<const Real*>(address);
}

// One operand as (outer, k): rows of the left one, columns of the right one.
struct Operand {
    const char* data;
    std::int64_t outer, k;  // strides in bytes
    std::int64_t outers;
    std::int32_t access;
};

// Brings tiles of an operand from global memory to shared memory, transposed to [k][outer]. A thread has kVectors
// vectors or kStaged numbers of a tile, each a fixed step from the one before.
//
// Elements beyond the operand's last k become `filler`: 0 for one operand and -0 for the other, whose product, -0,
// changes no sum. So do rows beyond the last, whose results are not stored.
template <typename Real, bool kOnlyVectors, int kOuter, int kDepth, int kThreads>
class TileLoader {
public:
    static constexpr int kWidth = Wide<Real>::kCount;
    // Of a row in shared memory: the padding keeps transposed stores without bank conflicts.
    static constexpr int kPitch = kOuter + kWidth;
    using Tile = Real[kDepth * kPitch];
    using Vector = typename Wide<Real>::Vector;

    WEFT_INLINE TileLoader(const Operand& from, std::int64_t first, Real filler)
        : access_(from.access), filler_(filler) {
        const bool along_outer = access_ == kVectorsAlongOuter || access_ == kNumbersAlongOuter;
        const bool has_vectors = kOnlyVectors || access_ == kVectorsAlongOuter || access_ == kVectorsAlongK;
        const int thread = static_cast<int>(block_thread());
        // vectors or numbers along the axis
        const int width = has_vectors ? kWidth : 1, along = (along_outer ? kOuter : kDepth) / width;
        const int outer = along_outer ? thread % along * width : thread / along;
        const int outer_step = along_outer ? 0 : kThreads / along;
        depth_ = along_outer ? thread / along : thread % along * width;
        depth_step_ = along_outer ? kThreads / along : 0;
        next_ = from.data + (first + outer) * from.outer + depth_ * from.k;
        step_ = outer_step * from.outer + depth_step_ * from.k;
        advance_ = kDepth * from.k;
        to_ = depth_ * kPitch + outer;
        to_step_ = depth_step_ * kPitch + outer_step;
        const std::int64_t rows = from.outers - first - outer;
        rows_ = 0;
#pragma unroll
        for (int i = 0; i < kStaged; ++i) rows_ |= (i * outer_step < rows ? 1u : 0u) << i;
    }

    // The next tile; `left` is the number of k from its first on.
    WEFT_INLINE void load(std::int64_t left) {
        const int depths = left < kDepth ? static_cast<int>(left) : kDepth;
        if (kOnlyVectors || access_ == kVectorsAlongOuter || access_ == kVectorsAlongK) {
#pragma unroll
            for (int i = 0; i < kVectors; ++i) {
                Vector vector = filler_;
                if ((rows_ >> i & 1) && depth_ + i * depth_step_ < depths)
                    vector = *reinterpret_cast<const WEFT_GLOBAL Vector*>(global<Real>(next_ + i * step_));
#pragma unroll
                for (int j = 0; j < kWidth; ++j) staged_[i * kWidth + j] = vector[j];
            }
        } else {
#pragma unroll
            for (int i = 0; i < kStaged; ++i) {
                staged_[i] = filler_;
                if ((rows_ >> i & 1) && depth_ + i * depth_step_ < depths)
                    staged_[i] = *global<Real>(next_ + i * step_);
            }
        }
        next_ += advance_;
    }

    WEFT_INLINE void store(Real* tile) const {
        Real* const to = tile + to_;
        if (access_ == kVectorsAlongOuter) {
#pragma unroll
            for (int i = 0; i < kVectors; ++i) {
                Vector vector;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) vector[j] = staged_[i * kWidth + j];
                *reinterpret_cast<Vector*>(to + i * to_step_) = vector;
            }
        } else if (kOnlyVectors || access_ == kVectorsAlongK) {
#pragma unroll
            for (int i = 0; i < kVectors; ++i)
#pragma unroll
                for (int j = 0; j < kWidth; ++j) to[i * to_step_ + j * kPitch] = staged_[i * kWidth + j];
        } else {
#pragma unroll
            for (int i = 0; i < kStaged; ++i) to[i * to_step_] = staged_[i];
        }
    }

private:
    static constexpr int kVectors = kOuter * kDepth / kWidth / kThreads;
    static constexpr int kStaged = kVectors * kWidth;
    static_assert(kVectors * kWidth * kThreads == kOuter * kDepth);
    static_assert(kThreads % kOuter == 0 || kOuter % kThreads == 0);

    const std::int32_t access_;
    const Real filler_;
    const char* next_;
    std::int64_t step_, advance_;
    int depth_, depth_step_, to_, to_step_;
    std::uint32_t rows_;  // a bit for each number: whether its row is one of the operand's
    Real staged_[kStaged];
};

// The tile of a block. Blocks that run at the same time share rows and columns: columns of up to kGroup tiles.
template <int kRows, int kColumns>
struct TilePlace {
    WEFT_INLINE explicit TilePlace(const MatmulPlan& plan) {
        constexpr std::uint32_t kGroup = 16;
        const auto down = static_cast<std::uint32_t>((plan.rows + kRows - 1) / kRows);
        const auto across = static_cast<std::uint32_t>((plan.columns + kColumns - 1) / kColumns);
        const auto block = static_cast<std::uint32_t>(block_index());
        batch = block / (down * across);
        const std::uint32_t at = block - batch * (down * across);
        const std::uint32_t group = at / (kGroup * across), inside = at - group * kGroup * across;
        const std::uint32_t beyond = down - group * kGroup, height = beyond < kGroup ? beyond : kGroup;
        const std::uint32_t column = inside / height, row = group * kGroup + (inside - column * height);
        first_row = std::int64_t{row} * kRows;
        first_column = std::int64_t{column} * kColumns;
    }
    std::uint32_t batch;
    std::int64_t first_row, first_column;
};

template <typename Real, bool kOnlyVectors, int kRows, int kColumns, int kDepth, int kDown, int kAcross>
struct Tiling {
    static constexpr int kThreads = kRows / kDown * (kColumns / kAcross);
    static constexpr int kWidth = Wide<Real>::kCount;
    using Left = TileLoader<Real, kOnlyVectors, kRows, kDepth, kThreads>;
    using Right = TileLoader<Real, kOnlyVectors, kColumns, kDepth, kThreads>;
    using Vector = typename Wide<Real>::Vector;

    // A warp is 4 threads high and 8 wide. The rows of a thread are in groups of kWidth, each group in a part of the
    // tile of its own, and so are its columns: a warp reads neighbouring vectors.
    static constexpr int kWarpsAcross = kColumns / kAcross / 8;
    static constexpr int kRowGroups = kDown / kWidth, kColumnGroups = kAcross / kWidth;
    static_assert(kColumns / kAcross % 8 == 0 && kRows / kDown % 4 == 0);

    // For each tile of each of plan.batches products a block.
    WEFT_INLINE static void multiply(const MatmulPlan& plan) {
        [[clang::loader_uninitialized]] alignas(16) static WEFT_SHARED typename Left::Tile left[2];
        [[clang::loader_uninitialized]] alignas(16) static WEFT_SHARED typename Right::Tile right[2];
        const TilePlace<kRows, kColumns> tile(plan);
        const int thread = static_cast<int>(block_thread()), warp = thread / 32, in_warp = thread % 32;
        const int row = (warp / kWarpsAcross * 4 + in_warp / 8) * kWidth;
        const int column = (warp % kWarpsAcross * 8 + in_warp % 8) * kWidth;
        Real sums[kDown][kAcross];
#pragma unroll
        for (int i = 0; i < kDown; ++i)
#pragma unroll
            for (int j = 0; j < kAcross; ++j) sums[i][j] = 0;
        if (plan.inner > 0) {
            Left loads_left(
                {plan.a.data + tile.batch * plan.a.batch, plan.a.row, plan.a.column, plan.rows, plan.a_access},
                tile.first_row, Real(0));
            Right loads_right(
                {plan.b.data + tile.batch * plan.b.batch, plan.b.column, plan.b.row, plan.columns, plan.b_access},
                tile.first_column, -Real(0));
            loads_left.load(plan.inner);
            loads_right.load(plan.inner);
            loads_left.store(left[0]);
            loads_right.store(right[0]);
            __syncthreads();
            int now = 0;
#pragma unroll 1
            for (std::int64_t left_over = plan.inner - kDepth;; left_over -= kDepth) {
                loads_left.load(left_over);
                loads_right.load(left_over);
                accumulate(left[now], right[now], row, column, sums);
                if (left_over <= 0) break;
                now ^= 1;
                loads_left.store(left[now]);
                loads_right.store(right[now]);
                __syncthreads();
            }
        }
        store(plan, tile.batch, tile.first_row + row, tile.first_column + column, sums);
    }

private:
    WEFT_INLINE static void accumulate(const Real* left, const Real* right, int row, int column,
                                       Real (&sums)[kDown][kAcross]) {
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            Real from_left[kDown], from_right[kAcross];
#pragma unroll
            for (int group = 0; group < kRowGroups; ++group) {
                const auto vector =
                    *reinterpret_cast<const Vector*>(left + k * Left::kPitch + group * (kRows / kRowGroups) + row);
#pragma unroll
                for (int i = 0; i < kWidth; ++i) from_left[group * kWidth + i] = vector[i];
            }
#pragma unroll
            for (int group = 0; group < kColumnGroups; ++group) {
                const auto vector = *reinterpret_cast<const Vector*>(right + k * Right::kPitch +
                                                                     group * (kColumns / kColumnGroups) + column);
#pragma unroll
                for (int i = 0; i < kWidth; ++i) from_right[group * kWidth + i] = vector[i];
            }
#pragma unroll
            for (int i = 0; i < kDown; ++i)
#pragma unroll
                for (int j = 0; j < kAcross; ++j)
                    sums[i][j] = __builtin_elementwise_fma(from_left[i], from_right[j], sums[i][j]);
        }
    }

    WEFT_INLINE static void store(const MatmulPlan& plan, std::int64_t batch, std::int64_t row, std::int64_t column,
                                  const Real (&sums)[kDown][kAcross]) {
        const auto alpha = static_cast<Real>(plan.alpha), beta = static_cast<Real>(plan.beta);
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
            const std::int64_t at_row = row + i / kWidth * (kRows / kRowGroups) + i % kWidth;
            if (at_row >= plan.rows) continue;
#pragma unroll
            for (int group = 0; group < kColumnGroups; ++group) {
                const std::int64_t at_column = column + group * (kColumns / kColumnGroups);
                char* const to = plan.d.data + batch * plan.d.batch + at_row * plan.d.row + at_column * plan.d.column;
                Vector results;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) {
                    Real result = alpha * sums[i][group * kWidth + j];
                    if (plan.beta != 0 && at_column + j < plan.columns) {
                        const char* const from =
                            plan.c.data + batch * plan.c.batch + at_row * plan.c.row + (at_column + j) * plan.c.column;
                        result += beta * *global<Real>(from);
                    }
                    results[j] = result;
                }
                if (plan.stores_vectors) {
                    if (at_column < plan.columns) *(WEFT_GLOBAL Vector*)reinterpret_cast<Vector*>(to) = results;
                    continue;
                }
#pragma unroll
                for (int j = 0; j < kWidth; ++j) {
                    if (at_column + j < plan.columns)
                        *(WEFT_GLOBAL Real*)reinterpret_cast<Real*>(to + j * plan.d.column) = results[j];
                }
            }
        }
    }
};

}  // namespace weft::devlib
