// The Python classes of what runtime/spatial builds.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "program/variable.h"

namespace weft::bindings {

namespace nb = nanobind;

// Programs may call it, as they may in release 1.19, also on objects that were never initialised.
template <typename Class>
void define_del(Class& of) {
    of.def("__del__", [](nb::handle) {}, "Does nothing: the memory is freed with the last reference.");
}

void bind_hash_grid(nb::module_& m);
void bind_mesh(nb::module_& m);

// Points, velocities (null where there are none) and indices of the mesh with this id, shown to kernels with the
// gradients that they have now; empty where there is no such mesh. For callers with the GIL.
std::vector<program::Variable*> arrays_of_mesh(std::uint64_t id);
void bind_volume(nb::module_& m);

}  // namespace weft::bindings
