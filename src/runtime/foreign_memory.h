// Memory, streams and events of CUDA that other libraries own.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/device.h"

namespace weft::runtime {

// The device that memory belongs to; null where the driver does not know it as a device's.
Device* cuda_device_of(const void* memory);

// A stream of another library as one of the device, and the other way.
std::shared_ptr<Stream> foreign_stream(Device& device, std::uint64_t stream);
std::uint64_t stream_for_others(Stream& stream);
// The same of events.
std::shared_ptr<Event> foreign_event(Device& device, std::uint64_t event);
std::uint64_t event_for_others(Event& event);

// Returns when the work in a stream of another library is done, given as the number that its protocol speaks of.
void wait_for_cuda_stream(Device& device, std::uint64_t stream);

// The order of this thread's work on a CUDA device and of another library's, where memory is exchanged. Streams are
// given by their numbers.
//
// What the other library puts into the stream from now on is done after the work that is in ours. Throws UsageError in
// the name of `api` where this thread captures: nothing of what it captured has been done.
void let_foreign_stream_wait(Device& device, std::uint64_t stream, std::string_view api);
// The stream of ours that the other library is to let wait for its work: the work that this thread puts into its stream
// afterwards, and graphs that are launched there, come after it.
std::uint64_t stream_that_waits(Device& device);
// After it has done so. What it captures has become a capture of ours with that.
void notice_foreign_capture(Device& device);

}  // namespace weft::runtime
