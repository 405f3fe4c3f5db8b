#include "bindings/interop/xla_frame.h"

#include <cstring>

#include "runtime/host_memory.h"
#include "support/error.h"

namespace weft::bindings {
const xla::Buffer& item(const xla::Buffers& buffers, std::int64_t index) {
    WEFT_CHECK(index < buffers.count, "a call of XLA has other buffers than it was made with");
    return *static_cast<const xla::Buffer*>(buffers.items[index]);
}

void expect_first_write(const xla::Buffer& result, int rank, std::int64_t size_bytes) {
    for (std::int64_t i = 0; i < result.rank - rank; ++i) size_bytes *= result.extents[i];
    runtime::expect_first_write(result.data, size_bytes);
}

// Memory that its owner keeps alive.
runtime::BufferPtr lent(void* data, std::int64_t size_bytes) {
    auto buffer = std::make_shared<runtime::Buffer>();
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->device = &runtime::host_device();
    buffer->release = [] {};
    return buffer;
}

nanobind::object handler_capsule(xla::Handler* handler) {
    return nanobind::steal(PyCapsule_New(reinterpret_cast<void*>(handler), xla::kCapsule, nullptr));
}

// ---- the frame of a call ----

// Answers XLA's question before a call with the version that Weft speaks: XLA's own, unless that is a later one. XLA of
// version 0.1 (JAX 0.6 and before) asks without a table of functions, and takes only its own version.
bool answers_metadata(xla::CallFrame& frame) {
    for (xla::Extension* extension = frame.extension; extension; extension = extension->next) {
        if (extension->type != xla::kMetadataExtension) continue;
        xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(extension)->metadata;
        metadata.api_version.major = xla::kMajor;
        metadata.api_version.minor = frame.api ? std::min(xla::kMinor, frame.api->version.minor) : xla::kMinorOfOld;
        metadata.traits = 0;
        return true;
    }
    return false;
}

std::int64_t id_of(const xla::CallFrame& frame) {
    WEFT_CHECK(frame.attributes.count == 1 && frame.attributes.kinds[0] == xla::kNumber,
               "a call of XLA has one attribute");
    std::int64_t id;
    std::memcpy(&id, static_cast<const xla::Number*>(frame.attributes.items[0])->value, sizeof id);
    return id;
}

xla::Error* error(const xla::CallFrame& frame, const char* message) {
    xla::ErrorArguments arguments{sizeof arguments, nullptr, message, xla::kInternal};
    return frame.api->create_error(&arguments);
}

}  // namespace weft::bindings
