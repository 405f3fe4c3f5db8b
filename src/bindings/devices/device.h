// Devices between Python and C++.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "runtime/device.h"

namespace weft::bindings {

namespace nb = nanobind;

// The device of every `device=` argument: a name, a Device, or None (and null) for the default device.
runtime::Device& device_from_python(nb::handle object, std::string_view api = "device");
// The same object each time.
nb::object device_to_python(runtime::Device& device);

void bind_devices(nb::module_& m);  // device_class.cpp
void bind_memory(nb::module_& m);   // memory_pools.cpp

}  // namespace weft::bindings
