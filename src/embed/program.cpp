#include "weft/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "binary/bundle.h"
#include "embed/access.h"
#include "embed/guarded.h"
#include "embed/shown_arrays.h"
#include "program/launch.h"
#include "runtime/cpu/processor.h"
#include "runtime/cpu/thread_pool.h"

namespace weft {

namespace {

// ---- files ----

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
    throw UsageError("Program::load()", path.string() + ": " + what);
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(path, "cannot be opened");
    const std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (file.bad()) fail(path, "cannot be read");
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
}

Bundle read_bundle(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = read_file(path);
    try {
        return deserialize_bundle(bytes);
    } catch (const UsageError& error) {
        fail(path, error.what());
    }
}

program::CompiledKernel make_ready(const BundledKernel& kernel, Binary binary) {
    if (binary.kernels.size() != 1) throw InternalError("a file of kernels has binaries of several");
    const std::string name = binary.kernels.front().name;
    std::vector<Type> types;
    for (const BundledParameter& parameter : kernel.parameters) types.push_back(parameter.type);
    program::KernelFacts facts(std::move(types), binary.kernels.front().effects);
    return program::prepare(runtime::load(std::move(binary)), name, std::move(facts));
}

// ---- arguments ----

[[noreturn]] void mismatch(const std::string& kernel, const Parameter& parameter, const std::string& found) {
    throw UsageError("launch()", "argument '" + parameter.name + "' of kernel '" + kernel + "' expects " +
                                     parameter.type + ", found " + found);
}

// Whether an integer type can hold `number`.
template <typename Integer>
bool fits(Integer number, const ScalarInfo& scalar) {
    using Wide = __int128;
    const int bits = scalar.bits - (scalar.is_signed() ? 1 : 0);
    const Wide most = (Wide(1) << bits) - 1, least = scalar.is_signed() ? -most - 1 : 0;
    return Wide(number) >= least && Wide(number) <= most;
}

// Writes one argument for the kernel. Each overload takes one kind of C++ value.
struct Packer {
    const std::string& kernel;  // its name
    const Parameter& parameter;
    Type type;
    std::byte* to;

    void operator()(bool value) const {
        if (!type.is_scalar() || !type.is_bool()) mismatch(kernel, parameter, "a bool");
        write_scalar(Scalar::boolean, Number::integer(value), to);
    }
    void operator()(std::int64_t value) const { integer(value); }
    void operator()(std::uint64_t value) const { integer(value); }
    void operator()(double value) const {
        if (!type.is_float()) mismatch(kernel, parameter, "the float " + std::to_string(value));
        write_scalar(type.scalar(), convert(Number::real(value), Scalar::f64, type.scalar()), to);
    }
    void operator()(const Array& value) const {
        const runtime::Array* array = Access::array(value);
        if (!type.is_array()) mismatch(kernel, parameter, "an array");
        ArrayView view;
        if (array != nullptr) {
            if (array->dtype != type.element() || array->ndim != type.ndim())
                mismatch(kernel, parameter, Type::array(array->dtype, array->ndim).python_name());
            view = array->view;
        }
        std::memcpy(to, &view, sizeof view);
    }
    void operator()(const std::vector<std::byte>& value) const {
        const bool takes_bytes = type.is_struct() || type.is_numeric_aggregate();
        if (!takes_bytes || static_cast<std::int64_t>(value.size()) != type.size_bytes())
            mismatch(kernel, parameter,
                     "a C++ value of " + std::to_string(value.size()) + " bytes" +
                         (takes_bytes ? ", not " + std::to_string(type.size_bytes()) : ""));
        std::memcpy(to, value.data(), value.size());
    }

    template <typename Integer>
    void integer(Integer value) const {
        const std::string text = "the integer " + std::to_string(value);
        if (!type.is_scalar() || type.is_bool()) mismatch(kernel, parameter, text);
        const ScalarInfo& scalar = info(type.scalar());
        if (scalar.is_float()) {
            const Number number = Number::real(static_cast<double>(value));
            return write_scalar(scalar.id, convert(number, Scalar::f64, scalar.id), to);
        }
        if (!fits(value, scalar)) mismatch(kernel, parameter, text + ", which is out of range");
        write_scalar(scalar.id, Number::integer(static_cast<std::int64_t>(value)), to);
    }
};

std::optional<program::CompiledKernel> derived_of(const BundledKernel& kernel, BundledDerived derived) {
    if (derived.code.kernels.size() != 1) throw InternalError("a file of kernels has binaries of several");
    std::vector<Type> types;
    for (const BundledParameter& parameter : kernel.parameters) types.push_back(parameter.type);
    for (const BundledDerived::Added& added : derived.added) types.push_back(added.type);
    const std::string name = derived.code.kernels.front().name;
    program::KernelFacts facts(std::move(types), derived.code.kernels.front().effects);
    for (const auto& [type, kind, of] : derived.added)
        facts.implicit_parameters.push_back({static_cast<ir::ImplicitParameter::Kind>(kind), of});
    for (const auto& [before, after, within] : derived.reads) facts.contents.push_back({before, after, within});
    return program::prepare(runtime::load(std::move(derived.code)), name, std::move(facts));
}

}  // namespace

