#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/cublas.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

devlib::MatrixView matrix_view(const Array& array) {
    const std::int64_t* const strides = array.view.strides;
    return {static_cast<char*>(array.view.data), array.ndim == 3 && array.view.shape[0] > 1 ? strides[0] : 0,
            strides[array.ndim - 2], strides[array.ndim - 1]};
}

// Whether both views have the same elements at the same addresses.
bool same_elements(const Array& a, const Array& b) {
    return a.view.data == b.view.data && std::ranges::equal(a.shape(), b.shape()) &&
           std::ranges::equal(a.strides(), b.strides());
}

// ---- kernels for tiles of several sizes ----

struct TileKernel {
    std::int64_t rows, columns;
    unsigned threads;
    OwnKernel vectors, any;
};

constexpr TileKernel kSingle[] = {
    {128, 128, 256, {k_matmul_f32_ptx, "weft_matmul_f32_128x128"}, {k_matmul_f32_ptx, "weft_matmul_f32_128x128_any"}},
    {64, 64, 128, {k_matmul_f32_ptx, "weft_matmul_f32_64x64"}, {k_matmul_f32_ptx, "weft_matmul_f32_64x64_any"}},
    {32, 32, 64, {k_matmul_f32_ptx, "weft_matmul_f32_32x32"}, {k_matmul_f32_ptx, "weft_matmul_f32_32x32_any"}},
};
constexpr TileKernel kDouble[] = {
    {128, 64, 256, {k_matmul_f64_ptx, "weft_matmul_f64_128x64"}, {k_matmul_f64_ptx, "weft_matmul_f64_128x64_any"}},
    {64, 64, 128, {k_matmul_f64_ptx, "weft_matmul_f64_64x64"}, {k_matmul_f64_ptx, "weft_matmul_f64_64x64_any"}},
    {32, 32, 64, {k_matmul_f64_ptx, "weft_matmul_f64_32x32"}, {k_matmul_f64_ptx, "weft_matmul_f64_32x32_any"}},
};

std::int64_t tiles_of(const devlib::MatmulPlan& plan, std::int64_t rows, std::int64_t columns) {
    return quotient_up(plan.rows, rows) * quotient_up(plan.columns, columns);
}

// Whether tiles of this size are not mostly empty and give each multiprocessor one.
bool fills_device(const Workplace& at, const devlib::MatmulPlan& plan, std::int64_t rows, std::int64_t columns) {
    return 2 * plan.rows > rows && 2 * plan.columns > columns &&
           tiles_of(plan, rows, columns) * plan.batches >= at.device.gpu()->sm_count;
}

// The largest tiles that do; else the smallest.
const TileKernel& choose_tiles(const Workplace& at, const TileKernel (&kernels)[3], const devlib::MatmulPlan& plan) {
    for (const TileKernel& kernel : kernels) {
        if (fills_device(at, plan, kernel.rows, kernel.columns)) return kernel;
    }
    return kernels[2];
}

// A block for each tile of each product, in grids of as many whole products as there can be blocks.
void launch_tiles(const Workplace& at, const OwnKernel& kernel, std::int64_t tiles, unsigned threads,
                  devlib::MatmulPlan plan) {
    const std::int64_t batches = plan.batches;
    const std::int64_t most = std::max<std::int64_t>(1, std::numeric_limits<std::int32_t>::max() / tiles);
    for (std::int64_t first = 0; first < batches; first += most) {
        plan.batches = std::min(most, batches - first);
        launch_own(kernel, at.device, at.stream, static_cast<unsigned>(tiles * plan.batches), threads, &plan);
        for (devlib::MatrixView* const view : {&plan.a, &plan.b, &plan.c, &plan.d})
            view->data += plan.batches * view->batch;
    }
}

// ---- access to operands ----

bool is_at_16_bytes(std::int64_t address_or_stride) { return address_or_stride % 16 == 0; }

// Precondition: `along` and `across` are the strides of the two axes, `count` the elements along the first.
bool has_vectors(const char* data, std::int64_t batch, std::int64_t along, std::int64_t across, std::int64_t count,
                 std::int64_t bytes) {
    return along == bytes && count * bytes % 16 == 0 && is_at_16_bytes(reinterpret_cast<std::intptr_t>(data)) &&
           is_at_16_bytes(batch) && is_at_16_bytes(across);
}

