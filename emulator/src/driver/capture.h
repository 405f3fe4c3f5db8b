#pragma once
// The capture of streams into graphs.
//
// A stream that is being captured has no tasks of its own: its work becomes nodes, each after the stream's frontier. A
// stream joins a capture when it waits for an event that was recorded in the capture.
#include "driver/abi.h"
#include "driver/graph.h"

namespace weft::emulator {

// Precondition: the state is locked. Adds the stream's next work to its capture as a node. Fails if the capture is
// invalid.
GraphNode* add_node(Stream& stream, int type, Work work);
// Adds a node of an event outside of the capture: each launch of the graph records it, or waits for it.
void add_event_node(Stream& stream, int type, CUevent event);
// Work of the legacy stream would wait for a stream that is being captured: this is an error and invalidates the
// capture.
void require_no_implicit_capture(Stream& stream);
// A call that might wait for a stream that is being captured: this is an error and invalidates the capture, unless the
// thread's mode allows it.
void require_no_unsafe_capture();
// For calls that wait for the stream, or for the whole context.
void require_not_captured(Stream& stream);
void require_nothing_captured(Context& context);
// For a stream that is destroyed, by itself or with its context: invalidates its capture.
void leave_capture(Stream& stream);

}  // namespace weft::emulator
