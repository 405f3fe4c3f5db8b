// Devices by name. In this build there is one, "cpu"; asking for a CUDA device is an error that names it and says why.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

struct Device {
    std::string alias;  // "cpu", "cuda:0"
    std::string name;   // the processor's own name
    bool is_cpu = true;
    int ordinal = -1;  // of a CUDA device
};

// Throws UsageError where there is no such device. "cuda" means the current CUDA device. The result lives for ever.
Device& device(std::string_view name);
std::vector<Device*> devices();
std::int64_t total_memory(const Device& device);  // bytes; 0 where nobody knows
std::int64_t free_memory(const Device& device);
Device& default_device();  // of this thread
void set_default_device(Device& device);

}  // namespace weft::runtime
