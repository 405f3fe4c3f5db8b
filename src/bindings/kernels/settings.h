// wp.config and facts about this build.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

namespace nb = nanobind;

void bind_settings(nb::module_& m);

}  // namespace weft::bindings
