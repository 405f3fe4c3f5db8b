// The product of matrices by tensor cores (mma.sync, sm_80 and later), with sums in single precision, in an order that
// the processor chooses. Factors are f16, bf16, or f32 rounded to TF32: once, or with a second number for the rest
// (three products, an error near that of single precision).
//
// Tiles of the operands are copied to shared memory asynchronously, two tiles ahead. Vectors of 16 bytes are swizzled
// there, so that neither the copies nor the loads of fragments have bank conflicts.
#pragma once

#include "devlib/cuda/matmul_tiles.h"

namespace weft::devlib {

inline constexpr int kTensorStages = 3;
inline constexpr int kTensorVectors = 4;  // of 16 bytes, along the summed axis of a tile

WEFT_INLINE inline std::uint32_t shared_address(const void* generic) {
    return static_cast<std::uint32_t>((unsigned long)(const __attribute__((address_space(3))) char*)generic);
}

// Copies 16 bytes, of which the first `count` are read and the others become zeros.
WEFT_INLINE inline void copy_async(std::uint32_t to, const char* from, int count) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
}

// Four matrices of 8 x 16 bytes; lanes 8 i to 8 i + 7 give the addresses of the rows of number i.
template <bool kTransposes>
WEFT_INLINE inline void load_matrices(std::uint32_t (&to)[4], std::uint32_t from) {
    if constexpr (kTransposes)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}

#define WEFT_MMA(instruction)                                                                                     \
    asm(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                        \
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])                                              \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), \
          "f"(sums[3]))

template <typename Number>
WEFT_INLINE inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                     std::uint32_t b1) {
    if constexpr (sizeof(Number) == 4)
        WEFT_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
    else if constexpr (__is_same(Number, _Float16))
        WEFT_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    else
        WEFT_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
}

WEFT_INLINE inline std::uint32_t to_tf32(float number) {
    std::uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(number));
    return bits;
}

// One operand's part of a block's tile: kOuter rows (or columns), kTensorVectors vectors along k.
template <typename Number, bool kIsRight, bool kAlongOuter, int kOuter, int kThreads>
class TensorOperand {
public:
    static constexpr int kPerVector = 16 / sizeof(Number);
    static constexpr int kDepth = kTensorVectors * kPerVector;
    static constexpr int kBytes = kOuter * kDepth * static_cast<int>(sizeof(Number));

    // `shared`: kTensorStages tiles. `first`: the first row of the block's tile. `within`: of the warp's.
    WEFT_INLINE TensorOperand(const MatrixView& view, std::int64_t outer_stride, std::int64_t k_stride,
                              std::int64_t outers, std::int64_t batch, std::int64_t first, int within,
                              const char* shared)
        : shared_(shared_address(shared)) {
        constexpr int kWidth = kAlongOuter ? kAcross : kTensorVectors;
        const int thread = static_cast<int>(block_thread()), line = thread / kWidth, vector = thread % kWidth;
        const int outer = kAlongOuter ? vector * kPerVector : line;
        k_ = kAlongOuter ? line : vector * kPerVector;
        from_ = view.data + batch * view.batch + (first + outer) * outer_stride + k_ * k_stride;
        step_ = kLineStep * (kAlongOuter ? k_stride : outer_stride);
        advance_ = kDepth * k_stride;
        const std::int64_t rest = outers - first - outer;
        rows_ = rest < 0 ? 0 : static_cast<int>(least(rest, kOuter));
        // The swizzles of a thread's copies are equal: their lines differ by a multiple of 8.
        to_ = shared_ + (kAlongOuter ? place_along_outer(line, vector) : place_along_k(line, vector));
        const int lane = thread % 32, row = lane % 8, matrix = lane / 8;
        if constexpr (!kAlongOuter)
            fragment_ = place_along_k(within + outer_half(matrix) * 8 + row, k_half(matrix));
        else if constexpr (sizeof(Number) == 2)
            fragment_ = place_along_outer(k_half(matrix) * kPerVector + row, within / kPerVector + outer_half(matrix));
        else
            fragment_ = place_along_outer(lane % 4, (within + lane / 4) / kPerVector) + lane / 4 % kPerVector * 4;
    }

    // Begins to copy the next tile, of which `left` k are the operand's.
    WEFT_INLINE void copy(int stage, std::int64_t left) {
        const int depths = left > kDepth ? kDepth : left < 0 ? 0 : static_cast<int>(left);
#pragma unroll
        for (int i = 0; i < kCopies; ++i) {
            // elements of the vector that are the operand's
            int count = kAlongOuter ? rows_ : depths - k_;
            count = count < 0 ? 0 : count < kPerVector ? count : kPerVector;
            const bool is_there = kAlongOuter ? k_ + i * kLineStep < depths : i * kLineStep < rows_;
            copy_async(to_ + stage * kBytes + i * kLineStep * kLineBytes, from_ + i * step_,
                       is_there ? count * static_cast<int>(sizeof(Number)) : 0);
        }
        from_ += advance_;
    }