// ---- Program ----

namespace {

int arch_of(std::string_view processor) { return std::atoi(std::string(processor.substr(3)).c_str()); }  // "sm_75"

// Checks that this machine can run the file's code.
void check_processor(const Bundle& bundle, const std::filesystem::path& path) {
    if (std::string_view(bundle.processor).starts_with("sm_")) {
        const std::vector<runtime::Device*> gpus = runtime::cuda_devices();
        if (gpus.empty()) fail(path, "compiled for GPUs, and there is none: " + runtime::cuda_problem());
        int newest = 0;
        for (const runtime::Device* gpu : gpus) newest = std::max(newest, gpu->cuda()->arch);
        if (newest < arch_of(bundle.processor))
            fail(path, "compiled for GPUs from " + bundle.processor + " on; the newest here is sm_" +
                           std::to_string(newest) + ". help: compile_aot_module(..., arch=" + std::to_string(newest) +
                           ")");
        return;
    }
    const std::vector<std::string> missing = runtime::missing_features(bundle.triple, bundle.features);
    if (!missing.empty())
        fail(path, "compiled for the processor " + bundle.processor + " (" + bundle.triple +
                       "); this one does not have " + missing.front() +
                       (missing.size() > 1 ? " and " + std::to_string(missing.size() - 1) + " more features" : "") +
                       ". help: compile it for an older processor, with the environment variable WEFT_CPU, as in "
                       "WEFT_CPU=x86-64-v3");
}

}  // namespace

Program Program::load(const std::filesystem::path& path) {
    return guarded([&] {
        Bundle bundle = read_bundle(path);
        check_processor(bundle, path);
        std::vector<Kernel> kernels;
        for (BundledKernel& kernel : bundle.kernels) {
            auto implementation = std::make_shared<Kernel::Implementation>();
            implementation->name = kernel.name;
            for (const BundledParameter& parameter : kernel.parameters) {
                const bool is_array = parameter.type.is_array();
                const Type dtype = is_array ? parameter.type.element() : parameter.type;
                implementation->parameters.push_back({parameter.name, parameter.type.python_name(),
                                                      Access::dtype(dtype), is_array ? parameter.type.ndim() : 0});
            }
            implementation->dense = make_ready(kernel, std::move(kernel.dense));
            implementation->general = make_ready(kernel, std::move(kernel.general));
            implementation->no_adjoint = kernel.no_adjoint;
            if (!kernel.adjoints.empty()) {
                implementation->dense_adjoint = derived_of(kernel, std::move(kernel.adjoints[0]));
                implementation->general_adjoint = derived_of(kernel, std::move(kernel.adjoints[1]));
            }
            for (const BundledAtomicResult& one : kernel.returned)
                implementation->returned.push_back({one.element, one.is_log});
            if (!kernel.recording.empty()) {
                implementation->dense_recording = derived_of(kernel, std::move(kernel.recording[0]));
                implementation->general_recording = derived_of(kernel, std::move(kernel.recording[1]));
            }
            kernels.push_back(Kernel(std::move(implementation)));
        }
        return Program(std::move(kernels));
    });
}

std::vector<std::string> Program::kernel_names() const {
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels_) names.push_back(kernel.name());
    return names;
}

Kernel Program::kernel(std::string_view name) const {
    for (const Kernel& kernel : kernels_)
        if (kernel.name() == name) return kernel;
    return guarded([&]() -> Kernel {
        throw UsageError("Program::kernel()", "there is no kernel '" + std::string(name) + "'; the file has " +
                                                  (kernels_.empty() ? "none" : join_or(kernel_names())));
    });
}

// ---- Kernel ----

const std::string& Kernel::name() const { return implementation_->name; }
const std::vector<Parameter>& Kernel::parameters() const { return implementation_->parameters; }

namespace {

// Whether the adjoint has a gradient for the type (ir::is_smooth).
bool has_floats(Type type) {
    if (type.is_struct())
        return std::ranges::any_of(type.fields(), [](const Type::Field& field) { return has_floats(field.type); });
    return (type.is_scalar() || type.is_numeric_aggregate()) && type.scalar_type().is_float();
}

}  // namespace

bool Kernel::Implementation::is_smooth(std::size_t parameter) const {
    const Type type = dense.parameter_types[parameter];
    return type.is_array() && has_floats(type.element());
}

