#pragma once
// What the driver keeps: devices, contexts, modules, streams, events, pools. A handle is the address of one of these;
// it is looked up before it is used, so that a handle that was never given, or was destroyed, is an error and no crash.
//
// What is put into a stream is kept as a task (task.h) until somebody waits for it, or becomes a node of a graph where
// the stream is captured (graph.h).
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/driver/abi.h"
#include "emulator/driver/capture.h"
#include "emulator/driver/settings.h"
#include "emulator/driver/task.h"
#include "emulator/engine/block.h"

namespace weft::emulator {

constexpr int kPtxVersion = 90;

struct Stream {
    Context* context = nullptr;
    unsigned int flags = 0;
    int priority = 0;
    TaskPtr last;                      // null: nothing was put into it
    std::shared_ptr<Capture> capture;  // null: its work is done
    std::vector<GraphNode*> frontier;  // while it is captured: what its next node comes after

    bool is_blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }
};

struct Event {
    Context* context = nullptr;
    unsigned int flags = 0;
    TaskPtr record;                    // the last one; null: never, or in a capture
    std::shared_ptr<Capture> capture;  // that it was recorded in, last
    std::vector<GraphNode*> frontier;
};

struct Kernel {
    Module* module = nullptr;
    const CodeFunction* code = nullptr;
    uint32_t dynamic_shared = 0;  // the most that a launch may ask for
    bool large_clusters = false;  // of more than 8 blocks
};

struct Module {
    Context* context = nullptr;
    std::shared_ptr<Program> program;
    std::map<std::string, Kernel> kernels;
};

// Of cuLinkCreate().
struct Link {
    std::string text;
    std::vector<char> image;
};

struct Pool {
    int device = 0;
    uint64_t threshold = 0, used = 0, most = 0, most_reserved = 0;

    uint64_t reserved() const { return used + AddressSpace::instance().held(device); }
    // What is free beyond the threshold, or beyond `kept`, goes back to the device.
    void trim(uint64_t kept) const { AddressSpace::instance().trim_held(device, kept - std::min(kept, used)); }
    bool is_open_to[AddressSpace::kDevices] = {};
};

// Memory that a pool gave.
struct Pooled {
    Pool* pool;
    uint64_t bytes;
};

struct Context {
    int device = 0;
    bool primary = false;
    unsigned int flags = 0;
    CUresult failed = CUDA_SUCCESS;  // of a kernel: every later call gives it
    std::string fault;               // what the kernel did
    Stream default_stream, thread_stream;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Stream*, std::unique_ptr<Stream>> streams;
    std::map<Event*, std::unique_ptr<Event>> events;
    std::vector<TaskPtr> orphans;  // the last ones of blocking streams that were destroyed
    std::set<Context*> peers;
};

struct Device {
    std::unique_ptr<Context> primary;  // once it is retained
    unsigned int primary_uses = 0, primary_flags = 0;
    Pool pool;
    Pool* current_pool = nullptr;
};

class State {
public:
    static State& instance();

    std::recursive_mutex mutex;
    bool initialised = false;
    bool profiles = false;         // between cuProfilerStart() and cuProfilerStop()
    unsigned largest_cluster = 0;  // of any launch
    bool forked = false;           // the process is a child of the one that called cuInit
    Device devices[AddressSpace::kDevices];
    std::set<Context*> contexts;
    std::vector<std::unique_ptr<Context>> made;  // besides the primary ones; those that were destroyed too

    // Not in a child process either: as with the real driver.
    bool is_usable() const { return initialised && !forked; }
    Context* current() const;
    void make_current(Context* context);
    std::vector<Context*>& stack();
    void destroy(Context& context);
    Stream* stream(CUstream handle);
    Event* event(CUevent handle);
    Module* module(CUmodule handle);
    Kernel* kernel(CUfunction handle);
    Link& link(CUlinkState handle);
    std::map<Link*, std::unique_ptr<Link>> links;
    std::map<CUdeviceptr, Pooled> pooled;
    std::map<CUdeviceptr, Context*> of_contexts;                   // plain memory of those besides the primary ones
    std::set<CUdeviceptr> going;                                   // what pending tasks free
    std::set<CUdeviceptr> of_graphs;                               // what graphs allocate
    std::map<GraphExec*, std::shared_ptr<GraphExec>> executables;  // launches that are pending keep them, too
    std::map<Graph*, std::unique_ptr<Graph>> graphs;
    static int architecture() { return Settings::of_environment().architecture; }
    static int version() { return Settings::of_environment().version; }
    // The most that a warp may execute of one block of a kernel; 0: no limit.
    uint64_t most_instructions() const { return most_instructions_; }
    uint64_t set_most_instructions(uint64_t most) { return most_instructions_.exchange(most); }

private:
    State();
    std::atomic<uint64_t> most_instructions_ = 0;
};

// Thrown by entries, which return it.
struct Failure {
    CUresult result;
};
[[noreturn]] inline void fail(CUresult result) { throw Failure{result}; }
inline void require(bool holds, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (!holds) fail(otherwise);
}

// The current context; without one, or after a fault, an error.
Context& current_context();
// Puts work into a stream; it refers to nothing of its caller. Null where the stream is captured: then it has become a
// node of the graph.
TaskPtr submit(CUstream stream, int node_type, Work work, const TaskPtr& after = nullptr);
// After somebody has waited: pools keep what their thresholds say.
void trim_pools();
// What a kernel or a copy did wrong when its turn came.
void note_fault(Context& context, CUresult result, const std::string& text);
void note_fault(Context& context, const Report& report);
// Why a call fails that does no harm, in words: for the thread that asks next.
void note_refusal(const std::string& text);
void forget_refusal();
// Whether this call of a function has to fail (failures.h), and with what.
CUresult wanted_failure(const char* function);

// Runs an entry of the driver: nothing is thrown across the border.
template <class F>
CUresult entry(F body, bool needs_initialisation = true, const char* function = __builtin_FUNCTION()) {
    try {
        if (needs_initialisation) forget_refusal();
        if (needs_initialisation) require(State::instance().is_usable(), CUDA_ERROR_NOT_INITIALIZED);
        if (const CUresult wanted = wanted_failure(function); wanted != CUDA_SUCCESS) return wanted;
        body();
        return CUDA_SUCCESS;
    } catch (const Failure& failure) {
        return failure.result;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

// The same, with the state locked. Nothing in it may wait for work.
template <class F>
CUresult locked(F body, const char* function = __builtin_FUNCTION()) {
    return entry(
        [&] {
            const std::lock_guard lock(State::instance().mutex);
            body(State::instance());
        },
        true, function);
}

}  // namespace weft::emulator
