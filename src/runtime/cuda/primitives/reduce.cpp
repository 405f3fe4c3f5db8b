#include <algorithm>
#include <optional>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

// The kernels of formats, for plain sums and for products: numbers of 4 and of 8 bytes have their own.
struct Kernels {
    const char* sums;
    const char* products;
};
struct Format {
    Kernels lines, columns;
    std::int64_t together;  // numbers in a load of 16 bytes; 1 if they are loaded one by one
};
#define WEFT_FORMAT(sums, products, together)                  \
    {{"weft_sum_lines_" sums, "weft_sum_lines_" products},     \
     {"weft_sum_columns_" sums, "weft_sum_columns_" products}, \
     together}
constexpr Format kF32 = WEFT_FORMAT("f32", "f32_products", 4), kF64 = WEFT_FORMAT("f64", "f64_products", 2);
constexpr Format kW32 = WEFT_FORMAT("w32", "whole_products", 4), kW64 = WEFT_FORMAT("w64", "whole_products", 2);
constexpr Format kReal = WEFT_FORMAT("real", "real_products", 1), kWhole = WEFT_FORMAT("whole", "whole_products", 1);
#undef WEFT_FORMAT

const Format& format_of(Scalar scalar, bool has_products) {
    const bool is_real = info(scalar).is_float();
    const std::int64_t bytes = info(scalar).bytes();
    if (has_products && !is_real) return kWhole;
    if (bytes == 4) return is_real ? kF32 : kW32;
    if (bytes == 8) return is_real ? kF64 : kW64;
    return is_real ? kReal : kWhole;
}

// Sums at full width, on the device.
class Sums {
public:
    // `b` is null for plain sums; with products, the components of an element are summed too.
    Sums(const Array& a, const Array* b, int axis)
        : at_(a), scalar_(a.dtype.scalar()), is_real_(info(scalar_).is_float()), left_(contiguous(a)) {
        if (b) right_ = contiguous(*b);
        plan_.outer = plan_.count = plan_.components = 1;
        plan_.width = a.dtype.components();
        for (int i = 0; i < a.ndim; ++i)
            (axis < 0 || i == axis ? plan_.count : i < axis ? plan_.outer : plan_.width) *= a.view.shape[i];
        if (b) plan_.components = a.dtype.components();
        if (b && plan_.width == plan_.components) {  // the axis is directly before the components: one contiguous axis
            plan_.count *= plan_.components;
            plan_.width = plan_.components = 1;
        }
        plan_.a = static_cast<const char*>(left_.view.data);
        plan_.b = right_ ? static_cast<const char*>(right_->view.data) : nullptr;
        plan_.blocks = std::max<std::int64_t>(1, quotient_up(plan_.count, devlib::kSumRows));
        plan_.bytes = info(scalar_).bytes();
        plan_.scalar = static_cast<std::int32_t>(scalar_);
        plan_.sign_mask = info(scalar_).is_signed() ? -1 : 0;
    }

    std::int64_t count() const { return plan_.outer * plan_.width / plan_.components; }

    // Writes count() numbers of type `to`.
    void write(Scalar to, void* data) {
        if (count() == 0) return;
        plan_.to = static_cast<char*>(data);
        plan_.to_bytes = info(to).bytes();
        plan_.to_scalar = static_cast<std::int32_t>(to);
        if (plan_.width == 1)
            add_lines(format_of(scalar_, right_.has_value()));
        else
            add_columns(format_of(scalar_, right_.has_value()));
    }

    void write_into(const Array& to) {
        const Array packed = to.is_contiguous() ? to : empty(to.dtype, to.shape(), *to.device);
        write(to.dtype.scalar(), packed.view.data);
        if (!to.is_contiguous()) copy(to, packed);
    }

    std::vector<Total> on_host() {
        std::vector<Total> totals(static_cast<std::size_t>(count()));
        if (totals.empty()) return totals;
        const Scalar wide = is_real_ ? Scalar::f64 : info(scalar_).is_signed() ? Scalar::i64 : Scalar::u64;
        const CudaMemory results = at_.memory(8 * count());
        write(wide, results.data());
        std::vector<std::int64_t> bits(totals.size());
        static_cast<CudaStream&>(at_.stream).read(bits.data(), results.data(), results.size_bytes());
        for (std::size_t i = 0; i < totals.size(); ++i) {
            if (is_real_)
                totals[i].real = std::bit_cast<double>(bits[i]);
            else
                totals[i].whole = bits[i];
        }
        return totals;
    }

private:
    OwnKernel kernel(const char* module, const Kernels& of) const { return {module, right_ ? of.products : of.sums}; }

    void add_lines(const Format& format) {
        // A block of threads takes so many blocks of numbers: of one row, or of rows that have one each.
        const std::int64_t blocks = devlib::kSumThreads * format.together / devlib::kSumLanes;
        plan_.parts = quotient_up(plan_.blocks, blocks);
        plan_.in_pieces = format.together == 1 || (is_aligned(plan_.a) && is_aligned(plan_.b) &&
                                                   (plan_.outer == 1 || plan_.count % format.together == 0));
        if (plan_.parts > 1)
            plan_.state = static_cast<std::uint64_t*>(at_.state(devlib::sum_state_bytes(plan_.outer * plan_.parts)));
        const std::int64_t grid = plan_.blocks == 1 ? quotient_up(plan_.outer, blocks) : plan_.outer * plan_.parts;
        launch_own(kernel(k_reduce_ptx, format.lines), at_.device, at_.stream, static_cast<unsigned>(grid),
                   static_cast<unsigned>(devlib::kSumThreads), &plan_);
    }

    void add_columns(const Format& format) {
        const std::int64_t sums = plan_.outer * plan_.blocks * plan_.width;
        const bool has_parts = plan_.blocks > 1 || plan_.components > 1;
        std::optional<CudaMemory> partial;
        if (has_parts) partial.emplace(at_.device, 8 * sums, /*zeroed=*/false, at_.stream);
        plan_.partial = partial ? partial->data() : nullptr;
        launch_own(kernel(k_reduce_columns_ptx, format.columns), at_.device, at_.stream, sums, plan_);
        if (has_parts)
            launch_own({k_reduce_columns_ptx, is_real_ ? "weft_sum_blocks_real" : "weft_sum_blocks_whole"}, at_.device,
                       at_.stream, count() * kOwnThreads, plan_);
    }

    Workplace at_;
    Scalar scalar_;
    bool is_real_;
    Array left_;
    std::optional<Array> right_;
    devlib::SumPlan plan_{};
};
static_assert(kOwnThreads == devlib::kSumThreads);

}  // namespace

std::vector<Total> CudaPrimitives::sum(const Array& array, int axis) { return Sums(array, nullptr, axis).on_host(); }

std::vector<Total> CudaPrimitives::inner(const Array& a, const Array& b, int axis) {
    return Sums(a, &b, axis).on_host();
}

void CudaPrimitives::sum_into(const Array& array, int axis, const Array& to) {
    Sums(array, nullptr, axis).write_into(to);
}

void CudaPrimitives::inner_into(const Array& a, const Array& b, int axis, const Array& to) {
    Sums(a, &b, axis).write_into(to);
}

}  // namespace weft::runtime
