// Python's lock, for threads that worked without it.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

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

}  // namespace weft::bindings
