#include <algorithm>
#include <array>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/blas.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

// The least multiplications of a block that another thread computes: some tens of microseconds.
constexpr double kBlockWork = 1 << 20;
// Blocks are cut at multiples of this, of which the height and width of BLIS's tiles are divisors.
constexpr std::int64_t kCut = 48;

// One matrix: address, and strides in elements.
struct Matrix {
    char* data;
    std::int64_t rows, columns;
    std::int64_t row_stride, column_stride;

    char* at(std::int64_t row, std::int64_t column, std::int64_t bytes) const {
        return data + (row * row_stride + column * column_stride) * bytes;
    }
};

// Number `index` of a batch; an array of two dimensions is a batch of one.
Matrix matrix_of(const Array& array, std::int64_t index) {
    std::int64_t bytes = array.dtype.size_bytes();
    int row = array.ndim - 2, column = array.ndim - 1;
    Matrix matrix{static_cast<char*>(array.view.data), array.view.shape[row], array.view.shape[column],
                  array.view.strides[row] / bytes, array.view.strides[column] / bytes};
    if (array.ndim == 3) matrix.data += index * array.view.strides[0];
    // An axis of one element gets a plausible stride: BLIS reads it, though it is not used.
    if (matrix.columns == 1) matrix.column_stride = matrix.row_stride == 1 ? std::max<std::int64_t>(1, matrix.rows) : 1;
    if (matrix.rows == 1) matrix.row_stride = std::max<std::int64_t>(1, matrix.columns * matrix.column_stride);
    return matrix;
}

// Whether rows and columns do not overlap, ascend, and have strides of whole elements: the layouts that BLIS supports.
bool is_regular(const Array& array) {
    std::int64_t bytes = array.dtype.size_bytes();
    for (int i = array.ndim - 2; i < array.ndim; ++i) {
        if (array.view.strides[i] % bytes != 0) return false;
    }
    Matrix m = matrix_of(array, 0);
    if (m.row_stride < 1 || m.column_stride < 1) return false;
    return m.row_stride >= m.columns * m.column_stride || m.column_stride >= m.rows * m.row_stride;
}

Array regular(const Array& array) { return is_regular(array) ? array : clone(array); }

struct Problem {
    Scalar scalar;
    double alpha, beta;
};

void multiply(const Problem& problem, const Matrix& a, const Matrix& b, const Matrix& c) {
    blas::gemm(problem.scalar, c.rows, c.columns, a.columns, problem.alpha, a.data, a.row_stride, a.column_stride,
               b.data, b.row_stride, b.column_stride, problem.beta, c.data, c.row_stride, c.column_stride);
}

// One product, its result cut into a grid of blocks: the longer side is halved until there is a block for each thread.
void multiply_in_blocks(const Problem& problem, const Matrix& a, const Matrix& b, const Matrix& c) {
    double work = static_cast<double>(c.rows) * static_cast<double>(c.columns) * static_cast<double>(a.columns);
    auto most = static_cast<std::int64_t>(std::min(work / kBlockWork, static_cast<double>(cpu_threads())));
    std::int64_t down = 1, across = 1;
    while (down * across < most) {
        std::int64_t height = c.rows / down, width = c.columns / across;
        if (std::max(height, width) < 2 * kCut) break;
        (height > width ? down : across) *= 2;
    }
    if (down * across == 1) return multiply(problem, a, b, c);
    auto cut = [](std::int64_t size, std::int64_t part, std::int64_t parts) {
        std::int64_t at = size * part / parts;
        return part == parts ? size : at / kCut * kCut;
    };
    std::int64_t bytes = info(problem.scalar).bytes();
    for_each_block(down * across, 1 << 20, [&](std::int64_t block) {
        std::int64_t top = cut(c.rows, block / across, down), bottom = cut(c.rows, block / across + 1, down);
        std::int64_t left = cut(c.columns, block % across, across), right = cut(c.columns, block % across + 1, across);
        if (top == bottom || left == right) return;
        Matrix rows{a.at(top, 0, bytes), bottom - top, a.columns, a.row_stride, a.column_stride};
        Matrix columns{b.at(0, left, bytes), b.rows, right - left, b.row_stride, b.column_stride};
        Matrix result{c.at(top, left, bytes), bottom - top, right - left, c.row_stride, c.column_stride};
        multiply(problem, rows, columns, result);
    });
}

