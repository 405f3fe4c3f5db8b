#include "runtime/cuda/capture.h"

#include <algorithm>
#include <utility>

#include "devlib/cuda/condition.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/timing.h"
#include "runtime/cuda_kernels.h"
#include "runtime/out_of_memory.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

// The body of a condition: it can be drawn, but not launched by itself.
class DescribedGraph final : public Graph {
public:
    DescribedGraph(Device& device, std::vector<NodePtr> nodes) : Graph(device, std::move(nodes)) {}
    void launch(Stream&) override { throw InternalError("the body of a condition is launched by itself"); }
};

class ChildNode final : public Node {
public:
    explicit ChildNode(CudaGraph& graph) : Node("graph"), graph_(graph) {}
    void run() override {}
    std::vector<std::pair<std::string, const Graph*>> children() const override { return {{"graph", &graph_}}; }
    void enqueue_into(Stream& stream) override { graph_.launch(stream); }

private:
    CudaGraph& graph_;
};

// A node that describes work for which the driver has its own nodes.
class DescribedNode final : public Node {
public:
    DescribedNode(std::string name, std::function<void(Stream&)> again)
        : Node(std::move(name)), again_(std::move(again)) {}
    void run() override {}
    void enqueue_into(Stream& stream) override { again_(stream); }

private:
    std::function<void(Stream&)> again_;
};

std::size_t nodes_of(CudaContext& device, CUgraph graph) {
    std::size_t count = 0;
    device.check(driver().cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
    return count;
}

// Whether the driver captures the stream; also true if it does not answer.
bool is_captured(CUstream stream) {
    CUstreamCaptureStatus status = kCaptureNone;
    return driver().cuStreamIsCapturing(stream, &status) != kSuccess || status != kCaptureNone;
}

void require_conditions(ConditionKind kind) {
    if (driver().has_conditions()) return;
    const char* const api = kind == ConditionKind::repeat ? "capture_while()" : "capture_if()";
    throw UsageError(api, "the CUDA driver is too old for conditions in a graph: it is of CUDA " +
                              std::to_string(driver().version / 1000) + "." +
                              std::to_string(driver().version % 1000 / 10) +
                              ", expected 12.4 or later. help: choose outside of the capture");
}

}  // namespace

CudaRecording* cuda_recording(Stream& stream) { return static_cast<CudaRecording*>(stream.recording()); }

// ---- graphs ----

CudaGraph::CudaGraph(CudaContext& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory,
                     std::shared_ptr<GraphReports> reports, std::vector<const CudaGraph*> children, bool has_conditions,
                     CUgraph graph)
    : Graph(device, std::move(nodes)),
      cuda_(device),
      memory_(std::move(memory)),
      reports_(std::move(reports)),
      children_(std::move(children)),
      has_conditions_(has_conditions),
      graph_(graph) {
    try {
        const CudaContext::Inside inside(cuda_);
        const RelaxedCapture relaxed;
        if (!driver().cuGraphInstantiateWithFlags)
            throw UsageError("capture_end()",
                             "the CUDA driver is too old for graphs: expected one of CUDA 11.4 or later");
        cuda_.check(driver().cuEventCreate(&last_launch_, kNoTiming), "cuEventCreate");
        if (has_conditions_) size_ = nodes_of(cuda_, graph_);
        cuda_.check(driver().cuGraphInstantiateWithFlags(&executable_, graph_, 0), "cuGraphInstantiateWithFlags");
    } catch (...) {
        destroy();
        throw;
    }
}

void CudaGraph::destroy() noexcept {
    reports_->forget_faults();
    const CudaContext::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    const RelaxedCapture relaxed;
    // Memory is freed in the current stream of this thread, which must come after the last launch.
    if (was_launched_) {
        auto& stream = static_cast<CudaStream&>(current_stream(cuda_));
        if (const CudaStream::Handle handle = stream.handle_outside_if_made())
            driver().cuStreamWaitEvent(handle, last_launch_, 0);
        else
            driver().cuEventSynchronize(last_launch_);
    }
    if (executable_) destroy_quietly(driver().cuGraphExecDestroy, executable_);
    destroy_quietly(driver().cuGraphDestroy, graph_);
    if (last_launch_) destroy_quietly(driver().cuEventDestroy_v2, last_launch_);
}