    // The fragment of 16 rows, from the warp's row 16 i on, and 32 bytes along k from vector `vector` on, in four parts
    // of 8 rows and 16 bytes. Of the right operand those of the same rows are neighbours, as mma reads them: two
    // fragments.
    WEFT_INLINE void load(std::uint32_t (&to)[4], int stage, int i, int vector) const {
        const std::uint32_t tile = shared_ + stage * kBytes;
        if constexpr (!kAlongOuter) {
            load_matrices<false>(to, tile + (fragment_ ^ vector * 16) + i * 16 * kLineBytes);
        } else if constexpr (sizeof(Number) == 2) {
            load_matrices<true>(to, tile + (fragment_ ^ i * 32) + vector * kPerVector * kLineBytes);
        } else {
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const std::uint32_t place = tile + (fragment_ ^ (i * 64 + outer_half(part) * 32)) +
                                            (vector + k_half(part)) * kPerVector * kLineBytes;
                asm volatile("ld.shared.b32 %0, [%1];" : "=r"(to[part]) : "r"(place) : "memory");
            }
        }
    }

private:
    static constexpr int kAcross = kOuter / kPerVector;  // vectors along the rows
    static constexpr int kLineBytes = (kAlongOuter ? kAcross : kTensorVectors) * 16;
    static constexpr int kLineStep = kThreads * 16 / kLineBytes;
    static constexpr int kCopies = kOuter * kTensorVectors / kThreads;
    static_assert(kCopies * kThreads == kOuter * kTensorVectors && kLineStep % 8 == 0);

    WEFT_INLINE static int outer_half(int part) { return kIsRight ? part / 2 : part % 2; }
    WEFT_INLINE static int k_half(int part) { return kIsRight ? part % 2 : part / 2; }
    // [outer][vector along k]: two lines of 64 bytes fill the banks.
    WEFT_INLINE static std::uint32_t place_along_k(int outer, int vector) {
        return (outer * kTensorVectors + (vector ^ (outer >> 1 & 3))) * 16;
    }
    // [k][vector along the rows]: transposed loads read eight k at once; loads of f32 four k, and two vectors of each.
    WEFT_INLINE static std::uint32_t place_along_outer(int k, int vector) {
        return (k * kAcross + (vector ^ (sizeof(Number) == 2 ? k & 7 : (k & 3) * 2))) * 16;
    }

    const std::uint32_t shared_;
    std::uint32_t to_, fragment_;
    const char* from_;
    std::int64_t step_, advance_;
    int k_, rows_;
};

// A warp computes 16 kDown x 16 kAcross elements of the block's tile.
template <typename Number, bool kHasRest, bool kLeftAlongOuter, bool kRightAlongOuter, int kRows, int kColumns,
          int kDown, int kAcross>
struct TensorTiling {
    static constexpr int kWarpsAcross = kColumns / (16 * kAcross);
    static constexpr int kThreads = kRows / (16 * kDown) * kWarpsAcross * 32;
    using Left = TensorOperand<Number, false, kLeftAlongOuter, kRows, kThreads>;
    using Right = TensorOperand<Number, true, kRightAlongOuter, kColumns, kThreads>;
    static constexpr int kDepth = Left::kDepth;

