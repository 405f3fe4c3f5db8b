#include "runtime/bytes.h"

#include "runtime/copy_plan.h"
#include "runtime/recording.h"

namespace weft::runtime {

void copy_bytes(Device& device, void* to, const void* from, std::int64_t size_bytes) {
    if (size_bytes > 0) device.copy(plan_line(to, from, size_bytes), current_stream(device));
}

Array on_host(const Array& array) { return array.device->is_host_memory ? array : clone(array, host_device()); }

HostWrite::HostWrite(const Array& target, bool keeps) : target_(target) {
    require_writable(target, "array[...] = ...");
    is_recorded_ = current_recording(*target.device);
    if (is_recorded_ && keeps)
        refuse_recording(*target.device, "array[...] = ...",
                         "write these elements before the capture, or launch a kernel: parts of them would be as now");
    const WithoutRecording without;
    if (target.device->is_host_memory && !is_recorded_)
        written_ = target;
    else
        written_ = keeps ? clone(target, host_device()) : empty(target.dtype, target.shape(), host_device());
}

void HostWrite::finish() {
    if (is_recorded_ || !target_.device->is_host_memory) transfer(target_, written_);
}

void HostElement::load() {
    const std::int64_t size = element_.dtype.size_bytes();
    copy_.reset(new std::byte[static_cast<std::size_t>(size)]);
    element_.device->load(copy_.get(), data_, size);
    data_ = copy_.get();
}

}  // namespace weft::runtime
