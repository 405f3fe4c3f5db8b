// Streams and events.
#include <algorithm>
#include <cstdio>

#include "driver/capture.h"
#include "driver/state.h"
#include "driver/submit.h"
#include "driver/task.h"
#include "engine/system.h"

namespace weft::emulator {

namespace {

CUresult elapsed(State& state, float* milliseconds, CUevent begin, CUevent end) {
    require(milliseconds);
    const Event &first = *state.event(begin), &second = *state.event(end);
    require(!first.capture && !second.capture, CUDA_ERROR_CAPTURED_EVENT);
    require(!((first.flags | second.flags) & CU_EVENT_DISABLE_TIMING) && first.record && second.record,
            CUDA_ERROR_INVALID_HANDLE);
    if (!first.record->done || !second.record->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(second.record->time - first.record->time).count();
    return CUDA_SUCCESS;
}

void write_printed() {
    const std::string printed = take_printed();
    if (printed.empty()) return;
    std::fwrite(printed.data(), 1, printed.size(), stdout);
    std::fflush(stdout);
}

void create(CUstream* stream, unsigned int flags, int priority) {
    require(stream && flags <= CU_STREAM_NON_BLOCKING);
    Context& context = current_context();
    auto made = std::make_unique<Stream>();
    made->context = &context;
    made->flags = flags;
    made->priority = std::max(-5, std::min(0, priority));
    *stream = made.get();
    context.streams[*stream] = std::move(made);
}

// Fails if the awaited work, or work before it, has failed.
void require_no_fault() {
    const std::lock_guard lock(State::instance().mutex);
    current_context();
}

// The last task of the stream; null if it has none.
TaskPtr last_task(CUstream handle) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    Stream& stream = *state.stream(handle);
    require_not_captured(stream);
    return stream.last;
}

void wait_for(Stream& stream, Event& event) {
    if (event.capture) {
        Capture& capture = *event.capture;
        // the event belongs to a capture that has ended
        require(!capture.streams.empty(), CUDA_ERROR_CAPTURED_EVENT);
        require(!capture.is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (!stream.capture) {
            require(&stream != &stream.context->default_stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            stream.capture = event.capture;
            capture.streams.insert(&stream);
        }
        if (stream.capture != event.capture) {
            stream.capture->is_invalid = capture.is_invalid = true;
            fail(CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        for (GraphNode* node : event.frontier) {
            if (!std::ranges::count(stream.frontier, node)) stream.frontier.push_back(node);
        }
        return;
    }
    if (stream.capture) {
        if (!event.record) return;
        stream.capture->is_invalid = true;
        fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    require_no_implicit_capture(stream);
    Tasks::instance().put(stream, nullptr, event.record);
}

// The task that recorded the event last, or null, for a call that waits or asks: neither is possible for an event of a
// capture, or during one.
TaskPtr record_to_wait_for(CUevent event) {
    TaskPtr record;
    {
        State& state = State::instance();
        const std::lock_guard lock(state.mutex);
        current_context();
        require(!state.event(event)->capture, CUDA_ERROR_CAPTURED_EVENT);
        record = state.event(event)->record;
    }
    require_no_unsafe_capture();
    return record;
}

}  // namespace

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    return locked([&](State&) { create(stream, flags, priority); });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
    return locked([&](State&) { create(stream, flags, 0); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    return locked([&](State& state) {
        // pending work in the stream will still be done
        for (Context* owner : state.contexts) {
            const auto found = owner->streams.find(stream);
            if (found == owner->streams.end()) continue;
            leave_capture(*stream);
            if (stream->is_blocking() && stream->last && !stream->last->done) owner->orphans.push_back(stream->last);
            owner->streams.erase(found);
            return;
        }
        fail(CUDA_ERROR_INVALID_HANDLE);
    });
}

CUresult cuStreamSynchronize(CUstream handle) {
    return entry([&] {
        const TaskPtr last = last_task(handle);
        require_no_unsafe_capture();
        Tasks::instance().finish(last);
        trim_pools();
        write_printed();
        require_no_fault();
    });
}

CUresult cuStreamQuery(CUstream handle) {
    return entry([&] {
        const TaskPtr last = last_task(handle);
        require_no_unsafe_capture();
        Tasks::instance().advance(last);
        require_no_fault();
        require(!last || last->done, CUDA_ERROR_NOT_READY);
    });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    return locked([&](State& state) {
        require(flags <= CU_EVENT_WAIT_EXTERNAL);
        Stream& in = *state.stream(stream);
        state.event(event);
        if (flags == 0) return wait_for(in, *event);
        require(in.capture != nullptr);
        add_event_node(in, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
    return locked([&](State& state) {
        require(context);
        *context = state.stream(stream)->context;
    });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
    return locked([&](State& state) {
        require(flags);
        *flags = state.stream(stream)->flags;
    });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
    return locked([&](State& state) {
        require(priority);
        *priority = state.stream(stream)->priority;
    });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    return entry([&] {
        require(function);
        submit(stream, CU_GRAPH_NODE_TYPE_HOST, [=] { function(data); });
    });
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
    return locked([&](State&) {
        require(event && flags <= 7);
        require(!(flags & CU_EVENT_INTERPROCESS) || (flags & CU_EVENT_DISABLE_TIMING));
        Context& context = current_context();
        auto made = std::make_unique<Event>();
        made->context = &context;
        made->flags = flags;
        *event = made.get();
        context.events[*event] = std::move(made);
    });
}

CUresult cuEventDestroy_v2(CUevent event) {
    return locked([&](State& state) {
        for (Context* owner : state.contexts) {
            if (owner->events.erase(event)) return;
        }
        fail(CUDA_ERROR_INVALID_HANDLE);
    });
}

// The work before the record of an event of several processes is done at once: another process that waits for the event
// could not run it.
CUresult cuEventRecord(CUevent event, CUstream stream) {
    TaskPtr awaited;
    const CUresult result = locked([&](State& state) {
        Event& found = *state.event(event);
        Stream& in = *state.stream(stream);
        require(in.context == found.context, CUDA_ERROR_INVALID_HANDLE);
        found.capture = in.capture;
        found.frontier = in.frontier;
        if (in.capture) {
            require(!in.capture->is_invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            found.record = nullptr;
            return;
        }
        require_no_implicit_capture(in);
        found.record = Tasks::instance().put(in, nullptr);
        if (found.is_interprocess()) awaited = found.record;
    });
    Tasks::instance().finish(awaited);
    return result;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    if (flags == 0) return cuEventRecord(event, stream);
    return locked([&](State& state) {
        require(flags == CU_EVENT_RECORD_EXTERNAL);
        const Event& found = *state.event(event);
        Stream& in = *state.stream(stream);
        require(in.context == found.context, CUDA_ERROR_INVALID_HANDLE);
        require(in.capture != nullptr);
        add_event_node(in, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    });
}

CUresult cuEventQuery(CUevent event) {
    return entry([&] {
        const TaskPtr record = record_to_wait_for(event);
        Tasks::instance().advance(record);
        require_no_fault();
        require(!record || record->done, CUDA_ERROR_NOT_READY);
    });
}

CUresult cuEventSynchronize(CUevent event) {
    return entry([&] {
        Tasks::instance().finish(record_to_wait_for(event));
        trim_pools();
        write_printed();
        require_no_fault();
    });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
    return locked([&](State& state) {
        const CUresult result = elapsed(state, milliseconds, begin, end);
        require(result == CUDA_SUCCESS, result);
    });
}

CUresult cuCtxSynchronize() {
    return entry([&] {
        const Context* context;
        {
            const std::lock_guard lock(State::instance().mutex);
            context = &current_context();
            require_nothing_captured(current_context());
        }
        Tasks::instance().finish_all(context);
        trim_pools();
        write_printed();
        require_no_fault();
    });
}

}  // extern "C"

}  // namespace weft::emulator
