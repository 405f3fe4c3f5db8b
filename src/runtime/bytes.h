// The host's way to the bytes of arrays, and the only one outside of the devices: a device may have memory that the
// host cannot touch. tools/check_layers.py looks for what goes past it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/array.h"
#include "support/error.h"

namespace weft::runtime {

// Between memory of the device and the host's. Done when they return.
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
// From one place of the device's memory to another, which do not overlap.
void copy_bytes(Device& device, void* to, const void* from, std::int64_t size_bytes);

// The first element of an array in the host's memory. Precondition: it is.
inline std::byte* host_data(const Array& array) {
    WEFT_CHECK(array.device->is_host_memory,
               "the memory of an array on '" + array.device->alias + "' is not the host's");
    return static_cast<std::byte*>(array.view.data);
}
// To be read by the host: the array itself where its memory is the host's, else a contiguous copy in the host's.
Array on_host(const Array& array);

// An array's elements for the host to write: in place, or in memory of the host from which finish() takes them; where a
// graph is captured, each time that it runs.
class HostWrite {
public:
    // `keeps`: elements that the host does not write stay as they are.
    explicit HostWrite(const Array& target, bool keeps = false);

    const Array& array() const { return written_; }
    void finish();

private:
    const Array& target_;
    Array written_;
    bool is_recorded_;
};

// The first element of an array, for the host to read and write: in place, or a copy, of which store() brings back what
// the host has written.
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
    bool is_recorded_;  // what is stored is written when the graph runs
};

}  // namespace weft::runtime
