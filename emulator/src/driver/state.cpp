#include "driver/state.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

namespace weft::emulator {

File::~File() {
    if (descriptor_ >= 0) close(descriptor_);
}

State::State() {
    const Settings& settings = Settings::of_environment();
    most_instructions_ = settings.most_instructions;
    AddressSpace::instance().set_total(settings.memory);
    AddressSpace::instance().set_race_checks(settings.finds_races);
    pthread_atfork(nullptr, nullptr, [] { State::instance().forked = true; });
    for (int i = 0; i < AddressSpace::kDevices; ++i) {
        devices[i].pool.device = i;
        devices[i].current_pool = &devices[i].pool;
    }
}

State& State::instance() {
    static State* state = new State;  // never destroyed: threads may call while the process ends
    return *state;
}

std::vector<Context*>& State::stack() {
    thread_local std::vector<Context*> contexts;
    return contexts;
}

Context* State::current() const {
    return const_cast<State*>(this)->stack().empty() ? nullptr : const_cast<State*>(this)->stack().back();
}

void State::make_current(Context* context) {
    std::vector<Context*>& all = stack();
    if (!all.empty()) all.pop_back();
    if (context) all.push_back(context);
}

Context& current_context() {
    State& state = State::instance();
    Context* context = state.current();
    require(context, CUDA_ERROR_INVALID_CONTEXT);
    require(state.contexts.contains(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    require(context->failed == CUDA_SUCCESS, context->failed);
    return *context;
}

// 0 and 1 are the legacy stream, 2 is that of the thread.
Stream* State::stream(CUstream handle) {
    Context& context = current_context();
    const auto number = reinterpret_cast<uintptr_t>(handle);
    if (number < 2) return &context.default_stream;
    if (number == 2) return &context.thread_stream;
    for (Context* owner : contexts) {
        if (owner->streams.contains(handle)) return handle;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

Event* State::event(CUevent handle) {
    for (Context* owner : contexts) {
        if (owner->events.contains(handle)) return handle;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

Module* State::module(CUmodule handle) {
    for (Context* owner : contexts) {
        if (owner->modules.contains(handle)) return handle;
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

Link& State::link(CUlinkState handle) {
    const auto found = links.find(handle);
    if (found == links.end()) fail(CUDA_ERROR_INVALID_HANDLE);
    return *found->second;
}

Kernel* State::kernel(CUfunction handle) {
    for (Context* owner : contexts) {
        for (const auto& [address, module] : owner->modules) {
            for (auto& [name, kernel] : module->kernels) {
                if (&kernel == handle) return handle;
            }
        }
    }
    fail(CUDA_ERROR_INVALID_HANDLE);
}

namespace {

CUresult result_of(FaultKind kind) {
    switch (kind) {
        case FaultKind::OutOfBounds:
        case FaultKind::UseAfterFree:
        case FaultKind::HostAddress:
        case FaultKind::PeerAccess:
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        case FaultKind::Misaligned:
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        case FaultKind::WrongSpace:
            return CUDA_ERROR_INVALID_ADDRESS_SPACE;
        case FaultKind::StackOverflow:
            return CUDA_ERROR_HARDWARE_STACK_ERROR;
        case FaultKind::BadCall:
            return CUDA_ERROR_INVALID_PC;
        case FaultKind::Assertion:
            return CUDA_ERROR_ASSERT;
        case FaultKind::Timeout:
            return CUDA_ERROR_LAUNCH_TIMEOUT;
        case FaultKind::Unsupported:
            return CUDA_ERROR_ILLEGAL_INSTRUCTION;
        default:
            return CUDA_ERROR_LAUNCH_FAILED;
    }
}

}  // namespace

void note_fault(Context& context, CUresult result, const std::string& text) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    context.failed = result;
    context.fault = text;
}

void note_fault(Context& context, const Report& report) { note_fault(context, result_of(report.kind), report.text); }

namespace {

std::string& refusal() {
    thread_local std::string text;
    return text;
}

}  // namespace

void note_refusal(const std::string& text) { refusal() = text; }
void forget_refusal() {
    if (!refusal().empty()) refusal().clear();
}

extern "C" const char* weftEmulatedLastFault() {
    thread_local std::string text;
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    const Context* const context = state.current();
    const bool has_failed = context && context->failed != CUDA_SUCCESS;
    text = !refusal().empty() ? refusal() : has_failed ? context->fault : "";
    return text.c_str();
}

}  // namespace weft::emulator