CudaGraph::~CudaGraph() { destroy(); }

void CudaGraph::prepare() const {
    memory_->prepare();
    for (const CudaGraph* child : children_) child->prepare();
}

void CudaGraph::begin_launch(CudaStream& stream) const {
    memory_->count_writes();
    if (!reports_->is_empty()) stream.reports().add(reports_);
    for (const CudaGraph* child : children_) child->begin_launch(stream);
}

bool CudaGraph::brings_bytes() const {
    return reports_->brings_bytes() ||
           std::ranges::any_of(children_, [](const CudaGraph* child) { return child->brings_bytes(); });
}

void CudaGraph::launch(Stream& stream) {
    auto& queue = static_cast<CudaStream&>(stream);
    if (CudaRecording* const recording = cuda_recording(stream)) return recording->add_child(*this, queue);
    {
        const UseStream use({std::shared_ptr<Stream>(), &stream});
        prepare();
    }
    const CudaContext::Inside inside(cuda_);
    const TimedWork timed(queue, kTimedGraph, "graph");
    const CudaStream::Handle handle = queue.handle();
    cuda_.check(driver().cuGraphLaunch(executable_, handle), "cuGraphLaunch");
    was_launched_ = true;
    begin_launch(queue);
    cuda_.check(driver().cuEventRecord(last_launch_, handle), "cuEventRecord");
}

// ---- recordings ----

CudaRecording::CudaRecording(CudaStream& stream, const CaptureOptions& options)
    : StreamRecording(stream, options), cuda_(stream.cuda_context()), mode_(options.mode) {
    const CudaContext::Inside inside(cuda_);
    const CUstream handle = stream.own_handle();
    stream.prepare_side_stream();
    is_ended_ = true;  // nothing to end if the next call fails
    cuda_.check(driver().cuStreamBeginCapture_v2(handle, mode_), "cuStreamBeginCapture");
    is_ended_ = false;
}

CudaRecording::CudaRecording(CudaStream& stream, CUgraph graph)
    : StreamRecording(stream, External{}),
      cuda_(stream.cuda_context()),
      mode_(CaptureOptions{}.mode),
      is_ended_(true),
      external_(std::make_shared<ExternalUse>(cuda_)) {
    reports_ = external_->reports;
    ExternalUse::retain(external_, graph);
}

CudaRecording::~CudaRecording() {
    if (external_) {
        for (const Spare& each : spare_) hold(each.data, each.size_bytes);
        external_->nodes = std::move(nodes_);
        external_->memory = std::move(memory_);
        external_->held = std::move(held_);
        external_->gone = std::move(gone_);
        return;
    }
    const CudaContext::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    end_bodies();
    auto& origin = static_cast<CudaStream&>(stream());
    if (!is_ended_) {
        CUgraph graph = nullptr;
        if (driver().cuStreamEndCapture(origin.own_handle(), &graph) == kSuccess && graph)
            destroy_quietly(driver().cuGraphDestroy, graph);
        is_ended_ = !is_captured(origin.own_handle());
    }
    release_streams();
    for (const CUstream stream : gone_) destroy_quietly(driver().cuStreamDestroy_v2, stream);
    // Memory that was allocated in the capture was filled in the side stream, for which the stream now waits. If the
    // driver does not end the capture, because another thread began it, the host has waited.
    const std::shared_ptr<Stream> own(std::shared_ptr<Stream>(), &origin);
    const UseStream use(is_ended_ ? own : nullptr);
    const WithoutRecording without;
    reports_->forget_faults();
    for (const Spare& each : spare_) hold(each.data, each.size_bytes);
    held_.reset();
    memory_.reset();
}

