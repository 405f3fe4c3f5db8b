// Memory, streams and events of CUDA that belong to other libraries.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/device.h"

namespace weft::runtime {

// The device that owns the memory; null if the driver does not know it as a device's.
Device* cuda_device_of(const void* memory);
// The GPU whose memory it is, which the host cannot read; else null. Does not ask for the driver.
Device* gpu_with_memory_at(std::uintptr_t address);

// Wraps a stream of another library as one of the device; and the handle of a stream, for other libraries.
std::shared_ptr<Stream> foreign_stream(Device& device, std::uint64_t stream);
std::uint64_t stream_for_others(Stream& stream);
// The same for events.
std::shared_ptr<Event> foreign_event(Device& device, std::uint64_t event);
std::uint64_t event_for_others(Event& event);
// A stream for this thread's work in the stream of a library, which outlives the result: the object of our own stream
// if the handle is one of ours. 0 and 1 are the legacy default stream.
std::shared_ptr<Stream> stream_of_handle(Device& device, std::uint64_t stream);
// Forwards the output of kernels in such a stream and throws their faults: waits for the stream if there may be any.
// During a capture they come with a later wait.
void bring_reports(Stream& stream);
// Makes the device's context the calling thread's current one, for other libraries, in place of the one that was.
void make_cuda_context_current(Device& device);

// The next functions order this thread's work on a CUDA device and another library's, for the exchange of memory.
// Streams are given by their numbers.
//
// Later work in the other library's stream waits for the work in ours. Throws UsageError in the name of `api` if this
// thread captures: the captured work has not been done.
void let_foreign_stream_wait(Device& device, std::uint64_t stream, std::string_view api);
// Our stream for which the other library must record its work: later work of this thread in the stream, and graphs that
// are launched there, come after it.
std::uint64_t stream_that_waits(Device& device);
// To be called after the other library has done so: if it captures, our stream has joined its capture.
void notice_foreign_capture(Device& device);
// Whether work in the other library's stream becomes a part of a graph now.
bool is_captured_stream(Device& device, std::uint64_t stream);
// Does the same for a library that only names its stream: later work of this thread in our stream comes after the work
// in that one. Throws UsageError in the name of `api` if that stream is being captured and ours is not.
void wait_for_foreign_stream(Device& device, std::uint64_t stream, std::string_view api);
// Makes the other library's stream wait for the work in ours, if that is done without a capture, or in the capture of
// that stream. Else it does nothing: the graph's launches are in order with their own stream.
void continue_foreign_stream(Device& device, std::uint64_t stream);

}  // namespace weft::runtime