Array in_single_precision(const Array& array) {
    Array packed = contiguous(array);
    Array wide = empty(array.dtype.with_scalar(Scalar::f32), array.shape(), *array.device);
    auto* to = static_cast<float*>(wide.view.data);
    visit_scalar(array.dtype.scalar(), [&](auto number) {
        using T = decltype(number);
        if constexpr (kIsReal<T>) {
            auto* from = static_cast<const T*>(packed.view.data);
            constexpr std::int64_t kRun = 1 << 12;
            for_each_block((wide.size() + kRun - 1) / kRun, kRun, [&](std::int64_t run) {
                std::int64_t end = std::min(wide.size(), (run + 1) * kRun);
                for (std::int64_t i = run * kRun; i < end; ++i) to[i] = static_cast<float>(from[i]);
            });
        }
    });
    return wide;
}

void round_into(const Array& wide, const Array& to) {
    Array packed = to.is_contiguous() ? to : empty(to.dtype, to.shape(), *to.device);
    Scalar scalar = to.dtype.scalar();
    auto* from = static_cast<const float*>(wide.view.data);
    auto* bits = static_cast<std::byte*>(packed.view.data);
    const int size = info(scalar).bytes();
    constexpr std::int64_t kRun = 1 << 10;
    for_each_block((wide.size() + kRun - 1) / kRun, 8 * kRun, [&](std::int64_t run) {
        std::int64_t end = std::min(wide.size(), (run + 1) * kRun);
        for (std::int64_t i = run * kRun; i < end; ++i) write_scalar(scalar, Number::real(from[i]), bits + i * size);
    });
    if (!to.is_contiguous()) copy(to, packed);
}

}  // namespace

void CpuPrimitives::matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta,
                           MatmulPrecision precision) {
    const CpuDevice::Access access(*a.device);
    if (d.size() == 0) return;
    Scalar scalar = d.dtype.scalar();
    if (info(scalar).is_small_float()) {
        Array wide_a = in_single_precision(a), wide_b = in_single_precision(b);
        Array wide_d = beta != 0.0 ? in_single_precision(*c) : empty(wide_a.dtype, d.shape(), *d.device);
        matmul(wide_a, wide_b, beta != 0.0 ? &wide_d : nullptr, wide_d, alpha, beta, precision);
        round_into(wide_d, d);
        return;
    }
    Array left = regular(a), right = regular(b);
    bool direct = is_regular(d) && !overlap(d, left) && !overlap(d, right);
    Array result = direct ? d : empty(d.dtype, d.shape(), *d.device);
    if (beta != 0.0) copy(result, *c);
    Problem problem{scalar, alpha, beta};
    std::int64_t batch = d.ndim == 3 ? d.view.shape[0] : 1;
    auto one = [&](std::int64_t i) {
        return std::array{matrix_of(left, i), matrix_of(right, i), matrix_of(result, i)};
    };
    if (batch >= cpu_threads()) {
        Matrix shape = matrix_of(left, 0);
        for_each_block(batch, shape.rows * shape.columns * matrix_of(right, 0).columns / 8, [&](std::int64_t i) {
            auto [x, y, z] = one(i);
            multiply(problem, x, y, z);
        });
    } else {
        for (std::int64_t i = 0; i < batch; ++i) {
            auto [x, y, z] = one(i);
            multiply_in_blocks(problem, x, y, z);
        }
    }
    if (!direct) copy(d, result);
}

}  // namespace weft::runtime
