// Graphs: launches and other work that were captured, and run together.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_graphs(nanobind::module_& m);

}  // namespace weft::bindings
