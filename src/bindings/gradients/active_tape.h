// The tape that records a thread's work: launches, writes of the host, operations on whole arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/gradients/tape.h"

namespace weft::bindings {

void set_active_tape(nb::handle tape);

// While it lives, no tape records this thread's work.
class Unrecorded {
public:
    Unrecorded();
    ~Unrecorded();
    Unrecorded(const Unrecorded&) = delete;
    Unrecorded& operator=(const Unrecorded&) = delete;

private:
    PyObject* tape_;
    PyTape* recorder_;
};

void bind_active_tape(nb::module_& m);

}  // namespace weft::bindings
