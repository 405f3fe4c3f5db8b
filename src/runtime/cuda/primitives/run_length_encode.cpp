#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kRunsCount{k_run_length_encode_ptx, "weft_runs_count"},
    kRunsWrite{k_run_length_encode_ptx, "weft_runs_write"};
constexpr OwnKernel kRunsLengths{k_run_length_encode_ptx, "weft_runs_lengths"},
    kRunsTell{k_run_length_encode_ptx, "weft_runs_tell"};

// The size of RunsPlan::found.
constexpr std::int64_t kFoundBytes = 4 * 8;

class RunEncoder {
public:
    RunEncoder(const Workplace& at, const Array& values, std::int64_t count, const Array& run_values,
               const Array& run_lengths, const Array* run_count)
        : at_(at), packed_(packed(slice(values, 0, 0, count, 1), {&run_values, &run_lengths, run_count})) {
        plan_.values = static_cast<const char*>(packed_.view.data);
        plan_.count = count;
        plan_.chunks = (count + devlib::kWarpItems - 1) / devlib::kWarpItems;
        plan_.bytes = values.dtype.size_bytes();
        plan_.scalar = static_cast<std::int32_t>(values.dtype.scalar());
        plan_.run_values = static_cast<char*>(run_values.view.data);
        plan_.values_stride = run_values.view.strides[0];
        plan_.values_room = run_values.size();
        plan_.run_lengths = static_cast<char*>(run_lengths.view.data);
        plan_.lengths_stride = run_lengths.view.strides[0];
        plan_.lengths_room = run_lengths.size();
        if (run_count) plan_.told = static_cast<std::int32_t*>(run_count->view.data);
        counts_ =
            std::make_unique<CudaMemory>(at_.device, 8 * plan_.chunks + kFoundBytes, /*zeroed=*/false, at_.stream);
        plan_.counts = static_cast<std::int64_t*>(counts_->data());
        plan_.found = plan_.counts + plan_.chunks;
        launch_own(kRunsCount, at_.device, at_.stream, plan_.chunks * devlib::kWarp, plan_);
        add_up_places(at_, plan_.counts, plan_.chunks);
    }

    const std::int64_t* found() const { return plan_.found; }

    // Of which there are at most so many.
    void write(std::int64_t most_runs) {
        starts_ = std::make_unique<CudaMemory>(at_.device, 8 * most_runs, /*zeroed=*/false, at_.stream);
        plan_.starts = static_cast<std::int64_t*>(starts_->data());
        launch_own(kRunsWrite, at_.device, at_.stream, plan_.chunks * devlib::kWarp, plan_);
        launch_own(kRunsLengths, at_.device, at_.stream, most_runs, plan_);
        if (plan_.told) launch_own(kRunsTell, at_.device, at_.stream, 1, 1, &plan_);
    }

private:
    static Array packed(const Array& values, std::initializer_list<const Array*> written) {
        const bool is_apart =
            std::ranges::none_of(written, [&](const Array* each) { return each && overlap(values, *each); });
        return is_apart ? contiguous(values) : clone(values);
    }

    const Workplace& at_;
    Array packed_;
    std::unique_ptr<CudaMemory> counts_, starts_;
    devlib::RunsPlan plan_{};
};

}  // namespace

std::int64_t CudaPrimitives::encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                         const Array& run_lengths) {
    if (count == 0) return 0;
    const Workplace at(values);
    RunEncoder encoder(at, values, count, run_values, run_lengths, nullptr);
    std::int64_t found[4];
    static_assert(sizeof found == kFoundBytes);
    static_cast<CudaStream&>(at.stream).read(found, encoder.found(), sizeof found);
    check_room_for_runs(run_values.size(), found[0], "run_values");
    check_room_for_runs(run_lengths.size(), found[0], "run_lengths");
    encoder.write(found[0]);
    static_cast<CudaStream&>(at.stream).read(found, encoder.found(), sizeof found);
    if (found[1] != 0) throw_long_run(found[2], found[3]);
    return found[0];
}

void CudaPrimitives::encode_and_count_runs(const Array& values, std::int64_t count, const Array& run_values,
                                           const Array& run_lengths, const Array& run_count) {
    const Workplace at(values);
    CudaRecording* const recording = cuda_recording(at.stream);
    if (!recording || count == 0)
        return Primitives::encode_and_count_runs(values, count, run_values, run_lengths, run_count);
    RunEncoder encoder(at, values, count, run_values, run_lengths, &run_count);
    encoder.write(count);
    recording->add_check("check of runs", recording->leave_bytes(encoder.found(), kFoundBytes, at.stream),
                         [values_room = run_values.size(), lengths_room = run_lengths.size()](const std::byte* bytes) {
                             std::int64_t found[4];
                             std::memcpy(found, bytes, sizeof found);
                             check_room_for_runs(values_room, found[0], "run_values");
                             check_room_for_runs(lengths_room, found[0], "run_lengths");
                             if (found[1] != 0) throw_long_run(found[2], found[3]);
                         });
}

}  // namespace weft::runtime