    WEFT_INLINE static void multiply(const MatmulPlan& plan) {
        [[clang::loader_uninitialized]] alignas(128) static WEFT_SHARED char left_tiles[kTensorStages * Left::kBytes];
        [[clang::loader_uninitialized]] alignas(128) static WEFT_SHARED char right_tiles[kTensorStages * Right::kBytes];
        const TilePlace<kRows, kColumns> tile(plan);
        const int warp = static_cast<int>(block_thread()) / 32;
        const int row = warp / kWarpsAcross * 16 * kDown, column = warp % kWarpsAcross * 16 * kAcross;
        float sums[kDown][2 * kAcross][4];
#pragma unroll
        for (int i = 0; i < kDown; ++i)
#pragma unroll
            for (int j = 0; j < 2 * kAcross; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) sums[i][j][k] = 0;
        Left left(plan.a, plan.a.row, plan.a.column, plan.rows, tile.batch, tile.first_row, row, left_tiles);
        Right right(plan.b, plan.b.column, plan.b.row, plan.columns, tile.batch, tile.first_column, column,
                    right_tiles);
        const auto begin = [&](int stage, std::int64_t left_over) {
            left.copy(stage, left_over);
            right.copy(stage, left_over);
            asm volatile("cp.async.commit_group;" ::: "memory");
        };
#pragma unroll
        for (int i = 0; i < kTensorStages - 1; ++i) begin(i, plan.inner - i * kDepth);
        int stage = 0;
#pragma unroll 1
        for (std::int64_t left_over = plan.inner; left_over > 0; left_over -= kDepth) {
            asm volatile("cp.async.wait_group %0;" ::"n"(kTensorStages - 2) : "memory");
            __syncthreads();
            begin(stage == 0 ? kTensorStages - 1 : stage - 1, left_over - (kTensorStages - 1) * kDepth);
            accumulate(left, right, stage, sums);
            stage = stage == kTensorStages - 1 ? 0 : stage + 1;
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        store(plan, tile.batch, tile.first_row + row, tile.first_column + column, sums);
    }

private:
    using Fragment = std::uint32_t[4];

    // Rounds to TF32, of which the processor reads 19 bits, and gives the rest. With a rest, NaN stays NaN there.
    WEFT_INLINE static void split(Fragment& fragment, Fragment& rest) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float number = __builtin_bit_cast(float, fragment[i]);
            if constexpr (kHasRest) {
                fragment[i] = (fragment[i] + 0x1000) & 0xffffe000;
                rest[i] = __builtin_bit_cast(std::uint32_t, number - __builtin_bit_cast(float, fragment[i]));
            } else {
                fragment[i] = to_tf32(number);
            }
        }
    }

    WEFT_INLINE static void accumulate(const Left& left, const Right& right, int stage,
                                       float (&sums)[kDown][2 * kAcross][4]) {
#pragma unroll
        for (int vector = 0; vector < kTensorVectors; vector += 2) {
            Fragment a[kDown], b[kAcross], a_rest[kDown], b_rest[kAcross];
#pragma unroll
            for (int i = 0; i < kDown; ++i) {
                left.load(a[i], stage, i, vector);
                if constexpr (sizeof(Number) == 4) split(a[i], a_rest[i]);
            }
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                right.load(b[j], stage, j, vector);
                if constexpr (sizeof(Number) == 4) split(b[j], b_rest[j]);
            }
#pragma unroll
            for (int i = 0; i < kDown; ++i)
#pragma unroll
                for (int j = 0; j < 2 * kAcross; ++j) {
                    const int at = j / 2, half = j % 2 * 2;
                    if constexpr (kHasRest) {
                        multiply_add<Number>(sums[i][j], a_rest[i], b[at][half], b[at][half + 1]);
                        multiply_add<Number>(sums[i][j], a[i], b_rest[at][half], b_rest[at][half + 1]);
                    }
                    multiply_add<Number>(sums[i][j], a[i], b[at][half], b[at][half + 1]);
                }
        }
    }

    WEFT_INLINE static void store(const MatmulPlan& plan, std::int64_t batch, std::int64_t row, std::int64_t column,
                                  const float (&sums)[kDown][2 * kAcross][4]) {
        using Pair = Number __attribute__((ext_vector_type(2)));
        const auto alpha = static_cast<float>(plan.alpha), beta = static_cast<float>(plan.beta);
        const int lane = static_cast<int>(block_thread()) % 32;
#pragma unroll
        for (int i = 0; i < 2 * kDown; ++i) {
            const std::int64_t at_row = row + i * 8 + lane / 4;
            if (at_row >= plan.rows) continue;
            const char* const from = plan.c.data + batch * plan.c.batch + at_row * plan.c.row;
            char* const to = plan.d.data + batch * plan.d.batch + at_row * plan.d.row;
#pragma unroll
            for (int j = 0; j < 2 * kAcross; ++j) {
                const std::int64_t at_column = column + j * 8 + lane % 4 * 2;
                Pair results;
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    float result = alpha * sums[i / 2][j][i % 2 * 2 + k];
                    if (plan.beta != 0 && at_column + k < plan.columns)
                        result += beta * static_cast<float>(*global<Number>(from + (at_column + k) * plan.c.column));
                    results[k] = static_cast<Number>(result);
                }
                if (plan.stores_vectors) {
                    if (at_column < plan.columns)
                        *(WEFT_GLOBAL Pair*)reinterpret_cast<Pair*>(to + at_column * plan.d.column) = results;
                    continue;
                }
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    if (at_column + k < plan.columns)
                        *(WEFT_GLOBAL Number*)reinterpret_cast<Number*>(to + (at_column + k) * plan.d.column) =
                            results[k];
                }
            }
        }
    }
};

}  // namespace weft::devlib
