// What a launch is given in Python, packed: for adjoints, forward mode, and launches that a tape is told of.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/launch.h"

namespace weft::bindings {

class Packed {
public:
    // Whatever is run with the block may write to gradients of the arrays (program::show_gradient()).
    Packed(nb::handle kernel_object, nb::list given, nb::handle device_object, const char* api);

    // Those that there are.
    std::vector<transform::Gradient> gradients();
    // The same block, with the arrays that have a copy showing that.
    std::vector<std::byte> with_copies(nb::list copies) const;
    // Gradients in place of those of the arrays, also of those in structs, each laid out as its array.
    void use_gradients(nb::list gradients);
    // Those of numbers, laid out like the arguments: from values and structs of the type of their parameter; nothing
    // else is looked at. `which` tells for which parameters there is one; it is empty if there is none.
    std::vector<std::byte> number_gradients(nb::list gradients, std::vector<bool>& which) const;
    void take_number_gradients(nb::list gradients, const std::vector<bool>& which,
                               const std::vector<std::byte>& bytes) const;
    // The tangents of the arguments, laid out like them; of those that have none, zeros.
    std::vector<std::byte> tangents(nb::list given);

    nb::object kernel_object;  // the one that runs: of a generic kernel an instance
    PyKernel& kernel;
    const std::vector<ParameterPlan>& parameters;
    runtime::Device& device;
    std::vector<runtime::Array> holders;  // of memory that the block shows
    std::vector<PyObject*> values;
    std::vector<std::byte> block;

private:
    ArrayView* view(std::size_t i);
};

}  // namespace weft::bindings
