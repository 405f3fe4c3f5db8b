// The Python arguments of a launch, packed: for adjoints, forward mode, and launches that a tape is told of.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/launch/launch.h"

namespace weft::bindings {

class Packed {
public:
    // Any run with the block may write to gradients of the arrays (program::mark_gradient_escaped()).
    Packed(nb::handle kernel_object, nb::list given, nb::handle device_object, const char* api);

    // The gradients that exist, by parameter.
    std::vector<transform::Gradient> gradients();
    // The same block with copies in place of the arrays that have one.
    std::vector<std::byte> with_copies(nb::list copies) const;
    // Replaces the gradients of the arrays, also of those in structs; each has the layout of its array.
    void use_gradients(nb::list gradients);
    // Gradients of numbers, laid out like the arguments: from values, and from structs of the parameter's type; others
    // are ignored. `which` has the parameters with one; it is empty if there is none.
    std::vector<std::byte> number_gradients(nb::list gradients, std::vector<bool>& which) const;
    void take_number_gradients(nb::list gradients, const std::vector<bool>& which,
                               const std::vector<std::byte>& bytes) const;
    // The tangents of the arguments, laid out like them; zeros for arguments without one.
    std::vector<std::byte> tangents(nb::list given);

    nb::object kernel_object;  // the one that runs: an instance, if it is generic
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
