#include "runtime/cpu/backend.h"

#include "runtime/cpu/device.h"
#include "runtime/cpu/loader.h"

namespace weft::runtime {
namespace {

Device& cpu() {
    static Device* const device = &make_cpu_device("cpu");
    return *device;
}

std::vector<Device*> cpus() { return {&cpu()}; }

Device* find_cpu(std::string_view name) { return name == "cpu" ? &cpu() : nullptr; }

std::shared_ptr<const Executable> load_for_cpu(Binary binary) {
    return std::make_shared<CpuExecutable>(std::move(binary));
}

}  // namespace

const Backend kCpuBackend = {Target::Kind::cpu, cpus, cpus, find_cpu, load_for_cpu};

}  // namespace weft::runtime
