#include "runtime/array_copies.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/copy_plan.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::runtime {

Array contiguous(const Array& array) { return array.is_contiguous() ? array : clone(array); }

Array clone(const Array& array) { return clone(array, *array.device); }

Array clone(const Array& array, Device& device) {
    Array result = empty(array.dtype, array.shape(), device);
    copy(result, array);
    return result;
}

namespace {

bool same_view(const Array& a, const Array& b) {
    return a.view.data == b.view.data && std::equal(a.strides().begin(), a.strides().end(), b.strides().begin());
}

// Forgets the references of overwritten elements, in memory that cannot be searched for them.
void forget_overwritten(const Array& array) {
    if (array.device->is_host_memory || !array.buffer || !array.is_contiguous()) return;
    const auto [low, high] = array.extent();
    const auto* const begin = static_cast<const std::byte*>(array.buffer->data);
    array.buffer->references.forget(low - begin, high - begin, *array.buffer);
}

// The device that executes a copy: the one whose memory the host cannot access, if any.
Device& copier(Device& to, Device& from) { return to.is_host_memory ? from : to; }

}  // namespace

namespace {

// Copies between two devices other than the host, through contiguous arrays if there are gaps.
bool copy_between(const Array& destination, const Array& source) {
    const auto copy_line = [](const Array& to, const Array& from) {
        return to.device->copy_from(to.view.data, *from.device, from.view.data, from.size_bytes(),
                                    current_stream(*to.device));
    };
    const Array from = contiguous(source);
    if (destination.is_contiguous()) return copy_line(destination, from);
    const Array line = empty(destination.dtype, destination.shape(), *destination.device);
    if (!copy_line(line, from)) return false;
    transfer(destination, line);
    return true;
}

}  // namespace

void transfer(const Array& destination, const Array& source) {
    if (destination.size() == 0) return;
    require_writable(destination, "copy()");
    const bool same_device = destination.device == source.device;
    if (!same_device && !destination.device->is_host_memory && !source.device->is_host_memory) {
        if (!copy_between(destination, source)) transfer(destination, clone(source, host_device()));
        return;
    }
    CopyPlan plan = plan_copy(destination, source);
    if (overlap(destination, source)) {
        if (!destination.is_contiguous() || !source.is_contiguous()) {
            transfer(destination, clone(source));
            return;
        }
        plan = plan_line(plan.to, plan.from, source.size_bytes());
        plan.overlapping = true;
    }
    Device& device = copier(*destination.device, *source.device);
    if (!same_device) plan.sides = &device == source.device ? CopyPlan::Sides::to_host : CopyPlan::Sides::from_host;
    device.copy(plan, current_stream(device));
}

void refuse_lost_copy(Device& to, Device& from) {
    if (&to == &from) return;
    const Device& works = copier(to, from);
    const Device& other = &works == &to ? from : to;
    const Recording* const recording = current_recording(other);
    if (!recording || recording == current_recording(works)) return;
    throw UsageError("copy()", "a graph is being captured on '" + other.alias + "', and a copy from '" + from.alias +
                                   "' to '" + to.alias + "' is work of '" + works.alias +
                                   "', which the graph would not do. help: copy before the capture or after "
                                   "wp.capture_launch()");
}

void copy(const Array& destination, const Array& source) {
    if (destination.dtype.size_bytes() != source.dtype.size_bytes() || destination.ndim != source.ndim ||
        !std::equal(destination.shape().begin(), destination.shape().end(), source.shape().begin())) {
        throw UsageError("copy()",
                         "source and destination must have the same shape and dtype: the source is " +
                             source.dtype.python_name() + " " + shape_text(source.shape()) + ", the destination " +
                             destination.dtype.python_name() + " " + shape_text(destination.shape()),
                         ErrorCategory::value);
    }
    if (destination.size() == 0 || same_view(destination, source)) return;
    transfer(destination, source);
    forget_overwritten(destination);
    // Arrays that the copied structs refer to live as long as the copies.
    if (source.buffer && destination.buffer) {
        destination.buffer->references.add_all(source.buffer->references, *destination.buffer);
    }
}

void fill(const Array& array, const void* element) {
    if (array.size() == 0) return;
    require_writable(array, "fill_()");
    array.device->fill(plan_fill(array, element), current_stream(*array.device));
    forget_overwritten(array);
}

void zero(const Array& array) {
    if (array.size() == 0) return;
    require_writable(array, "zero_()");
    if (!array.is_contiguous()) {
        const std::vector<char> element(static_cast<std::size_t>(array.dtype.size_bytes()), 0);
        return fill(array, element.data());
    }
    array.device->clear(array.view.data, array.size_bytes(), current_stream(*array.device));
    forget_overwritten(array);
}

}  // namespace weft::runtime
