// Injected failures and counts of live objects, for tests of programs.
//
// WEFT_EMULATED_FAIL=cuMemAllocAsync:3:2 makes the third call of cuMemAllocAsync fail with the code 2.
#include "driver/failures.h"

#include <utility>

#include "driver/state.h"

namespace weft::emulator {

namespace {

struct InjectedFailure {
    std::mutex mutex;
    std::string function;  // as it is exported; empty: none
    uint64_t left = 0;     // calls until the one that fails
    CUresult result = CUDA_SUCCESS;
    std::map<std::string, uint64_t> calls;  // counted only if is_counting
    bool is_counting = false;
};

InjectedFailure& wanted() {
    static InjectedFailure* made = [] {
        auto* all = new InjectedFailure;  // never destroyed, as the state
        const Settings& settings = Settings::of_environment();
        all->function = settings.failing;
        all->left = settings.failing_call;
        all->result = settings.failure;
        return all;
    }();
    return *made;
}

}  // namespace

CUresult wanted_failure(const char* function) {
    InjectedFailure& all = wanted();
    const std::lock_guard lock(all.mutex);
    if (all.is_counting) ++all.calls[function];
    if (all.left == 0 || all.function != function || --all.left > 0) return CUDA_SUCCESS;
    return all.result;
}

extern "C" {

void weftEmulatedFail(const char* function, uint64_t call, int result) {
    InjectedFailure& all = wanted();
    const std::lock_guard lock(all.mutex);
    all.function = function ? function : "";
    all.left = call;
    all.result = CUresult(result);
}

uint64_t weftEmulatedCalls(const char* function) {
    InjectedFailure& all = wanted();
    const std::lock_guard lock(all.mutex);
    if (!function) {
        all.is_counting = true;
        all.calls.clear();
        return 0;
    }
    const auto found = all.calls.find(function);
    return found == all.calls.end() ? 0 : found->second;
}

uint64_t weftEmulatedAlive(const char* kind) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    const std::string name = kind;
    uint64_t count = 0;
    if (name == "links") return state.links.size();
    if (name == "graphs") return state.graphs.size();
    if (name == "executables") return state.executables.size();
    if (name == "allocations") return AddressSpace::instance().count(Allocation::Kind::Device);
    if (name == "pinned") return AddressSpace::instance().count(Allocation::Kind::Pinned);
    for (const Context* context : state.contexts) {
        if (name == "modules") count += context->modules.size();
        if (name == "streams") count += context->streams.size();
        if (name == "events") count += context->events.size();
    }
    return count;
}

bool weftEmulatedRecover() {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    bool found = false;
    for (Context* context : state.contexts)
        if (std::exchange(context->failed, CUDA_SUCCESS) != CUDA_SUCCESS) found = true;
    return found;
}

uint64_t weftEmulatedLimit(uint64_t most) { return State::instance().set_most_instructions(most); }

}  // extern "C"

}  // namespace weft::emulator