// Other threads enqueue into the side stream before, and into the stream itself afterwards.
void CudaRecording::release(Stream& stream) noexcept {
    auto& queue = static_cast<CudaStream&>(stream);
    const CudaStream::WorkLock lock = queue.lock_work();
    queue.end_side_stream();
    Recording::release(stream);
}

void CudaRecording::keep_stream(CUstream own, CUstream side_stream) {
    gone_.push_back(own);
    if (side_stream) gone_.push_back(side_stream);
}

void CudaRecording::end_bodies() noexcept {
    for (; !bodies_.empty(); bodies_.pop_back()) {
        CUgraph graph = nullptr;  // belongs to the outer graph
        driver().cuStreamEndCapture(bodies_.back().handle, &graph);
        destroy_quietly(driver().cuStreamDestroy_v2, bodies_.back().handle);
    }
}

std::shared_ptr<Graph> CudaRecording::finish() {
    WEFT_CHECK(!external_, "another library's capture is finished");
    const CudaContext::Inside inside(cuda_);
    auto& origin = static_cast<CudaStream&>(stream());
    if (!bodies_.empty() && lost_.empty()) lost_ = "the capture ends within the body of a condition";
    end_bodies();
    CUgraph graph = nullptr;
    const CUresult result = driver().cuStreamEndCapture(origin.own_handle(), &graph);
    // Nearly all failures end the capture too.
    is_ended_ = result == kSuccess || !is_captured(origin.own_handle());
    if (!lost_.empty() && result == kSuccess) {
        destroy_quietly(driver().cuGraphDestroy, graph);
        throw UsageError("capture_end()", "there is no graph: " + lost_ + ". help: capture again");
    }
    cuda_.check(result, "cuStreamEndCapture");
    for (const Spare& each : spare_) hold(each.data, each.size_bytes);
    spare_.clear();
    memory_->hold(held_);
    // Launches of the graph in any stream must find the bytes that were copied for it.
    if (used_side_stream_) {
        const RelaxedCapture relaxed;
        const CUresult copied = driver().cuStreamSynchronize(origin.side_stream());
        if (copied != kSuccess) destroy_quietly(driver().cuGraphDestroy, graph);
        cuda_.check(copied, "cuStreamSynchronize");
    }
    return std::make_shared<CudaGraph>(cuda_, std::move(nodes_), std::exchange(memory_, std::make_unique<KeptMemory>()),
                                       std::exchange(reports_, std::make_shared<GraphReports>()), std::move(children_),
                                       has_conditions_, graph);
}

CUstream CudaRecording::handle(CudaStream& stream) {
    for (auto body = bodies_.rbegin(); body != bodies_.rend(); ++body)
        if (body->stream == &stream) return body->handle;
    return stream.own_handle();
}

// The work may consist of pieces with nodes of their own; one node for the whole is clearer.
void CudaRecording::add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) {
    ++describing_;
    try {
        work();
    } catch (...) {
        --describing_;
        throw;
    }
    --describing_;
    const std::span all(addresses.begin(), addresses.size());
    if (describing_ > 0) return memory_->add(all);
    auto again = [name, work = std::move(work)](Stream& stream) {
        const UseStream use({std::shared_ptr<Stream>(), &stream});
        stream.recording()->add(name, work, {});
    };
    add(std::make_unique<DescribedNode>(std::move(name), std::move(again)), all);
}

void CudaRecording::describe(const char* name, std::initializer_list<const void*> addresses,
                             std::function<void(Stream&)> again) {
    const std::span all(addresses.begin(), addresses.size());
    if (describing_ > 0) return memory_->add(all);
    add(std::make_unique<DescribedNode>(name, std::move(again)), all);
}