devlib::MatrixAccess access_to(const char* data, std::int64_t batch, std::int64_t outer, std::int64_t k,
                               std::int64_t outers, std::int64_t inner, std::int64_t bytes) {
    if (has_vectors(data, batch, outer, k, outers, bytes)) return devlib::kVectorsAlongOuter;
    if (has_vectors(data, batch, k, outer, inner, bytes)) return devlib::kVectorsAlongK;
    return std::abs(outer) < std::abs(k) ? devlib::kNumbersAlongOuter : devlib::kNumbersAlongK;
}

// Precondition: numbers of f32 or f64; `plan` has all but the accesses.
void multiply(const Workplace& at, devlib::MatmulPlan plan, Scalar scalar) {
    const std::int64_t bytes = info(scalar).bytes();
    const devlib::MatrixView &a = plan.a, &b = plan.b, &d = plan.d;
    plan.a_access = access_to(a.data, a.batch, a.row, a.column, plan.rows, plan.inner, bytes);
    plan.b_access = access_to(b.data, b.batch, b.column, b.row, plan.columns, plan.inner, bytes);
    plan.stores_vectors = has_vectors(d.data, d.batch, d.column, d.row, plan.columns, bytes);
    const auto is_vector = [](std::int32_t access) {
        return access == devlib::kVectorsAlongOuter || access == devlib::kVectorsAlongK;
    };
    const TileKernel& kernel = choose_tiles(at, scalar == Scalar::f64 ? kDouble : kSingle, plan);
    const OwnKernel& own = is_vector(plan.a_access) && is_vector(plan.b_access) ? kernel.vectors : kernel.any;
    launch_tiles(at, own, tiles_of(plan, kernel.rows, kernel.columns), kernel.threads, plan);
}

// ---- tensor cores ----

// For each layout of the operands: k, or the rows of the left and the columns of the right one (m, n), are contiguous.
struct TensorKernels {
    OwnKernel large[2][2], small[2][2];  // tiles of 128x128 and 64x64; [left][right]
};

#define WEFT_TENSOR_KERNELS(module, name)                                                             \
    {                                                                                                 \
        {{{module, "weft_matmul_" name "_128x128_kk"}, {module, "weft_matmul_" name "_128x128_kn"}},  \
         {{module, "weft_matmul_" name "_128x128_mk"}, {module, "weft_matmul_" name "_128x128_mn"}}}, \
        {                                                                                             \
            {{module, "weft_matmul_" name "_64x64_kk"}, {module, "weft_matmul_" name "_64x64_kn"}}, { \
                {module, "weft_matmul_" name "_64x64_mk"}, {module, "weft_matmul_" name "_64x64_mn"}  \
            }                                                                                         \
        }                                                                                             \
    }
constexpr TensorKernels kHalves = WEFT_TENSOR_KERNELS(k_matmul_f16_ptx, "f16");
constexpr TensorKernels kBrains = WEFT_TENSOR_KERNELS(k_matmul_bf16_ptx, "bf16");
constexpr TensorKernels kTf32 = WEFT_TENSOR_KERNELS(k_matmul_tf32_ptx, "tf32");
constexpr TensorKernels kTf32Twice = WEFT_TENSOR_KERNELS(k_matmul_tf32_ptx, "tf32x3");
#undef WEFT_TENSOR_KERNELS

const TensorKernels* tensor_kernels(const Workplace& at, Scalar scalar, MatmulPrecision precision) {
    constexpr int kAmpere = 80;
    if (precision == MatmulPrecision::exact || at.device.gpu()->arch < kAmpere) return nullptr;
    switch (scalar) {
        case Scalar::f16:
            return &kHalves;
        case Scalar::bf16:
            return &kBrains;
        case Scalar::f32:
            return precision == MatmulPrecision::tf32 ? &kTf32 : &kTf32Twice;
        default:
            return nullptr;
    }
}

// Whether lines of 16 bytes along the first axis begin at multiples of 16 bytes; `along` and `across` are strides.
bool has_aligned_lines(const devlib::MatrixView& view, std::int64_t along, std::int64_t across, std::int64_t bytes) {
    return along == bytes && is_at_16_bytes(reinterpret_cast<std::intptr_t>(view.data)) && is_at_16_bytes(view.batch) &&
           is_at_16_bytes(across);
}

