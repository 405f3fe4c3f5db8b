// The host's only access to the bytes of arrays, apart from the devices themselves: a device may have memory that the
// host cannot read. tools/checks/check_layers.py finds code that bypasses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/array_copies.h"
#include "support/error.h"

namespace weft::runtime {

// Copies between memory of the device and the host's. Done when the call returns.
inline void read_bytes(Device& device, void* to, const void* from, std::int64_t size_bytes) {
    if (device.is_host_memory)
        std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
    else
        device.load(to, from, size_bytes);
}
inline void write_bytes(Device& device, void* to, const void* from, std::int64_t size_bytes) {
    if (device.is_host_memory)
        std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
    else
        device.store(to, from, size_bytes);
}
// Copies within the device's memory. Precondition: the ranges do not overlap.
void copy_bytes(Device& device, void* to, const void* from, std::int64_t size_bytes);

// The first element of an array. Precondition: its memory is the host's.
inline std::byte* host_data(const Array& array) {
    WEFT_CHECK(array.device->is_host_memory,
               "the memory of an array on '" + array.device->alias + "' is not the host's");
    return static_cast<std::byte*>(array.view.data);
}
// The array itself if its memory is the host's, else a contiguous copy there. For reading.
Array on_host(const Array& array);

// An array that the host can write: `target` itself, or memory of the host that finish() copies to it. During a
// capture, the copy becomes a node of the graph.
class HostWrite {
public:
    // `keeps`: elements that the host does not write keep their values.
    explicit HostWrite(const Array& target, bool keeps = false);

    const Array& array() const { return written_; }
    void finish();

private:
    const Array& target_;
    Array written_;
    bool is_recorded_;
};

// The first element of an array, for the host to read and write: in place, or as a copy that store() writes back.
class HostElement {
public:
    explicit HostElement(const Array& element) : element_(element), data_(static_cast<std::byte*>(element.view.data)) {
        is_recorded_ = current_stream(*element.device).recording() != nullptr;
        if (is_recorded_ || !element.device->is_host_memory) load();
    }
    HostElement(const HostElement&) = delete;
    HostElement& operator=(const HostElement&) = delete;

    std::byte* data() const { return data_; }
    void store() {
        if (is_recorded_)
            fill(element_, data_);
        else if (copy_)
            write_bytes(*element_.device, element_.view.data, data_, element_.dtype.size_bytes());
    }

private:
    void load();

    const Array& element_;
    std::byte* data_;
    std::unique_ptr<std::byte[]> copy_;
    bool is_recorded_;  // store() takes effect when the graph runs
};

}  // namespace weft::runtime
