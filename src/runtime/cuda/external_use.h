// Work of ours in graphs that other libraries capture.
#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/cuda/reports.h"
#include "runtime/graph.h"

namespace weft::runtime {

// Everything that Weft's work in a graph of another library uses. An object of the driver owns it and releases it with
// the graph. That release must not free memory, so the next wait for a stream does.
class ExternalUse {
public:
    explicit ExternalUse(CudaContext& device) : device_(device) {}
    ~ExternalUse();
    ExternalUse(const ExternalUse&) = delete;
    ExternalUse& operator=(const ExternalUse&) = delete;

    // Attaches `use` to the graph. Throws UsageError if the driver refuses.
    static void retain(const std::shared_ptr<ExternalUse>& use, cuda::CUgraph graph);
    // Frees the memory of graphs that have been destroyed.
    static void free_unused();
    // Forwards the reports of such graphs' launches. Throws the first fault.
    static void collect(const CudaContext& device, ReportSource& source);

    std::vector<NodePtr> nodes;
    std::unique_ptr<KeptMemory> memory;
    std::shared_ptr<GraphReports> reports = std::make_shared<GraphReports>();
    std::shared_ptr<std::vector<BufferPtr>> held;
    std::vector<cuda::CUstream> gone;  // streams to destroy

private:
    CudaContext& device_;
};

}  // namespace weft::runtime
