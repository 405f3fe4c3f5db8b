// The capture of streams.
#include "driver/capture.h"

#include <algorithm>

#include "driver/state.h"

namespace weft::emulator {

namespace {

// The thread's own capture mode: cuThreadExchangeStreamCaptureMode.
thread_local int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

template <class F>
void for_all_streams(Context& context, F body) {
    body(context.default_stream);
    body(context.thread_stream);
    for (const auto& [handle, stream] : context.streams) body(*stream);
}

std::set<Capture*> captures_where(const std::function<bool(const Stream&)>& holds) {
    std::set<Capture*> found;
    for (Context* context : State::instance().contexts) {
        for_all_streams(*context, [&](Stream& stream) {
            if (stream.capture && holds(stream)) found.insert(stream.capture.get());
        });
    }
    return found;
}

[[noreturn]] void invalidate(const std::set<Capture*>& captures, CUresult result) {
    for (Capture* capture : captures) capture->is_invalid = true;
    fail(result);
}

// Whether all work that the capture has in other streams precedes this stream's frontier.
bool is_joined(const Capture& capture) {
    std::set<const GraphNode*> before;
    std::vector<const GraphNode*> left(capture.origin->frontier.begin(), capture.origin->frontier.end());
    while (!left.empty()) {
        const GraphNode* node = left.back();
        left.pop_back();
        if (before.insert(node).second) left.insert(left.end(), node->after.begin(), node->after.end());
    }
    for (const Stream* stream : capture.streams) {
        if (!std::ranges::all_of(stream->frontier, [&](const GraphNode* node) { return before.contains(node); }))
            return false;
    }
    return true;
}

void end(const std::shared_ptr<Capture>& capture) {
    for (Stream* stream : capture->streams) {
        stream->capture = nullptr;
        stream->frontier.clear();
    }
    capture->streams.clear();
}

// Begins a capture into an existing graph, or into a new one if `into` is null.
void begin(State& state, CUstream handle, Graph* into, std::vector<GraphNode*> frontier, int mode) {
    require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    Stream& stream = *state.stream(handle);
    require(&stream != &stream.context->default_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(!stream.capture, CUDA_ERROR_ILLEGAL_STATE);
    static uint64_t last_id = 0;
    auto capture = std::make_shared<Capture>();
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    if (!into) {
        auto made = std::make_unique<Graph>();
        made->context = stream.context;
        into = made.get();
        state.graphs[into] = std::move(made);
    }
    capture->graph = into;
    capture->streams = {&stream};
    stream.capture = std::move(capture);
    stream.frontier = std::move(frontier);
}

CUresult end_capture(State& state, Stream& stream, CUgraph* graph) {
    *graph = nullptr;
    require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    const std::shared_ptr<Capture> capture = stream.capture;
    require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == std::this_thread::get_id(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const CUresult result = capture->is_invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : !is_joined(*capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                   : CUDA_SUCCESS;
    end(capture);
    if (result == CUDA_SUCCESS)
        *graph = capture->graph;
    else
        state.graphs.erase(capture->graph);
    return result;
}

}  // namespace

GraphNode* add_node(Stream& stream, int type, Work work) {
    Capture& capture = *stream.capture;
    require(!capture.is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // A launch that begins early comes after all that the launch in front comes after; later nodes wait for both.
    GraphNode* const before = stream.frontier.size() == 1 ? stream.frontier.front() : nullptr;
    const bool is_early = work.begins_early && before && before->work.lets_others_begin;
    GraphNode* node = capture.graph->add(type, is_early ? before->after : stream.frontier, std::move(work));
    stream.frontier = {node};
    if (is_early) stream.frontier.push_back(before);
    return node;
}

void add_event_node(Stream& stream, int type, CUevent event) { add_node(stream, type, nullptr)->event = event; }

void require_no_implicit_capture(Stream& stream) {
    Context& context = *stream.context;
    if (&stream != &context.default_stream) return;
    const std::set<Capture*> blocked = captures_where([&](const Stream& other) {
        return other.context == &context && other.is_blocking() && !other.capture->is_invalid;
    });
    if (!blocked.empty()) invalidate(blocked, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void require_no_unsafe_capture() {
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
    const std::lock_guard lock(State::instance().mutex);
    const std::set<Capture*> endangered = captures_where([](const Stream& stream) {
        const Capture& capture = *stream.capture;
        if (capture.is_invalid || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
        return capture.thread == std::this_thread::get_id() ||
               (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
    if (!endangered.empty()) invalidate(endangered, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void require_not_captured(Stream& stream) {
    if (stream.capture) invalidate({stream.capture.get()}, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require_no_implicit_capture(stream);
}

void require_nothing_captured(Context& context) {
    const std::set<Capture*> all = captures_where([&](const Stream& stream) { return stream.context == &context; });
    if (!all.empty()) invalidate(all, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void leave_capture(Stream& stream) {
    if (!stream.capture) return;
    const std::shared_ptr<Capture> capture = stream.capture;
    capture->is_invalid = true;
    if (capture->origin == &stream) {
        State::instance().graphs.erase(capture->graph);
        end(capture);
    } else {
        capture->streams.erase(&stream);
    }
}

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    return locked([&](State& state) { begin(state, stream, nullptr, {}, mode); });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
    return locked([&](State& state) {
        require(graph && (dependencies || count == 0));
        for (size_t i = 0; i < count; ++i) require(dependencies[i] && dependencies[i]->graph == graph);
        begin(state, stream, graph, {dependencies, dependencies + count}, mode);
    });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    return locked([&](State& state) {
        require(graph);
        const CUresult result = end_capture(state, *state.stream(stream), graph);
        require(result == CUDA_SUCCESS, result);
    });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
    return locked([&](State& state) {
        require(status);
        Stream& found = *state.stream(stream);
        if (&found == &found.context->default_stream) require_no_implicit_capture(found);
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (!found.capture) return;
        const bool is_invalid = found.capture->is_invalid;
        *status = is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (is_invalid) return;
        if (id) *id = found.capture->id;
        if (graph) *graph = found.capture->graph;
        if (dependencies) *dependencies = found.frontier.data();
        if (edges) *edges = nullptr;
        if (count) *count = found.frontier.size();
    });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return cuStreamGetCaptureInfo_v3(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies, const CUgraphEdgeData*,
                                              size_t count, unsigned int flags) {
    return locked([&](State& state) {
        require((dependencies || count == 0) && flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
        Stream& found = *state.stream(stream);
        require(found.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
        require(!found.capture->is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        for (size_t i = 0; i < count; ++i) require(dependencies[i] && dependencies[i]->graph == found.capture->graph);
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) found.frontier.clear();
        found.frontier.insert(found.frontier.end(), dependencies, dependencies + count);
    });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return entry([&] {
        require(mode && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        std::swap(*mode, thread_mode);
    });
}

}  // extern "C"

}  // namespace weft::emulator
