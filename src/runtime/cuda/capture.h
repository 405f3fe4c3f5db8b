// Captures and graphs of CUDA devices, over the driver's own.
//
// While a thread captures a stream, the driver takes what is put into it for nodes of a graph; our nodes describe that
// work. Three things are kept out of the graph, and go to a stream beside (CudaStream::aside()): what other threads put
// into the stream, memory, and bytes of the host. Memory that is made in a capture belongs to the graph as soon as
// nobody else has it, and bytes of the host are copied to the device once, from where each launch of the graph takes
// them: so the graph allocates nothing and reads no memory of the host.
//
// A condition is a kernel that tells the driver what an array says (devlib/cuda/condition.cpp), and a node with a graph
// for each body. A body is captured through a stream of its own, which stands for the captured one meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/graph.h"

namespace weft::runtime {

// While it lives, the driver lets this thread do what is no work of a captured stream, whatever is captured: load code,
// take memory, ask and wait for other streams. Else the driver refuses that, and ends captures of this thread.
class RelaxedCapture {
public:
    RelaxedCapture();
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

private:
    cuda::CUstreamCaptureMode mode_ = cuda::kCaptureRelaxed;
};

class CudaGraph final : public Graph {
public:
    // Makes the driver's executable graph. Throws UsageError where the driver refuses; `graph` is the object's in any
    // case.
    CudaGraph(CudaDevice& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory,
              std::shared_ptr<GraphReports> reports, std::vector<const CudaGraph*> children, bool has_conditions,
              cuda::CUgraph graph);
    // What it keeps is freed after its last launch.
    ~CudaGraph() override;

    // Where the stream is captured, it becomes a part of the other graph, which somebody has to keep it alive for.
    void launch(Stream& stream) override;

private:
    friend class CudaRecording;
    void destroy() noexcept;
    // Its own and its children's, before they are launched.
    void begin_launch(CudaStream& stream) const;

    CudaDevice& cuda_;
    std::unique_ptr<KeptMemory> memory_;
    std::shared_ptr<GraphReports> reports_;
    std::vector<const CudaGraph*> children_;  // kept alive by the memory
    bool has_conditions_;
    std::size_t size_ = 0;  // how many nodes the driver's graph has, where it has conditions
    cuda::CUgraph graph_;
    cuda::CUgraphExec executable_ = nullptr;
    cuda::CUevent last_launch_ = nullptr;
    bool was_launched_ = false;
};

// What Weft's work in a graph of another library uses: kept by an object that the driver lets go with the graph. It
// does that where nothing may be freed; so the next who waits for a stream frees it.
class ExternalUse {
public:
    explicit ExternalUse(CudaDevice& device) : device_(device) {}
    ~ExternalUse();
    ExternalUse(const ExternalUse&) = delete;
    ExternalUse& operator=(const ExternalUse&) = delete;

    // Makes the graph keep it. Throws UsageError where the driver refuses.
    static void retain(const std::shared_ptr<ExternalUse>& use, cuda::CUgraph graph);
    // Frees what graphs that are gone have used.
    static void free_unused();
    // What the launches of such graphs have to say. Throws the first fault.
    static void collect(CudaDevice& device, Stream& stream);

    std::vector<NodePtr> nodes;
    std::unique_ptr<KeptMemory> memory;
    std::shared_ptr<GraphReports> reports = std::make_shared<GraphReports>();
    std::shared_ptr<std::vector<BufferPtr>> held;
    std::vector<cuda::CUstream> gone;  // as in CudaRecording

private:
    CudaDevice& device_;
};

class CudaRecording final : public Recording {
public:
    // Begins. Throws UsageError where the driver refuses.
    CudaRecording(CudaStream& stream, const CaptureOptions& options);
    // Of a capture that another library has begun, into its graph.
    CudaRecording(CudaStream& stream, cuda::CUgraph graph);
    // A capture that was not finished is lost.
    ~CudaRecording() override;