// The array itself if its rows or columns are such lines, else a copy whose rows are.
Array with_aligned_lines(const Array& array) {
    const devlib::MatrixView view = matrix_view(array);
    const std::int64_t bytes = array.dtype.size_bytes();
    if (has_aligned_lines(view, view.column, view.row, bytes) || has_aligned_lines(view, view.row, view.column, bytes))
        return array;
    std::vector<std::int64_t> shape(array.shape().begin(), array.shape().end());
    shape.back() = quotient_up(shape.back() * bytes, 16) * 16 / bytes;
    Array copied = empty(array.dtype, shape, *array.device);
    copied.view.shape[copied.ndim - 1] = array.view.shape[array.ndim - 1];
    copy(copied, array);
    return copied;
}

// Precondition: `plan` has all but the operands and the accesses.
void multiply(const Workplace& at, const TensorKernels& kernels, devlib::MatmulPlan plan, const Array& a,
              const Array& b) {
    const std::int64_t bytes = a.dtype.size_bytes();
    const Array left = with_aligned_lines(a), right = with_aligned_lines(b);
    plan.a = matrix_view(left);
    plan.b = matrix_view(right);
    const bool along_rows = !has_aligned_lines(plan.a, plan.a.column, plan.a.row, bytes);
    const bool along_columns = has_aligned_lines(plan.b, plan.b.column, plan.b.row, bytes);
    const std::int64_t pair = 2 * bytes;
    plan.stores_vectors = plan.d.column == bytes && plan.columns % 2 == 0 && plan.d.row % pair == 0 &&
                          plan.d.batch % pair == 0 && reinterpret_cast<std::intptr_t>(plan.d.data) % pair == 0;
    const bool is_large = fills_device(at, plan, 128, 128);
    const std::int64_t side = is_large ? 128 : 64;
    launch_tiles(at, (is_large ? kernels.large : kernels.small)[along_rows][along_columns], tiles_of(plan, side, side),
                 is_large ? 256 : 128, plan);
}

// ---- small floats ----

devlib::MatrixConversion conversion(const Array& small, const Array& wide) {
    return {matrix_view(small),
            static_cast<float*>(wide.view.data),
            small.ndim == 3 ? small.view.shape[0] : 1,
            small.view.shape[small.ndim - 2],
            small.view.shape[small.ndim - 1],
            static_cast<std::int32_t>(small.dtype.scalar())};
}

Array empty_single(const Array& like) { return empty(like.dtype.with_scalar(Scalar::f32), like.shape(), *like.device); }

Array in_single_precision(const Workplace& at, const Array& small) {
    Array wide = empty_single(small);
    launch_own({k_matmul_small_ptx, "weft_widen_matrix"}, at.device, at.stream, small.size(), conversion(small, wide));
    return wide;
}

}  // namespace

void CudaPrimitives::matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta,
                            MatmulPrecision precision) {
    if (d.size() == 0) return;
    const Workplace at(d);
    const bool reads_c = beta != 0.0;
    const TensorKernels* const tensor = tensor_kernels(at, d.dtype.scalar(), precision);
    if (!tensor && info(d.dtype.scalar()).is_small_float()) {
        const Array wide_a = in_single_precision(at, a), wide_b = in_single_precision(at, b);
        const Array wide_d = reads_c ? in_single_precision(at, *c) : empty_single(d);
        matmul(wide_a, wide_b, reads_c ? &wide_d : nullptr, wide_d, alpha, beta, MatmulPrecision::exact);
        launch_own({k_matmul_small_ptx, "weft_narrow_matrix"}, at.device, at.stream, d.size(), conversion(d, wide_d));
        return;
    }
    const bool direct = !overlap(d, a) && !overlap(d, b) && !(reads_c && overlap(d, *c) && !same_elements(d, *c));
    const Array result = direct ? d : empty(d.dtype, d.shape(), *d.device);
    devlib::MatmulPlan plan{};
    plan.a = matrix_view(a);
    plan.b = matrix_view(b);
    if (reads_c) plan.c = matrix_view(*c);
    plan.d = matrix_view(result);
    plan.batches = d.ndim == 3 ? d.view.shape[0] : 1;
    plan.rows = d.view.shape[d.ndim - 2];
    plan.columns = d.view.shape[d.ndim - 1];
    plan.inner = a.view.shape[a.ndim - 1];
    plan.alpha = alpha;
    plan.beta = beta;
    if (const CublasProduct cublas(at, plan, d.dtype.scalar(), precision); cublas) {
        if (reads_c && !same_elements(result, *c)) copy(result, *c);
        cublas.run(at);
    } else if (tensor)
        multiply(at, *tensor, plan, a, b);
    else
        multiply(at, plan, d.dtype.scalar());
    if (!direct) copy(d, result);
}

}  // namespace weft::runtime
