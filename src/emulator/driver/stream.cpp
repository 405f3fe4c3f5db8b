// Streams and events. Work is done when it is submitted: a stream is always ready, an event holds the time of its
// record.
#include "emulator/driver/state.h"

namespace weft::emulator {

namespace {

template <class F>
CUresult locked(F body) {
    return entry([&] {
        const std::lock_guard lock(State::instance().mutex);
        body(State::instance());
    });
}

void elapsed(State& state, float* milliseconds, CUevent begin, CUevent end) {
    require(milliseconds);
    const Event &first = *state.event(begin), &second = *state.event(end);
    require(!((first.flags | second.flags) & CU_EVENT_DISABLE_TIMING) && first.recorded && second.recorded,
            CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = std::chrono::duration<float, std::milli>(second.time - first.time).count();
}

}  // namespace

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    return locked([&](State&) {
        require(stream && flags <= CU_STREAM_NON_BLOCKING);
        Context& context = current_context();
        auto made = std::make_unique<Stream>();
        made->context = &context;
        made->flags = flags;
        made->priority = std::max(-5, std::min(0, priority));
        *stream = made.get();
        context.streams[*stream] = std::move(made);
    });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUresult cuStreamDestroy_v2(CUstream stream) {
    return locked([&](State& state) {
        for (Context* owner : state.contexts) {
            if (owner->streams.erase(stream)) return;
        }
        fail(CUDA_ERROR_INVALID_HANDLE);
    });
}

CUresult cuStreamSynchronize(CUstream stream) {
    const CUresult known = locked([&](State& state) { state.stream(stream); });
    return known == CUDA_SUCCESS ? cuCtxSynchronize() : known;
}

CUresult cuStreamQuery(CUstream stream) {
    return locked([&](State& state) { state.stream(stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    return locked([&](State& state) {
        require(flags <= 1);
        state.stream(stream);
        state.event(event);
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
        submit(stream, [=] { function(data); });
    });
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
    return locked([&](State&) {
        require(event && flags <= 7);
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

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return locked([&](State& state) {
        Event& found = *state.event(event);
        require(state.stream(stream)->context == found.context, CUDA_ERROR_INVALID_HANDLE);
        found.recorded = true;
        found.time = std::chrono::steady_clock::now();
    });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    return flags <= 1 ? cuEventRecord(event, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventQuery(CUevent event) {
    return locked([&](State& state) {
        current_context();
        state.event(event);
    });
}

CUresult cuEventSynchronize(CUevent event) {
    const CUresult known = cuEventQuery(event);
    return known == CUDA_SUCCESS ? cuCtxSynchronize() : known;
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
    return locked([&](State& state) { elapsed(state, milliseconds, begin, end); });
}

}  // extern "C"

}  // namespace weft::emulator
