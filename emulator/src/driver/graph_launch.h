#pragma once
// The launch of executable graphs: a task for each node.
#include <memory>

#include "driver/graph.h"

namespace weft::emulator {

// Precondition: the state is locked. Adds a task for each node, so that other work may run between them. `first`
// precedes all nodes; the returned task follows all.
TaskPtr enqueue(const std::shared_ptr<const GraphExec>& graph, const TaskPtr& first);
// Fails if an event of a node has been destroyed.
void require_events(const GraphExec& graph);

}  // namespace weft::emulator
