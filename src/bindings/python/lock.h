// Python's lock: threads that give it up, and threads that worked without it.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "program/host/host.h"

namespace weft::bindings {

// While the interpreter ends, Python (before 3.14) ends a thread that asks for its lock by unwinding it, which no
// destructor on the way survives. Such a thread sleeps here instead, until the process is gone.
template <typename Ask>
auto asked_for_lock(Ask&& ask) {
    try {
        return ask();
    } catch (const abi::__forced_unwind&) {
        for (;;) pause();
    }
}

// Holds the lock, whether the thread had it before or not.
class PythonLock {
public:
    PythonLock() : state_(asked_for_lock([] { return PyGILState_Ensure(); })) {}
    ~PythonLock() { PyGILState_Release(state_); }
    PythonLock(const PythonLock&) = delete;
    PythonLock& operator=(const PythonLock&) = delete;

private:
    PyGILState_STATE state_;
};

// `left`: the result of PyEval_SaveThread(), or null.
inline void take_back_lock(void* left) {
    if (left) asked_for_lock([&] { PyEval_RestoreThread(static_cast<PyThreadState*>(left)); });
}

// Runs `work` without the GIL if it moves enough bytes to make up for that.
template <typename Work>
void without_gil(std::int64_t size_bytes, Work&& work) {
    program::without_host(size_bytes, std::forward<Work>(work));
}

// While it lives, this thread runs a call that another library makes without Python's lock: it has no lock to give up,
// and looks for no signals.
class ForeignCall {
public:
    ForeignCall();
    ~ForeignCall();
    ForeignCall(const ForeignCall&) = delete;
    ForeignCall& operator=(const ForeignCall&) = delete;
};
bool is_foreign_call();
// To be called with the lock, before such a call does work that other threads of Python do.
void leave_foreign_call();

}  // namespace weft::bindings
