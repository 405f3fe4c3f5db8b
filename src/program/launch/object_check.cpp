#include "program/launch/object_check.h"

#include "program/kernel/object_ids.h"
#include "runtime/handles.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::program {

namespace spatial = runtime::spatial;

namespace {

[[noreturn]] void refuse(const Kernel& kernel, std::size_t parameter, std::uint64_t id, const runtime::Device& device) {
    const std::string kind = object_name(static_cast<ObjectKind>(id >> 56));
    const runtime::Device* const found = spatial::table_device(id);
    const std::string place = found ? "'" + found->alias + "'" : "a CPU";
    throw UsageError("launch()", "kernel '" + kernel.name() + "': argument '" + kernel.parameter_name(parameter) +
                                     "' is the id of a " + kind + " on " + place + ", and the launch is on '" +
                                     device.alias + "'. help: make the " + kind + " of arrays on '" + device.alias +
                                     "', or launch on the device of the " + kind);
}

}  // namespace

void check_objects(const Kernel& kernel, const CompiledKernel& compiled, const runtime::Device& device,
                   const std::byte* block) {
    const bool has_table = device.geometry() != nullptr;
    const auto check = [&](std::size_t parameter, std::uint64_t id) {
        if (!spatial::is_object(id, static_cast<ObjectKind>(id >> 56))) return;
        const runtime::Device* const found = spatial::table_device(id);
        if (has_table ? found != &device : found != nullptr) refuse(kernel, parameter, id, device);
    };
    for_each_argument_id(kernel.types(), kernel.layout(), compiled.effects, block, check);
}

}  // namespace weft::program
