#pragma once
// What the driver keeps: devices, contexts, modules, streams, events, pools. A handle is the address of one of these;
// it is looked up before it is used, so that a handle that was never given, or was destroyed, is an error and no crash.
//
// Streams run their work at once and in order. submit() is the place where work could be kept for later: a work that is
// submitted refers to nothing of its caller.
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
#include "emulator/engine/block.h"

namespace weft::emulator {

constexpr int kDriverVersion = 13000, kPtxVersion = 90;

struct Stream {
    Context* context = nullptr;
    unsigned int flags = 0;
    int priority = 0;
    std::recursive_mutex turn;  // one work at a time; a host function may submit
};

struct Event {
    Context* context = nullptr;
    unsigned int flags = 0;
    bool recorded = false;
    std::chrono::steady_clock::time_point time;
};

struct Kernel {
    Module* module = nullptr;
    const CodeFunction* code = nullptr;
    uint32_t dynamic_shared = 0;  // the most that a launch may ask for
};

struct Module {
    Context* context = nullptr;
    std::shared_ptr<Program> program;
    std::map<std::string, Kernel> kernels;
};

struct Pool {
    int device = 0;
    uint64_t threshold = 0, used = 0, most = 0;
};

struct Context {
    int device = 0;
    bool primary = false;
    unsigned int flags = 0;
    CUresult failed = CUDA_SUCCESS;  // of a kernel: every later call gives it
    Stream default_stream, thread_stream;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Stream*, std::unique_ptr<Stream>> streams;
    std::map<Event*, std::unique_ptr<Event>> events;
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
    Device devices[AddressSpace::kDevices];
    std::set<Context*> contexts;
    std::string last_fault;

    Context* current() const;
    void make_current(Context* context);
    std::vector<Context*>& stack();
    void destroy(Context& context);
    Stream* stream(CUstream handle);
    Event* event(CUevent handle);
    Module* module(CUmodule handle);
    Kernel* kernel(CUfunction handle);
    int architecture() const { return architecture_; }

private:
    State();
    int architecture_ = 90;
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
// Does the work in the stream's order, and takes down what kernels did wrong.
void submit(CUstream stream, const std::function<void()>& work);
void note_fault(Context& context, const Report& report);

// Runs an entry of the driver: nothing is thrown across the border.
template <class F>
CUresult entry(F body, bool needs_initialisation = true) {
    try {
        if (needs_initialisation) require(State::instance().initialised, CUDA_ERROR_NOT_INITIALIZED);
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

}  // namespace weft::emulator
