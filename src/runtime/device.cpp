#include "runtime/device.h"

#include <unistd.h>

#include <fstream>

#include "support/error.h"

namespace weft::runtime {
namespace {

// "AMD EPYC 7B13" as the kernel reports it; the plain architecture where it does not.
std::string processor_name() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        if (line.starts_with("model name")) {
            auto colon = line.find(": ");
            if (colon != std::string::npos) return line.substr(colon + 2);
        }
    }
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "cpu";
#endif
}

std::int64_t pages(int which) {
    const long count = sysconf(which);
    return count < 0 ? 0 : static_cast<std::int64_t>(count) * sysconf(_SC_PAGESIZE);
}

// Devices are never destroyed: arrays that outlive main() still point at theirs.
Device& cpu() {
    static Device* device = new Device{"cpu", processor_name(), true, -1};
    return *device;
}

thread_local Device* default_of_thread = nullptr;

bool names_cuda(std::string_view name) { return name == "cuda" || name.starts_with("cuda:"); }

}  // namespace

Device& device(std::string_view name) {
    if (name == "cpu") return cpu();
    if (names_cuda(name)) {
        throw UsageError("get_device()",
                         "there is no device '" + std::string(name) +
                             "': this build has no CUDA support, only 'cpu'. help: device=\"cpu\"",
                         name == "cuda" ? ErrorCategory::runtime : ErrorCategory::value);
    }
    throw UsageError("get_device()",
                     "there is no device '" + std::string(name) + "': expected a name like 'cpu'. help: device=\"cpu\"",
                     ErrorCategory::value);
}

std::vector<Device*> devices() { return {&cpu()}; }

std::int64_t total_memory(const Device&) { return pages(_SC_PHYS_PAGES); }
std::int64_t free_memory(const Device&) { return pages(_SC_AVPHYS_PAGES); }

Device& default_device() { return default_of_thread ? *default_of_thread : cpu(); }

void set_default_device(Device& device) { default_of_thread = &device; }

}  // namespace weft::runtime
