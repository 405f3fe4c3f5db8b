// The base of wp.Tape: its entries, and the other parts of the tape that are C++.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
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

// Records an operation on whole arrays and runs it. One that fails is not on the tape.
nb::object record_operation(PyTape& self, std::shared_ptr<PyOperation> operation, nb::handle run);

void bind_tape(nb::module_& m);
void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
