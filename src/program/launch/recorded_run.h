// Launches as nodes of a graph that the host runs (runtime/graph.h).
#pragma once

#include <cstddef>
#include <memory>

#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"
#include "runtime/recording.h"

namespace weft::program {

// Records the work of run() as a node, done each time that the graph is launched. Throws UsageError for work that a
// graph cannot do. `strategic` is that of a PreparedLaunch (strategies.h), if the host runs the graph.
void record_run(runtime::Recording& recording, const CompiledKernel& kernel, runtime::Stream& stream,
                const std::byte* block, const Grid& grid, bool checks_nan,
                std::shared_ptr<const CompiledKernel> strategic = nullptr);

// Launches a graph, without the host's lock, and forwards the output of its kernels. Throws UsageError if the stream is
// of another device.
void launch_graph(const std::shared_ptr<runtime::Graph>& graph, runtime::Stream& stream);

// Nodes that choose by the first element of an array of int32 at the time.
void record_if(const runtime::Array& condition, std::shared_ptr<runtime::Graph> on_true,
               std::shared_ptr<runtime::Graph> on_false);
void record_while(const runtime::Array& condition, std::shared_ptr<runtime::Graph> body);

}  // namespace weft::program
