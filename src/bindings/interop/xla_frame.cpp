#include "bindings/interop/xla_frame.h"

#include <cstring>
#include <string>

#include "program/host/host.h"
#include "runtime/bytes.h"
#include "runtime/cuda_devices.h"
#include "runtime/foreign_memory.h"
#include "runtime/host_memory.h"
#include "support/error.h"

namespace weft::bindings {
const xla::Buffer& item(const xla::Buffers& buffers, std::int64_t index) {
    WEFT_CHECK(index < buffers.count, "a call of XLA has other buffers than it was made with");
    return *static_cast<const xla::Buffer*>(buffers.items[index]);
}

// ---- on a GPU ----

namespace {

// Throws the error of XLA if there is one.
void require_done(const xla::Api& api, xla::Error* error, const char* function) {
    if (!error) return;
    xla::ErrorText text{sizeof text, nullptr, error, nullptr};
    api.message_of_error(&text);
    const std::string message = text.message ? text.message : "";
    xla::ErrorEnd end{sizeof end, nullptr, error};
    api.destroy_error(&end);
    throw UsageError(function, message);
}

runtime::Device& gpu_of(const xla::CallFrame& frame) {
    const xla::Api& api = *frame.api;
    const std::vector<runtime::Device*> there = runtime::cuda_devices();
    if (api.struct_size >= sizeof api && api.get_ordinal) {
        xla::OrdinalArguments arguments{sizeof arguments, nullptr, frame.context, 0};
        require_done(api, api.get_ordinal(&arguments), "XLA_FFI_DeviceOrdinal_Get()");
        for (runtime::Device* const device : there)
            if (device->ordinal == arguments.ordinal) return *device;
        throw UsageError(
            "jax_kernel()",
            "JAX runs on 'cuda:" + std::to_string(arguments.ordinal) + "', and there is none here (" +
                (there.empty() ? runtime::cuda_problem() : "the last one is '" + there.back()->alias + "'") + ")");
    }
    // Older tables name no device: that of the memory.
    for (const xla::Buffers* const buffers : {&frame.arguments, &frame.results})
        for (std::int64_t i = 0; i < buffers->count; ++i)
            if (void* const data = item(*buffers, i).data)
                if (runtime::Device* const found = runtime::cuda_device_of(data)) return *found;
    throw UsageError("jax_kernel()", "a call of XLA has no memory on a CUDA device");
}

std::shared_ptr<runtime::Stream> stream_of(const xla::CallFrame& frame, runtime::Device& device) {
    xla::StreamArguments arguments{sizeof arguments, nullptr, frame.context, nullptr};
    require_done(*frame.api, frame.api->get_stream(&arguments), "XLA_FFI_Stream_Get()");
    return runtime::stream_of_handle(device, reinterpret_cast<std::uint64_t>(arguments.stream));
}

}  // namespace

CallPlace::CallPlace(const xla::CallFrame& frame, bool is_gpu)
    : device(is_gpu ? gpu_of(frame) : runtime::host_device()), theirs_(is_gpu ? stream_of(frame, device) : nullptr) {
    if (theirs_) stream_.emplace(theirs_);
    if (is_gpu) default_.emplace(device);
}

void CallPlace::finish() {
    if (!theirs_) return;
    runtime::bring_reports(*theirs_);
    program::flush_prints();
}

void copy_within(runtime::Device& device, void* to, const void* from, std::int64_t size_bytes) {
    if (device.is_host_memory)
        std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
    else
        runtime::copy_bytes(device, to, from, size_bytes);
}

void clear_within(runtime::Device& device, void* at, std::int64_t size_bytes) {
    if (device.is_host_memory)
        std::memset(at, 0, static_cast<std::size_t>(size_bytes));
    else if (size_bytes > 0)
        device.clear(at, size_bytes, runtime::current_stream(device));
}

void expect_first_write(const xla::Buffer& result, int rank, std::int64_t size_bytes) {
    for (std::int64_t i = 0; i < result.rank - rank; ++i) size_bytes *= result.extents[i];
    runtime::expect_first_write(result.data, size_bytes);
}

// Memory that its owner keeps alive.
runtime::BufferPtr lent(runtime::Device& device, void* data, std::int64_t size_bytes) {
    auto buffer = std::make_shared<runtime::Buffer>();
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->device = &device;
    buffer->release = [] {};
    return buffer;
}

nanobind::object handler_capsule(xla::Handler* handler) {
    return nanobind::steal(PyCapsule_New(reinterpret_cast<void*>(handler), xla::kCapsule, nullptr));
}

// ---- the frame of a call ----

// Answers XLA's question before a call with the version that Weft speaks: XLA's own, unless that is a later one. XLA of
// version 0.1 (JAX 0.6 and before) asks without a table of functions, and takes only its own version.
bool answers_metadata(xla::CallFrame& frame, std::uint32_t traits) {
    for (xla::Extension* extension = frame.extension; extension; extension = extension->next) {
        if (extension->type != xla::kMetadataExtension) continue;
        xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(extension)->metadata;
        metadata.api_version.major = xla::kMajor;
        metadata.api_version.minor = frame.api ? std::min(xla::kMinor, frame.api->version.minor) : xla::kMinorOfOld;
        metadata.traits = traits;
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
