// Executes plans of copies (runtime/copy_plan.h) on a CUDA device. The driver copies contiguous bytes, and kernels
// (devlib/cuda/copy.cpp) do everything else; bytes of the host are first made contiguous.
#include "runtime/cpu/copy.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/copy_plan.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/timing.h"
#include "runtime/cuda_kernels.h"
#include "runtime/pinned.h"

namespace weft::runtime {

using namespace cuda;

namespace {

// Whether these strides, outermost first, are those of contiguous elements.
bool is_line(const CopyPlan& plan, std::int64_t CopyPlan::Axis::* stride) {
    std::int64_t expected = plan.element;
    for (int i = plan.ndim; i-- > 0;) {
        if (plan.axes[i].count > 1 && plan.axes[i].*stride != expected) return false;
        expected *= plan.axes[i].count;
    }
    return true;
}

// Replaces one side of the plan by contiguous elements.
void make_line(CopyPlan& plan, std::int64_t CopyPlan::Axis::* stride) {
    std::int64_t next = plan.element;
    for (int i = plan.ndim; i-- > 0;) {
        plan.axes[i].*stride = next;
        next *= plan.axes[i].count;
    }
}

// The largest unit that divides elements, strides and addresses.
std::int64_t unit_of(const CopyPlan& plan) {
    auto all = static_cast<std::uint64_t>(plan.element) | reinterpret_cast<std::uintptr_t>(plan.to) |
               reinterpret_cast<std::uintptr_t>(plan.from);
    for (int i = 0; i < plan.ndim; ++i)
        all |= static_cast<std::uint64_t>(plan.axes[i].to) | static_cast<std::uint64_t>(plan.axes[i].from);
    return std::int64_t{1} << std::min(std::countr_zero(all), 3);
}

}  // namespace

// Both sides are the device's. If several elements of the destination share memory, the last one of the source wins, as
// on the host: one thread copies them in order.
void CudaDevice::run_plan(const CopyPlan& plan, Stream& stream) {
    if (is_line(plan, &CopyPlan::Axis::to) && is_line(plan, &CopyPlan::Axis::from))
        return static_cast<CudaStream&>(stream).put_line(plan.to, plan.from, plan.size_bytes());
    const std::int64_t unit = unit_of(plan);
    const devlib::StridedCopy copy{strided(plan), plan.element / unit};
    static constexpr const char* kNames[] = {"weft_copy_1", "weft_copy_2", "weft_copy_4", "weft_copy_8"};
    const OwnKernel kernel{k_copy_ptx, kNames[std::countr_zero(static_cast<std::uint64_t>(unit))]};
    launch_strided(kernel, *this, stream, plan, plan.size_bytes() / unit, copy);
}

bool CudaDevice::is_pinned_line(const CopyPlan& plan) {
    return is_line(plan, &CopyPlan::Axis::from) && is_pinned(reinterpret_cast<std::uintptr_t>(plan.from));
}

CopyPlan CudaDevice::kept_on_device(const CopyPlan& plan, CudaRecording& recording) {
    recording.refuse_filled(plan);
    const std::int64_t bytes = plan.size_bytes();
    std::unique_ptr<std::byte[]> line;
    if (!is_line(plan, &CopyPlan::Axis::from)) {
        line.reset(new std::byte[static_cast<std::size_t>(bytes)]);
        CopyPlan on_host = plan;
        on_host.sides = CopyPlan::Sides::inside;
        on_host.to = line.get();
        make_line(on_host, &CopyPlan::Axis::to);
        run_copy(on_host);
    }
    CopyPlan kept = plan;
    kept.sides = CopyPlan::Sides::inside;
    kept.overlapping = false;
    kept.from = recording.keep_bytes(line ? line.get() : plan.from, bytes);
    make_line(kept, &CopyPlan::Axis::from);
    return kept;
}

// Lines of pinned memory are filled by the driver; other memory by the host, when a launch of the graph has left the
// bytes in pinned memory.
void CudaDevice::record_to_host(const CopyPlan& plan, Stream& stream, CudaRecording& recording) {
    if (!RecordedCopies::are_on()) refuse_recording(*this, "copy()", "copy to the host after wp.capture_launch()");
    const std::int64_t bytes = plan.size_bytes();
    std::unique_ptr<CudaMemory> there;
    if (!is_line(plan, &CopyPlan::Axis::from)) {
        there = std::make_unique<CudaMemory>(*this, bytes, /*zeroed=*/false, stream);
        CopyPlan on_device = plan;
        on_device.sides = CopyPlan::Sides::inside;
        on_device.to = there->data();
        make_line(on_device, &CopyPlan::Axis::to);
        run_plan(on_device, stream);
    }
    const void* const line = there ? there->data() : plan.from;
    if (is_line(plan, &CopyPlan::Axis::to) && is_pinned(reinterpret_cast<std::uintptr_t>(plan.to))) {
        static_cast<CudaStream&>(stream).put_to_host(plan.to, line, bytes);
        recording.add_filled(plan, {});
    } else {
        const std::shared_ptr<LeftBytes> left = recording.leave_bytes(line, bytes, stream);
        CopyPlan on_host = plan;
        on_host.sides = CopyPlan::Sides::inside;
        on_host.from = left->data();
        make_line(on_host, &CopyPlan::Axis::from);
        recording.add_filled(plan, [left, on_host] {
            if (left->take()) run_copy(on_host);
        });
    }
    recording.describe("copy", {plan.to, plan.from}, [this, plan](Stream& again) {
        const RecordedCopies recorded;
        copy(plan, again);
    });
}

void CudaDevice::put_copy(const CopyPlan& plan, Stream& stream) {
    const std::int64_t bytes = plan.size_bytes();
    auto& queue = static_cast<CudaStream&>(stream);
    if (plan.sides == CopyPlan::Sides::inside) {
        if (!plan.overlapping) return run_plan(plan, stream);
        const CudaMemory between(*this, bytes, /*zeroed=*/false, stream);
        queue.put_line(between.data(), plan.from, bytes);
        return queue.put_line(plan.to, between.data(), bytes);
    }
    // A side that is not contiguous goes through a contiguous buffer: in the host's memory, or in the device's.
    const bool from_host_side = plan.sides == CopyPlan::Sides::from_host;
    const auto hosts = from_host_side ? &CopyPlan::Axis::from : &CopyPlan::Axis::to;
    const auto devices = from_host_side ? &CopyPlan::Axis::to : &CopyPlan::Axis::from;
    const bool host_is_line = is_line(plan, hosts), device_is_line = is_line(plan, devices);
    std::unique_ptr<std::byte[]> line;
    if (!host_is_line) line.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    std::unique_ptr<CudaMemory> there;
    if (!device_is_line) there = std::make_unique<CudaMemory>(*this, bytes, /*zeroed=*/false, stream);
    CopyPlan on_host = plan, on_device = plan;
    on_host.sides = on_device.sides = CopyPlan::Sides::inside;
    if (from_host_side) {
        if (line) {
            on_host.to = line.get();
            make_line(on_host, &CopyPlan::Axis::to);
            run_copy(on_host);
        }
        from_host(there ? there->data() : plan.to, line ? line.get() : plan.from, bytes, stream);
        // The driver has already read memory that is not pinned.
        if (!line && !Asynchronous::is_on() && !stream.recording() &&
            is_pinned(reinterpret_cast<std::uintptr_t>(plan.from)))
            stream.synchronize();
        if (!there) return;
        on_device.from = there->data();
        make_line(on_device, &CopyPlan::Axis::from);
        return run_plan(on_device, stream);
    }
    if (there) {
        on_device.to = there->data();
        make_line(on_device, &CopyPlan::Axis::to);
        run_plan(on_device, stream);
    }
    if (!line && Asynchronous::is_on() && !stream.recording() && is_pinned(reinterpret_cast<std::uintptr_t>(plan.to)))
        return queue.put_to_host(plan.to, there ? there->data() : plan.from, bytes);
    stream.synchronize();
    queue.read(line ? line.get() : plan.to, there ? there->data() : plan.from, bytes);
    if (!line) return;
    on_host.from = line.get();
    make_line(on_host, &CopyPlan::Axis::from);
    run_copy(on_host);
}

// The driver fills contiguous memory with a pattern of 1, 2 or 4 bytes; false if the element is no such pattern.
bool CudaDevice::set_line(const CopyPlan& plan, Stream& stream) {
    const auto* const element = static_cast<const std::byte*>(plan.from);
    const auto repeats = [&](std::int64_t bytes) {
        return plan.element % bytes == 0 && std::equal(element + bytes, element + plan.element, element);
    };
    const Inside inside(*this);
    const auto to = reinterpret_cast<CUdeviceptr>(plan.to);
    const auto bytes = static_cast<std::size_t>(plan.size_bytes());
    auto& queue = static_cast<CudaStream&>(stream);
    const bool is_pattern = repeats(1) || (repeats(2) && to % 2 == 0) || (repeats(4) && to % 4 == 0);
    if (!is_pattern) return false;
    const TimedWork timed(queue, kTimedFill, "memset");
    const CudaStream::Handle handle = queue.handle();
    unsigned pattern = 0;
    if (repeats(1)) {
        std::memcpy(&pattern, element, 1);
        check(driver().cuMemsetD8Async(to, static_cast<unsigned char>(pattern), bytes, handle), "cuMemsetD8Async");
    } else if (repeats(2) && to % 2 == 0) {
        std::memcpy(&pattern, element, 2);
        check(driver().cuMemsetD16Async(to, static_cast<unsigned short>(pattern), bytes / 2, handle),
              "cuMemsetD16Async");
    } else {
        std::memcpy(&pattern, element, 4);
        check(driver().cuMemsetD32Async(to, pattern, bytes / 4, handle), "cuMemsetD32Async");
    }
    return true;
}

void CudaDevice::put_fill(const CopyPlan& plan, Stream& stream) {
    const auto* const element = static_cast<const std::byte*>(plan.from);
    if (is_line(plan, &CopyPlan::Axis::to) && set_line(plan, stream)) return;
    const CudaMemory there(*this, plan.element, /*zeroed=*/false, stream);
    from_host(there.data(), element, plan.element, stream);
    CopyPlan inside = plan;
    inside.from = there.data();
    run_plan(inside, stream);
}

}  // namespace weft::runtime
