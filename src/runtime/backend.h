// Back ends: the devices of one kind of processor, and the loader of their code.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "binary/target.h"

namespace weft {
struct Binary;
}

namespace weft::runtime {

class Device;
class Executable;

struct Backend {
    Target::Kind code;  // the kind that it loads
    // Its devices, which live for ever. The first call may ask a driver.
    std::vector<Device*> (*devices)();
    // Those that may have work. Does not ask a driver.
    std::vector<Device*> (*used_devices)();
    // The device of this name; null if it is no name of this back end. Throws UsageError if it is, and there is no such
    // device.
    Device* (*find)(std::string_view name);
    // Throws InternalError if the code is damaged; UsageError if it needs symbols that the process does not have.
    std::shared_ptr<const Executable> (*load)(Binary binary);
};

// The host's is the first, and its first device is the host. Defined in backends/backends.cpp, which alone names them.
std::span<const Backend> backends();

}  // namespace weft::runtime
