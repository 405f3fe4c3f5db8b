#pragma once
// The way of work into streams.
#include "driver/abi.h"
#include "driver/work.h"

namespace weft::emulator {

// Enqueues work, which must not refer to objects of its caller. Null if the stream is being captured: the work has then
// become a node of the graph.
TaskPtr submit(CUstream stream, int node_type, Work work, const TaskPtr& after = nullptr);

}  // namespace weft::emulator