void CudaRecording::join(Stream& stream) {
    if (&stream.device() != &cuda_)
        throw UsageError("wait_event()", "the event belongs to a capture on '" + cuda_.alias + "', the stream is of '" +
                                             stream.device().alias + "'. help: a graph stays on one device");
    auto& queue = static_cast<CudaStream&>(stream);
    const CudaStream::WorkLock lock = queue.lock_work();
    if (!stream.is_recorded()) queue.prepare_side_stream();
    Recording::join(stream);
}

// ---- memory ----

void* CudaRecording::allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) {
    // The smallest block freed in this stream that is large enough and at most twice as large.
    auto best = spare_.end();
    for (auto each = spare_.begin(); each != spare_.end(); ++each)
        if (each->stream == &stream && each->size_bytes >= size_bytes && each->size_bytes <= 2 * size_bytes &&
            (best == spare_.end() || each->size_bytes < best->size_bytes))
            best = each;
    if (best != spare_.end()) {
        void* const data = best->data;
        spare_.erase(best);
        return data;
    }
    const WithoutRecording without;
    const RelaxedCapture relaxed;
    void* const data = cuda_.allocate(size_bytes, zeroed, Recording::stream());
    if (!data) return nullptr;
    made_[data] = size_bytes;
    try {
        settle();
    } catch (...) {
        spare_.push_back({data, size_bytes, &stream});
        throw;
    }
    return data;
}

// Launches of the graph, in any stream, rely on work in the side stream, so the end of the capture waits for it. A
// capture of another library ends without notice, so the wait is done here.
void CudaRecording::settle() {
    used_side_stream_ = true;
    if (!external_) return;
    const RelaxedCapture relaxed;
    const auto wait = [&] {
        cuda_.check(driver().cuStreamSynchronize(static_cast<CudaStream&>(stream()).side_stream()),
                    "cuStreamSynchronize");
    };
    try {
        wait();
    } catch (const Error&) {
        // Work in the side stream uses memory that will be freed: wait again, then throw the first error.
        const std::exception_ptr problem = std::current_exception();
        try {
            wait();
        } catch (const Error&) {
            std::rethrow_exception(problem);
        }
        std::rethrow_exception(problem);
    }
}

bool CudaRecording::take_back(void* data, std::int64_t size_bytes, Stream& stream) {
    const auto found = made_.find(data);
    if (found == made_.end()) {
        // There is no notice of the end of earlier work in the stream.
        if (external_) hold(data, size_bytes);
        return external_ != nullptr;
    }
    spare_.push_back({data, found->second, &stream});
    return true;
}

BufferPtr CudaRecording::buffer_of(void* data, std::int64_t size_bytes) {
    auto buffer = std::make_shared<Buffer>();
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->device = &cuda_;
    return buffer;
}

void CudaRecording::hold(void* data, std::int64_t size_bytes) { held_->push_back(buffer_of(data, size_bytes)); }

const void* CudaRecording::keep_bytes(const void* from, std::int64_t size_bytes) {
    const WithoutRecording without;
    const RelaxedCapture relaxed;
    void* const data = take_memory(cuda_, size_bytes, /*zeroed=*/false, stream(), "launch()");
    hold(data, size_bytes);
    static_cast<CudaStream&>(stream()).put_from_host(data, from, size_bytes);
    settle();
    return data;
}

BufferPtr CudaRecording::report_memory(std::int64_t size_bytes) {
    const WithoutRecording without;
    const RelaxedCapture relaxed;
    BufferPtr made = buffer_of(take_memory(cuda_, size_bytes, /*zeroed=*/true, stream(), "launch()"), size_bytes);
    settle();
    return made;
}

void* CudaRecording::keep_zeros(std::int64_t size_bytes) {
    held_->push_back(report_memory(size_bytes));
    return held_->back()->data;
}

// ---- graphs in graphs, and conditions ----

