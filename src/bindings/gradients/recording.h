// The memory of arrays for python/warp/_gradients/recording.py: its copies, its versions, the arrays within it.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_recording(nanobind::module_& m);

}  // namespace weft::bindings