    bool runs_nodes() const override { return false; }
    using Recording::add;
    void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) override;
    // A node of work that is in the stream already; `again` puts it into another one.
    void describe(const char* name, std::initializer_list<const void*> addresses, std::function<void(Stream&)> again);
    void join(Stream& stream) override;
    void begin_condition(const Array& condition, ConditionKind kind, Branches branches) override;
    void begin_branch(bool on_true) override;
    std::shared_ptr<Graph> end_branch() override;
    bool is_in_branch() const override { return !bodies_.empty(); }
    void end_condition(bool is_complete) override;
    std::shared_ptr<Graph> finish() override;
    void release(Stream& stream) noexcept override;

    // The driver's stream for what this thread puts into one that belongs to the capture.
    cuda::CUstream handle(CudaStream& stream);
    // Memory that the graph keeps when nobody else has it any more; null where there is no more.
    void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream);
    // True where the memory was made in this capture: another allocate() may get it, and then the graph has it.
    bool take_back(void* data, std::int64_t size_bytes, Stream& stream);
    // A copy on the device of bytes of the host, for the graph.
    const void* keep_bytes(const void* from, std::int64_t size_bytes);
    // Memory of `size_bytes` bytes, all 0, for what a launch of the graph reports.
    BufferPtr report_memory(std::int64_t size_bytes);
    void add_report(Report report, BufferPtr memory) { reports_->add(std::move(report), std::move(memory)); }
    // With conditions, the driver takes no graph as a part of another one: then its nodes become nodes of this one.
    void add_child(CudaGraph& graph, CudaStream& stream);
    // A node that records an event which lives outside of the graph, or waits for it. Throws UsageError in bodies of
    // conditions, and where the driver is too old.
    void add_event(cuda::CUevent event, std::shared_ptr<const void> owner, CudaStream& stream, bool records);
    // Of a stream that is gone: destroyed after the capture.
    void keep_stream(cuda::CUstream own, cuda::CUstream aside);

private:
    struct Spare {
        void* data;
        std::int64_t size_bytes;
        const Stream* stream;
    };
    struct Condition {
        CudaStream* stream;
        ConditionKind kind;
        const void* address;
        cuda::CUgraphConditionalHandle handles[2] = {};  // holds, does not hold
    };
    struct Body {
        CudaStream* stream;
        cuda::CUstream handle;           // stands for it
        cuda::CUgraphNode node;          // of the outer graph
        std::vector<NodePtr> described;  // of the outer graph, so far
    };
    struct Place {
        cuda::CUgraph graph;
        std::vector<cuda::CUgraphNode> last;  // after which the next node comes
    };
    Place place_in(cuda::CUstream handle) const;
    void set_condition(const Condition& condition, bool for_all);
    BufferPtr buffer_of(void* data, std::int64_t size_bytes);
    void hold(void* data, std::int64_t size_bytes);
    void settle();
    void end_bodies() noexcept;

    CudaDevice& cuda_;
    int mode_;
    bool is_ended_ = false;
    bool used_aside_ = false;
    int describing_ = 0;  // inside of work that has a node
    std::string lost_;    // why nothing can come of the capture
    bool has_conditions_ = false;
    std::map<void*, std::int64_t> made_;
    std::vector<Spare> spare_;
    std::shared_ptr<std::vector<BufferPtr>> held_ = std::make_shared<std::vector<BufferPtr>>();
    std::shared_ptr<GraphReports> reports_ = std::make_shared<GraphReports>();
    std::vector<const CudaGraph*> children_;
    std::vector<Condition> conditions_;
    std::vector<Body> bodies_;
    std::vector<cuda::CUstream> gone_;       // streams
    std::shared_ptr<ExternalUse> external_;  // null where the capture is ours
};

// Whether the driver has conditions in graphs.
bool has_conditions();

// What records the work of this thread for the stream; null where nobody does.
CudaRecording* cuda_recording(Stream& stream);

}  // namespace weft::runtime