CudaRecording::InsertionPoint CudaRecording::insertion_point(CUstream handle) const {
    if (!driver().cuStreamGetCaptureInfo_v3)
        throw UsageError("capture_launch()",
                         "the CUDA driver is too old for graphs inside of graphs: expected one of "
                         "CUDA 12.3 or later");
    CUstreamCaptureStatus status = kCaptureNone;
    cuuint64_t id = 0;
    InsertionPoint point{};
    const CUgraphNode* last = nullptr;
    std::size_t count = 0;
    cuda_.check(driver().cuStreamGetCaptureInfo_v3(handle, &status, &id, &point.graph, &last, nullptr, &count),
                "cuStreamGetCaptureInfo");
    if (status != kCaptureActive)
        throw UsageError("capture_launch()", "the capture on '" + cuda_.alias +
                                                 "' was ended by an error before. help: capture_end(), and capture "
                                                 "again");
    point.last.assign(last, last + count);
    return point;
}

void CudaRecording::add_child(CudaGraph& graph, CudaStream& stream) {
    if (graph.has_conditions_) {
        const CudaContext::Inside inside(cuda_);
        const auto count = [&] { return nodes_of(cuda_, insertion_point(handle(stream)).graph); };
        const std::size_t before = count();
        const UseStream use({std::shared_ptr<Stream>(), &stream});
        graph.enqueue_into(stream);
        if (count() - before == graph.size_) return;
        if (lost_.empty()) lost_ = "a graph with conditions could not become a part of it";
        throw UsageError("capture_launch()",
                         "the graph has conditions, and work of another library, which only that one can capture once "
                         "more. help: call the captured function itself");
    }
    const CudaContext::Inside inside(cuda_);
    const CUstream into = handle(stream);
    const InsertionPoint point = insertion_point(into);
    CUgraphNode node = nullptr;
    cuda_.check(
        driver().cuGraphAddChildGraphNode(&node, point.graph, point.last.data(), point.last.size(), graph.graph_),
        "cuGraphAddChildGraphNode");
    cuda_.check(driver().cuStreamUpdateCaptureDependencies_v2(into, &node, nullptr, 1, kSetDependencies),
                "cuStreamUpdateCaptureDependencies");
    children_.push_back(&graph);
    add(std::make_unique<ChildNode>(graph), {});
}

void CudaRecording::add_event(CUevent event, std::shared_ptr<const void> owner, CudaStream& stream, bool records) {
    const char* const api = records ? "record_event()" : "wait_event()";
    if (!bodies_.empty())
        throw UsageError(api, "the body of a condition on '" + cuda_.alias +
                                  "' has no events of the world outside: the driver allows kernels, copies and fills "
                                  "there. help: in front of the condition, or behind it");
    if (records && !driver().cuEventRecordWithFlags)
        throw UsageError(api, "the CUDA driver is too old for events in graphs: expected one of CUDA 11.1 or later");
    const CudaContext::Inside inside(cuda_);
    const CUstream into = handle(stream);
    if (records)
        cuda_.check(driver().cuEventRecordWithFlags(event, into, kRecordedByGraph), "cuEventRecordWithFlags");
    else
        cuda_.check(driver().cuStreamWaitEvent(into, event, kWaitedForByGraph), "cuStreamWaitEvent");
    if (owner) memory_->hold(owner);
    describe(records ? "record event" : "wait for event", {}, [event, owner, records](Stream& again) {
        cuda_recording(again)->add_event(event, owner, static_cast<CudaStream&>(again), records);
    });
}

void CudaRecording::set_condition(const Condition& condition, bool for_all) {
    const devlib::ConditionPlan plan{static_cast<const std::int32_t*>(condition.address), condition.handles[0],
                                     for_all ? condition.handles[1] : 0};
    launch_own({k_condition_ptx, "weft_set_condition"}, cuda_, *condition.stream, 1, 1, &plan);
}

