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

constexpr OwnKernel kSumLines[] = {{k_reduce_ptx, "weft_sum_lines_whole"}, {k_reduce_ptx, "weft_sum_lines_real"}};
constexpr OwnKernel kSumColumns[] = {{k_reduce_ptx, "weft_sum_columns_whole"}, {k_reduce_ptx, "weft_sum_columns_real"}};
constexpr OwnKernel kSumPairs[] = {{k_reduce_ptx, "weft_sum_pairs_whole"}, {k_reduce_ptx, "weft_sum_pairs_real"}};
constexpr OwnKernel kSumTotals[] = {{k_reduce_ptx, "weft_totals_whole"}, {k_reduce_ptx, "weft_totals_real"}};

// Sums at full width, on the device.
class Sums {
public:
    // `b` is null for plain sums; with products, the components of an element are summed too.
    Sums(const Array& a, const Array* b, int axis)
        : at_(a), scalar_(a.dtype.scalar()), is_real_(info(scalar_).is_float()), left_(contiguous(a)) {
        if (b) right_ = contiguous(*b);
        plan_.outer = plan_.count = 1;
        plan_.width = a.dtype.components();
        for (int i = 0; i < a.ndim; ++i)
            (axis < 0 || i == axis ? plan_.count : i < axis ? plan_.outer : plan_.width) *= a.view.shape[i];
        if (b) components_ = a.dtype.components();
        if (b && plan_.width == components_) {  // the axis is directly before the components: one contiguous axis
            plan_.count *= components_;
            plan_.width = components_ = 1;
        }
        plan_.a = static_cast<const char*>(left_.view.data);
        plan_.b = right_ ? static_cast<const char*>(right_->view.data) : nullptr;
        plan_.blocks = std::max<std::int64_t>(1, (plan_.count + devlib::kSumRows - 1) / devlib::kSumRows);
        plan_.bytes = info(scalar_).bytes();
        plan_.scalar = static_cast<std::int32_t>(scalar_);
        const std::int64_t sums = plan_.outer * plan_.blocks * plan_.width;
        if (sums == 0) return;
        partial_.emplace(at_.device, 8 * sums, /*zeroed=*/false, at_.stream);
        plan_.partial = partial_->data();
        if (plan_.width == 1)
            launch_own(kSumLines[is_real_], at_.device, at_.stream, sums * devlib::kSumLanes, plan_);
        else
            launch_own(kSumColumns[is_real_], at_.device, at_.stream, sums, plan_);
        if (plan_.blocks > 1)
            launch_own(kSumPairs[is_real_], at_.device, at_.stream, plan_.outer * plan_.width * kOwnThreads, plan_);
    }

    std::int64_t count() const { return plan_.outer * plan_.width / components_; }

    // Writes count() numbers of type `to`.
    void write(Scalar to, void* data) const {
        if (!partial_) return;
        const devlib::TotalsPlan totals{plan_.partial,
                                        static_cast<char*>(data),
                                        count(),
                                        plan_.width,
                                        plan_.blocks,
                                        components_,
                                        info(to).bytes(),
                                        plan_.scalar,
                                        static_cast<std::int32_t>(to)};
        launch_own(kSumTotals[is_real_], at_.device, at_.stream, count(), totals);
    }

    void write_into(const Array& to) const {
        const Array packed = to.is_contiguous() ? to : empty(to.dtype, to.shape(), *to.device);
        write(to.dtype.scalar(), packed.view.data);
        if (!to.is_contiguous()) copy(to, packed);
    }

    std::vector<Total> on_host() const {
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
    Workplace at_;
    Scalar scalar_;
    bool is_real_;
    Array left_;
    std::optional<Array> right_;
    std::int64_t components_ = 1;
    devlib::SumPlan plan_{};
    std::optional<CudaMemory> partial_;  // none if there is nothing to add
};

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
