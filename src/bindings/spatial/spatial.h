// The Python classes of the objects in runtime/spatial.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "program/tape/variable.h"

namespace weft::bindings {

namespace nb = nanobind;

// Programs may call __del__, also on objects that were never initialised, as in release 1.19.
template <typename Class>
void define_del(Class& of) {
    of.def("__del__", [](nb::handle) {}, "Does nothing: the memory is freed with the last reference.");
}

void bind_hash_grid(nb::module_& m);
void bind_mesh(nb::module_& m);

// Points, velocities (null if there are none) and indices of the mesh with this id, shown to kernels with their present
// gradients; empty if there is no such mesh. The caller has the GIL.
std::vector<program::Variable*> arrays_of_mesh(std::uint64_t id);
void bind_volume(nb::module_& m);
void bind_texture(nb::module_& m);

}  // namespace weft::bindings