// Both values are set before a body may change the array. The driver rejects a graph with a handle that no node uses,
// so there is exactly one per branch.
void CudaRecording::begin_condition(const Array& condition, ConditionKind kind, Branches branches) {
    require_conditions(kind);
    auto& stream = static_cast<CudaStream&>(current_stream(cuda_));
    const CudaContext::Inside inside(cuda_);
    const InsertionPoint point = insertion_point(handle(stream));
    Condition made{&stream, kind, condition.view.data};
    const bool is_there[] = {branches.on_true, branches.on_false};
    for (std::size_t i = 0; i < 2; ++i)
        if (is_there[i])
            cuda_.check(driver().cuGraphConditionalHandleCreate(&made.handles[i], point.graph, cuda_.context(), 0, 0),
                        "cuGraphConditionalHandleCreate");
    set_condition(made, /*for_all=*/true);
    conditions_.push_back(made);
    has_conditions_ = true;
}

void CudaRecording::begin_branch(bool on_true) {
    const CudaContext::Inside inside(cuda_);
    const Condition& condition = conditions_.back();
    const CUstream outer = handle(*condition.stream);
    const InsertionPoint point = insertion_point(outer);
    CUgraphNodeParams wanted{};
    wanted.type = kConditionalNode;
    wanted.conditional = {condition.handles[on_true ? 0 : 1],
                          condition.kind == ConditionKind::repeat ? kConditionWhile : kConditionIf, 1, nullptr,
                          cuda_.context()};
    Body body{condition.stream, nullptr, nullptr, {}};
    cuda_.check(
        driver().cuGraphAddNode_v2(&body.node, point.graph, point.last.data(), nullptr, point.last.size(), &wanted),
        "cuGraphAddNode");
    cuda_.check(driver().cuStreamUpdateCaptureDependencies_v2(outer, &body.node, nullptr, 1, kSetDependencies),
                "cuStreamUpdateCaptureDependencies");
    cuda_.check(driver().cuStreamCreate(&body.handle, kNonBlocking), "cuStreamCreate");
    const CUresult begun =
        driver().cuStreamBeginCaptureToGraph(body.handle, wanted.conditional.bodies[0], nullptr, nullptr, 0, mode_);
    if (begun != kSuccess) destroy_quietly(driver().cuStreamDestroy_v2, body.handle);
    cuda_.check(begun, "cuStreamBeginCaptureToGraph");
    body.described = std::exchange(nodes_, {});
    bodies_.push_back(std::move(body));
}

std::shared_ptr<Graph> CudaRecording::end_branch() {
    const CudaContext::Inside inside(cuda_);
    const Condition& condition = conditions_.back();
    if (bodies_.empty() || bodies_.back().stream != condition.stream)
        throw InternalError("a branch ends that has not begun");
    std::exception_ptr problem;
    try {
        if (condition.kind == ConditionKind::repeat) set_condition(condition, /*for_all=*/false);
    } catch (...) {
        problem = std::current_exception();
    }
    Body body = std::move(bodies_.back());
    bodies_.pop_back();
    CUgraph graph = nullptr;
    const CUresult ended = driver().cuStreamEndCapture(body.handle, &graph);
    destroy_quietly(driver().cuStreamDestroy_v2, body.handle);
    auto described = std::make_shared<DescribedGraph>(cuda_, std::exchange(nodes_, std::move(body.described)));
    if ((problem || ended != kSuccess) && lost_.empty()) lost_ = "the body of a condition could not be captured";
    if (problem) std::rethrow_exception(problem);
    cuda_.check(ended, "cuStreamEndCapture");
    const InsertionPoint point = insertion_point(handle(*body.stream));
    if (point.last != std::vector<CUgraphNode>{body.node}) {
        lost_ = "another library has put work into the stream while the body of a condition was captured";
        throw UsageError("capture_if()", lost_ +
                                             ", which would be done outside of it. help: only Weft's work in bodies "
                                             "on '" +
                                             cuda_.alias + "'");
    }
    return described;
}

void CudaRecording::end_condition(bool is_complete) {
    conditions_.pop_back();
    if (!is_complete && lost_.empty()) lost_ = "an exception has left the body of a condition";
}

}  // namespace weft::runtime
