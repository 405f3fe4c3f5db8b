// The base of wp.Tape: what is recorded, and what else of the tape is C++.
#pragma once

#include <nanobind/nanobind.h>

#include <unordered_map>

#include "bindings/gradients/python_launch.h"
#include "program/tape.h"

namespace weft::bindings {

struct PyTape {
    program::Tape tape;
    // Those of entries that Python has asked for, which the tape keeps as long as the entries. So the collector finds
    // what an entry holds through its object, where there is one, and through the tape elsewhere, and never twice.
    std::unordered_map<const program::TapeEntry*, nb::object> objects;
    // A class of Python's does something else with what it records: that is handed to its _record_launch() and so on.
    bool takes_all = false;
};

// The tape that records what this thread does; null where none does. The Python object, and what is in it.
PyObject* active_tape();
PyTape* active_recorder();
void set_active_tape(nb::handle tape);

// While it lives, no tape records what this thread does.
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

void bind_tape(nb::module_& m);
void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