runtime::Device& Kernel::Implementation::device(std::span<const Argument> arguments) const {
    const std::string what = is_for_gpus() ? "code for GPUs" : "code for CPUs";
    runtime::Device* found = nullptr;
    for (std::size_t i = 0; i < std::min(arguments.size(), parameters.size()); ++i) {
        const auto* const given = std::get_if<Array>(&Access::value(arguments[i]));
        const runtime::Array* const array = given ? Access::array(*given) : nullptr;
        if (array == nullptr) continue;
        const std::string found_here =
            "argument '" + parameters[i].name + "' of kernel '" + name + "' is on '" + array->device->alias + "'";
        if (array->device->is_cpu == is_for_gpus())
            throw UsageError("launch()", found_here + ", and the file has " + what + ". help: Array::to(\"" +
                                             (is_for_gpus() ? "cuda:0" : "cpu") + "\")");
        if (found && found != array->device)
            throw UsageError("launch()", found_here + ", and an argument before it on '" + found->alias +
                                             "'; expected all on one device");
        found = array->device;
    }
    if (found == nullptr) return is_for_gpus() ? runtime::device("cuda") : runtime::host_device();
    check_device(*found, "launch()");
    return *found;
}

void Kernel::Implementation::check_device(const runtime::Device& device, const char* api) const {
    if (device.is_cpu == is_for_gpus())
        throw UsageError(api, "kernel '" + name + "' is code for " + (is_for_gpus() ? "GPUs" : "CPUs") + ", and '" +
                                  device.alias + "' is none");
    const int needed = is_for_gpus() ? arch_of(dense.executable->binary().target.processor) : 0;
    if (is_for_gpus() && device.cuda()->arch < needed)
        throw UsageError(api, "kernel '" + name + "' is compiled for GPUs from sm_" + std::to_string(needed) +
                                  " on; '" + device.alias + "' is sm_" + std::to_string(device.cuda()->arch));
}

std::vector<std::byte> Kernel::Implementation::block(std::span<const Argument> arguments) const {
    if (arguments.size() != parameters.size())
        throw UsageError("launch()", "kernel '" + name + "' takes " + std::to_string(parameters.size()) +
                                         " arguments, found " + std::to_string(arguments.size()));
    std::vector<std::byte> block(static_cast<std::size_t>(dense.layout.size_bytes));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        std::visit(Packer{name, parameters[i], dense.parameter_types[i], block.data() + dense.layout.offsets[i]},
                   Access::value(arguments[i]));
    return block;
}

void Kernel::Implementation::launch(std::span<const std::int64_t> dim, const std::vector<std::byte>& block,
                                    std::span<const Argument> arguments, std::span<runtime::Array> kept) const {
    const program::Grid grid = program::make_grid(dim, dense.description.tid_rank, name);
    runtime::Stream& stream = device(arguments).default_stream();
    const bool is_general =
        program::launch_layout(dense, block.data(), /*with_gradients=*/false, is_for_gpus()).index() != 0 ||
        program::has_null(dense.arrays, block.data());
    if (kept.empty()) {
        program::run(is_general ? general : dense, stream, block.data(), grid);
    } else {
        const program::CompiledKernel& recording = is_general ? *general_recording : *dense_recording;
        std::vector<std::byte> larger = block;
        larger.resize(static_cast<std::size_t>(recording.layout.size_bytes));
        std::vector<ArrayView> views;
        for (const runtime::Array& one : kept) views.push_back(one.view);
        program::point_implicit_parameters(recording, larger.data(), block.data(), views);
        program::run(recording, stream, larger.data(), grid);
        program::close_atomic_results(name, recording, kept);
    }
    for (const program::BlockArray& place : dense.arrays) {
        const auto parameter = static_cast<std::size_t>(place.parameter);
        const ArrayView& view = program::view_at(block.data(), place.offset);
        if (place.is_parameter && dense.effects[parameter].writes_itself)
            count_write(std::get<Array>(Access::value(arguments[parameter])));
        else if (dense.effects[parameter].writes_itself)
            count_write(shown_memory(view));
        if (!dense.effects[parameter].writes_within || !view.data) continue;
        std::set<runtime::BufferPtr> written;
        for (const program::Variable& one : arrays_within(shown_array(view, place.type).array))
            written.insert(one.array.buffer);
        for (const runtime::BufferPtr& buffer : written) count_write(buffer);
    }
}

std::string Kernel::load(std::string_view device) const {
    return guarded([&] {
        runtime::Device& there = runtime::device(device);
        implementation_->check_device(there, "load()");
        std::string origin = implementation_->dense.loaded->origin(there);
        implementation_->general.loaded->prepare(there);
        return origin;
    });
}

void Kernel::launch(std::span<const std::int64_t> dim, std::span<const Argument> arguments) const {
    guarded([&] { implementation_->launch(dim, implementation_->block(arguments), arguments); });
}

void synchronize() {
    guarded([] {
        runtime::synchronize_devices();
        program::flush_prints();
    });
}

int cpu_threads() { return runtime::cpu_threads(); }

void set_cpu_threads(int count) {
    guarded([&] {
        if (count < 1) throw UsageError("set_cpu_threads()", std::to_string(count) + " threads; expected at least 1");
        runtime::set_cpu_threads(count);
    });
}

}  // namespace weft
