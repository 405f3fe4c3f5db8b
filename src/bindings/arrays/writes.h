// Writes of the host to arrays: they are counted, and the tape that records this thread's work is told of them.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/values/array_value.h"

namespace weft::bindings {

// A tape, as far as arrays know it.
class WriteObserver {
public:
    // Before the host writes all elements of `to`: those of `from`, in the same order, or, if that is null, numbers
    // from elsewhere. Both are Python arrays.
    virtual void before_write(nb::handle to, nb::handle from) = 0;
    // Whether it is also told of a new array without a gradient that copies one with a gradient, which stops there.
    virtual bool observes_stopped_gradients() const = 0;

protected:
    ~WriteObserver() = default;
};

// The observer of this thread's writes, or null. Without one a report is one comparison.
WriteObserver* write_observer();
void set_write_observer(WriteObserver* observer);

// While it lives, this thread's writes have no observer.
class Unobserved {
public:
    Unobserved();
    ~Unobserved();
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;

private:
    WriteObserver* observer_;
};

// Reports a write to the observer, see before_write().
void record_write(nb::handle to, nb::handle from);
void record_write(PyArray& to);
// Counts a write to the array's memory: a tape that kept copies compares the counts.
void count_write(PyArray& array);

}  // namespace weft::bindings
