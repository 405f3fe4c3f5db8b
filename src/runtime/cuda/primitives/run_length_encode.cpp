#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

OwnKernel runs_kernel_of(Scalar scalar) {
    const bool is_real = info(scalar).is_float();
    if (info(scalar).bytes() == 4) return {k_run_length_encode_ptx, is_real ? "weft_runs_f32" : "weft_runs_u32"};
    if (info(scalar).bytes() == 8) return {k_run_length_encode_ptx, is_real ? "weft_runs_f64" : "weft_runs_u64"};
    return {k_run_length_encode_ptx, is_real ? "weft_runs_real" : "weft_runs_whole"};
}

constexpr std::int64_t kMostLength = std::numeric_limits<std::int32_t>::max();

// The size of RunsPlan::found.
constexpr std::int64_t kFoundBytes = 4 * 8;

class RunEncoder {
public:
    RunEncoder(const Workplace& at, const Array& values, std::int64_t count, const Array& run_values,
               const Array& run_lengths, const Array* run_count)
        : at_(at),
          packed_(packed(slice(values, 0, 0, count, 1), {&run_values, &run_lengths, run_count})),
          found_(at.memory(kFoundBytes)) {
        plan_.values = static_cast<const char*>(packed_.view.data);
        plan_.count = count;
        plan_.tiles = quotient_up(count, devlib::kScanTile);
        plan_.bytes = values.dtype.size_bytes();
        plan_.run_values = static_cast<char*>(run_values.view.data);
        plan_.values_stride = run_values.view.strides[0];
        plan_.values_room = run_values.size();
        plan_.run_lengths = static_cast<char*>(run_lengths.view.data);
        plan_.lengths_stride = run_lengths.view.strides[0];
        plan_.lengths_room = run_lengths.size();
        plan_.found = static_cast<std::int64_t*>(found_.data());
        if (run_count) plan_.told = static_cast<std::int32_t*>(run_count->view.data);
        plan_.scalar = static_cast<std::int32_t>(values.dtype.scalar());
        plan_.in_pieces = is_aligned(plan_.values);
    }

    void encode() const { launch(plan_); }
    // Only finds how many runs there are, and whether one is too long.
    void count() const {
        devlib::RunsPlan plan = plan_;
        plan.values_room = plan.lengths_room = 0;
        launch(plan);
    }

    const void* found() const { return found_.data(); }

private:
    void launch(devlib::RunsPlan plan) const {
        plan.state = static_cast<std::uint64_t*>(at_.state(devlib::scan_state_bytes(1, plan.tiles, 16)));
        if (plan.count > kMostLength) static_cast<CudaStream&>(at_.stream).put_clear(plan.found, kFoundBytes);
        launch_own(runs_kernel_of(static_cast<Scalar>(plan.scalar)), at_.device, at_.stream,
                   static_cast<unsigned>(plan.tiles), devlib::kScanThreads, &plan);
    }
    static Array packed(const Array& values, std::initializer_list<const Array*> written) {
        const bool is_apart =
            std::ranges::none_of(written, [&](const Array* each) { return each && overlap(values, *each); });
        return is_apart ? contiguous(values) : clone(values);
    }

    const Workplace& at_;
    Array packed_;
    CudaMemory found_;
    devlib::RunsPlan plan_{};
};

// Throws UsageError if it does not fit.
void check_runs(const std::byte* bytes, std::int64_t values_room, std::int64_t lengths_room) {
    std::int64_t found[4];
    static_assert(sizeof found == kFoundBytes);
    std::memcpy(found, bytes, sizeof found);
    check_room_for_runs(values_room, found[0], "run_values");
    check_room_for_runs(lengths_room, found[0], "run_lengths");
    if (found[1] != 0) throw_long_run(found[2], found[3]);
}

}  // namespace

std::int64_t CudaPrimitives::encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                         const Array& run_lengths) {
    if (count == 0) return 0;
    const Workplace at(values);
    const RunEncoder encoder(at, values, count, run_values, run_lengths, nullptr);
    const auto checked_runs = [&] {
        std::byte bytes[kFoundBytes];
        static_cast<CudaStream&>(at.stream).read(bytes, encoder.found(), kFoundBytes);
        check_runs(bytes, run_values.size(), run_lengths.size());
        std::int64_t runs = 0;
        std::memcpy(&runs, bytes, sizeof runs);
        return runs;
    };
    // Nothing is written if the runs do not fit.
    const bool fit = count <= std::min({run_values.size(), run_lengths.size(), kMostLength});
    if (!fit) {
        encoder.count();
        checked_runs();
    }
    encoder.encode();
    return checked_runs();
}

void CudaPrimitives::encode_and_count_runs(const Array& values, std::int64_t count, const Array& run_values,
                                           const Array& run_lengths, const Array& run_count) {
    const Workplace at(values);
    CudaRecording* const recording = cuda_recording(at.stream);
    if (!recording || count == 0)
        return Primitives::encode_and_count_runs(values, count, run_values, run_lengths, run_count);
    const RunEncoder encoder(at, values, count, run_values, run_lengths, &run_count);
    encoder.encode();
    recording->add_check("check of runs", recording->leave_bytes(encoder.found(), kFoundBytes, at.stream),
                         [values_room = run_values.size(), lengths_room = run_lengths.size()](const std::byte* bytes) {
                             check_runs(bytes, values_room, lengths_room);
                         });
}

}  // namespace weft::runtime
