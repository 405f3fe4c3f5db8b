// The base of wp.Tape: its entries, and the other parts of the tape that are C++.
#pragma once

#include <nanobind/nanobind.h>

#include <unordered_map>

#include "bindings/gradients/python_launch.h"
#include "program/tape/tape.h"

namespace weft::bindings {

struct PyTape {
    program::Tape tape;
    // Python objects of entries, made at their first use; the tape keeps them as long as the entries. The collector
    // finds the members of an entry through its object, if there is one, else through the tape, and never twice.
    std::unordered_map<const program::TapeEntry*, nb::object> objects;
    // A Python class handles launches and writes itself: they are passed to its _record_launch() and so on.
    bool takes_all = false;
};

// The tape that records this thread's work, or null: the Python object, and the PyTape in it.
PyObject* active_tape();
PyTape* active_recorder();
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

void bind_tape(nb::module_& m);
void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
