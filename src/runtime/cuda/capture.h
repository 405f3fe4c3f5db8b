// Captures and graphs of CUDA devices, on top of the driver's own.
//
// While a thread captures a stream, the driver turns work in the stream into nodes of its graph, and our nodes describe
// that work. Three kinds of work stay outside of the graph and go to a side stream (CudaStream::side_stream()): work of
// other threads, memory, and bytes of the host. Memory that is allocated in a capture belongs to the graph as soon as
// it has no other owner. Bytes of the host are copied to the device once, and each launch of the graph reads that copy.
// So the graph allocates nothing and reads no memory of the host.
//
// A condition is a kernel that gives an array's value to the driver (devlib/cuda/condition.cpp), and a node with one
// graph for each body. A body is captured through a stream of its own, which replaces the captured one meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/copy_plan.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/external_use.h"
#include "runtime/cuda/relaxed_capture.h"
#include "runtime/cuda/reports.h"
#include "runtime/cuda/stream.h"
#include "runtime/recording.h"

namespace weft::runtime {

class CudaGraph final : public Graph {
public:
    // Makes the driver's executable graph and takes ownership of `graph`, also on failure. Throws UsageError if the
    // driver refuses.
    CudaGraph(CudaContext& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory,
              std::shared_ptr<GraphReports> reports, std::vector<const CudaGraph*> children, bool has_conditions,
              cuda::CUgraph graph);
    // Memory that the graph keeps is freed after its last launch.
    ~CudaGraph() override;

    // If the stream is being captured, the graph becomes a part of that graph, and the caller must keep this one alive
    // for it.
    void launch(Stream& stream) override;
    // Also if it fills arrays of the host.
    bool is_waited_for() const override { return may_fail() || brings_bytes(); }

private:
    friend class CudaRecording;
    void destroy() noexcept;
    // The steps on the host before a launch, of this graph and its children.
    void prepare() const;
    // Counts the writes of one launch and registers its reports, for this graph and its children.
    void begin_launch(CudaStream& stream) const;
    bool brings_bytes() const;

    CudaContext& cuda_;
    std::unique_ptr<KeptMemory> memory_;
    std::shared_ptr<GraphReports> reports_;
    std::vector<const CudaGraph*> children_;  // kept alive by the memory
    bool has_conditions_;
    std::size_t size_ = 0;  // number of the driver graph's nodes; set if it has conditions
    cuda::CUgraph graph_;
    cuda::CUgraphExec executable_ = nullptr;
    cuda::CUevent last_launch_ = nullptr;
    bool was_launched_ = false;
};

class CudaRecording final : public StreamRecording {
public:
    // Begins the capture. Throws UsageError if the driver refuses.
    CudaRecording(CudaStream& stream, const CaptureOptions& options);
    // For a capture that another library began, into its graph.
    CudaRecording(CudaStream& stream, cuda::CUgraph graph);
    // Ends a capture that was not finished; its graph is lost.
    ~CudaRecording() override;

    bool runs_nodes() const override { return false; }
    using Recording::add;
    void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) override;
    // A node for work that has been enqueued; `again` enqueues it into another stream.
    void describe(const char* name, std::initializer_list<const void*> addresses, std::function<void(Stream&)> again);
    void join(Stream& stream) override;
    void begin_condition(const Array& condition, ConditionKind kind, Branches branches) override;
    void begin_branch(bool on_true) override;
    std::shared_ptr<Graph> end_branch() override;
    bool is_in_branch() const override { return !bodies_.empty(); }
    void end_condition(bool is_complete) override;
    std::shared_ptr<Graph> finish() override;
    void release(Stream& stream) noexcept override;

    cuda::CUstream handle(CudaStream& stream) override;
    // Memory that belongs to the graph once it has no other owner; null if there is no more memory.
    void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream);
    // True if the memory was allocated in this capture: a later allocate() may return it, and in the end the graph owns
    // it.
    bool take_back(void* data, std::int64_t size_bytes, Stream& stream);
    // Copies bytes of the host to memory of the graph on the device.
    const void* keep_bytes(const void* from, std::int64_t size_bytes);
    // Memory of `size_bytes` zero bytes, for the reports of a launch in the graph.
    BufferPtr report_memory(std::int64_t size_bytes);
    // Memory that the graph keeps, zeros before its first launch.
    void* keep_zeros(std::int64_t size_bytes);
    void add_report(Report report, BufferPtr memory) { reports_->add(std::move(report), std::move(memory)); }
    // Puts a copy of bytes of the device into the stream; the host finds them when a launch of the graph is done.
    std::shared_ptr<LeftBytes> leave_bytes(const void* from, std::int64_t size_bytes, Stream& stream);
    // The host's memory that a plan writes to: each launch of the graph fills it, by `bring` if that is given.
    void add_filled(const CopyPlan& plan, std::function<void()> bring);
    // Throws UsageError if a plan reads such memory now, which the graph has not filled yet.
    void refuse_filled(const CopyPlan& plan) const;
    // `check` throws what it finds wrong in bytes that a launch of the graph has left.
    void add_check(std::string name, std::shared_ptr<LeftBytes> left, std::function<void(const std::byte*)> check);
    // Adds a graph as a part of this one. The driver accepts no child graph with conditions: the nodes of such a graph
    // are added one by one.
    void add_child(CudaGraph& graph, CudaStream& stream);
    void add_event(cuda::CUevent event, std::shared_ptr<const void> owner, CudaStream& stream, bool records) override;
    void keep_stream(cuda::CUstream own, cuda::CUstream side_stream) override;

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
        cuda::CUgraphConditionalHandle handles[2] = {};  // [0]: the condition holds; [1]: it does not
    };
    struct Body {
        CudaStream* stream;
        cuda::CUstream handle;           // replaces `stream` while the body is captured
        cuda::CUgraphNode node;          // of the outer graph
        std::vector<NodePtr> described;  // nodes of the outer graph so far
    };
    struct InsertionPoint {
        cuda::CUgraph graph;
        std::vector<cuda::CUgraphNode> last;  // predecessors of the next node
    };
    InsertionPoint insertion_point(cuda::CUstream handle) const;
    void set_condition(const Condition& condition, bool for_all);
    BufferPtr buffer_of(void* data, std::int64_t size_bytes);
    void hold(void* data, std::int64_t size_bytes);
    void settle();
    void end_bodies() noexcept;

    CudaContext& cuda_;
    int mode_;
    bool is_ended_ = false;
    bool used_side_stream_ = false;
    int describing_ = 0;  // > 0 during work that already has a node
    std::string lost_;    // the reason why the capture cannot be completed
    bool has_conditions_ = false;
    std::map<void*, std::int64_t> made_;
    std::vector<Spare> spare_;
    std::shared_ptr<std::vector<BufferPtr>> held_ = std::make_shared<std::vector<BufferPtr>>();
    std::shared_ptr<GraphReports> reports_ = std::make_shared<GraphReports>();
    std::vector<const CudaGraph*> children_;
    std::vector<Condition> conditions_;
    std::vector<Body> bodies_;
    std::vector<cuda::CUstream> gone_;                                   // streams to destroy
    std::vector<std::pair<const std::byte*, const std::byte*>> filled_;  // memory of the host: begin and end
    std::shared_ptr<ExternalUse> external_;                              // null if Weft began the capture
};

// The recording of this thread's work in the stream; null if there is none.
CudaRecording* cuda_recording(Stream& stream);

}  // namespace weft::runtime
