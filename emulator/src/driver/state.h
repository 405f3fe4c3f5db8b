#pragma once
// The driver's state: devices, contexts, modules, streams, events, pools. A handle is the address of one of these. It
// is looked up before each use, so that an invalid or destroyed handle is an error and no crash.
//
// Work in a stream is a task (work.h), which is kept until a thread waits for it (task.h). During a capture, it becomes
// a node of a graph (capture.h).
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/abi.h"
#include "driver/graph.h"
#include "driver/settings.h"
#include "driver/work.h"
#include "engine/launch.h"
#include "memory/fault.h"

namespace weft::emulator {

constexpr int kPtxVersion = 90;  // the newest that the emulated device reads

struct Capture {
    uint64_t id = 0;
    int mode = 0;
    std::thread::id thread;
    Stream* origin = nullptr;
    Graph* graph = nullptr;
    std::set<Stream*> streams;
    bool is_invalid = false;
};

struct Stream {
    Context* context = nullptr;
    unsigned int flags = 0;
    int priority = 0;
    TaskPtr last;                      // null: no work yet
    std::shared_ptr<Capture> capture;  // null: the stream is not being captured
    std::vector<GraphNode*> frontier;  // during a capture: predecessors of its next node

    bool is_blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }
};

// A descriptor of an open file, or none.
class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~File();
    explicit operator bool() const { return descriptor_ >= 0; }
    int descriptor() const { return descriptor_; }

private:
    int descriptor_ = -1;
};

struct Event {
    Context* context = nullptr;
    unsigned int flags = 0;
    TaskPtr record;                    // the last record; null: never, or in a capture
    std::shared_ptr<Capture> capture;  // the capture of its last record
    std::vector<GraphNode*> frontier;
    File shared;  // that other processes open by the handle of the event (ipc.cpp)

    bool is_interprocess() const { return flags & CU_EVENT_INTERPROCESS; }
};

struct Kernel {
    Module* module = nullptr;
    const CodeFunction* code = nullptr;
    uint32_t dynamic_shared = 0;  // limit of a launch's dynamic shared memory, in bytes
    bool large_clusters = false;  // of more than 8 blocks
    // Of a thread; empty until they are asked for.
    mutable std::optional<int> registers;
    mutable std::optional<uint64_t> local_bytes;
};

struct Module {
    Context* context = nullptr;
    std::shared_ptr<Program> program;
    std::map<std::string, Kernel> kernels;
    bool waits = false;              // some code has griddepcontrol.wait
    bool lets_others_begin = false;  // some code has griddepcontrol.launch_dependents
};

// The state of cuLinkCreate().
struct Link {
    std::string text;
    std::vector<char> image;
};

struct Pool {
    int device = 0;
    uint64_t threshold = 0, used = 0, most = 0, most_reserved = 0;

    uint64_t reserved() const { return used + AddressSpace::instance().held(device); }
    // Returns free memory beyond the threshold, or beyond `kept`, to the device.
    void trim(uint64_t kept) const { AddressSpace::instance().trim_held(device, kept - std::min(kept, used)); }
    bool is_open_to[AddressSpace::kDevices] = {};
};

// Memory from a pool.
struct Pooled {
    Pool* pool;
    uint64_t bytes;
};

struct Context {
    int device = 0;
    bool primary = false;
    unsigned int flags = 0;
    CUresult failed = CUDA_SUCCESS;  // set by a kernel's fault: every later call returns it
    std::string fault;               // description of the fault
    Stream default_stream, thread_stream;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Stream*, std::unique_ptr<Stream>> streams;
    std::map<Event*, std::unique_ptr<Event>> events;
    std::vector<TaskPtr> orphans;  // the last tasks of blocking streams that were destroyed
    std::set<Context*> peers;
};

struct Device {
    std::unique_ptr<Context> primary;  // null until it is retained
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
    std::vector<std::unique_ptr<Context>> made;  // other than the primary ones; includes destroyed ones

    // False in child processes too, as with the real driver.
    bool is_usable() const { return initialised && !forked; }
    Context* current() const;
    void make_current(Context* context);
    std::vector<Context*>& stack();
    Stream* stream(CUstream handle);
    Event* event(CUevent handle);
    Module* module(CUmodule handle);
    Kernel* kernel(CUfunction handle);
    Link& link(CUlinkState handle);
    std::map<Link*, std::unique_ptr<Link>> links;
    std::map<CUdeviceptr, Pooled> pooled;
    std::map<CUdeviceptr, Context*> of_contexts;                   // plain memory of contexts other than the primary
                                                                   // ones
    std::set<CUdeviceptr> going;                                   // memory that pending tasks free
    std::set<CUdeviceptr> of_graphs;                               // memory that graphs allocate
    std::map<GraphExec*, std::shared_ptr<GraphExec>> executables;  // pending launches own them too
    std::map<Graph*, std::unique_ptr<Graph>> graphs;
    static int architecture() { return Settings::of_environment().architecture; }
    static int version() { return Settings::of_environment().version; }
    // Limit of instructions that a warp executes in one block of a kernel; 0: no limit.
    uint64_t most_instructions() const { return most_instructions_; }
    uint64_t set_most_instructions(uint64_t most) { return most_instructions_.exchange(most); }

private:
    State();
    std::atomic<uint64_t> most_instructions_ = 0;
};

// Thrown by entries; entry() returns its result.
struct Failure {
    CUresult result;
};
[[noreturn]] inline void fail(CUresult result) { throw Failure{result}; }
inline void require(bool holds, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (!holds) fail(otherwise);
}

// The current context. Fails if there is none, or after a fault.
Context& current_context();
// To be called after a wait: trims pools to their thresholds.
void trim_pools();
// Notes a fault of a kernel or a copy at its run.
void note_fault(Context& context, CUresult result, const std::string& text);
void note_fault(Context& context, const Report& report);
// Notes in words why a call failed without a fault, for the next query of this thread.
void note_refusal(const std::string& text);
void forget_refusal();
// The injected failure of this call of a function (failures.h), or success.
CUresult wanted_failure(const char* function);

// Runs the body of a driver function, and turns exceptions into results.
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

// entry() with the state locked. The body must not wait for work.
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
