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
#include "program/host/host.h"
#include "program/launch/launch.h"
#include "runtime/cpu/processor.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/cuda_devices.h"

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

std::vector<transform::NarrowExtent> narrow_extents(const std::vector<BundledNarrow>& narrow) {
    std::vector<transform::NarrowExtent> result;
    for (const auto& [parameter, axis] : narrow) result.push_back({parameter, axis, {}});
    return result;
}

std::vector<Type> types_of(const BundledKernel& kernel) {
    std::vector<Type> types;
    for (const BundledParameter& parameter : kernel.parameters) types.push_back(parameter.type);
    return types;
}

const KernelEntry& entry_of(const Binary& binary) {
    if (binary.kernels.size() != 1) throw InternalError("a file of kernels has binaries of several");
    return binary.kernels.front();
}

program::KernelFacts facts_of(const BundledKernel& kernel, const Binary& binary) {
    return {types_of(kernel), entry_of(binary).effects};
}

program::KernelFacts facts_of(const BundledKernel& kernel, const BundledDerived& derived) {
    std::vector<Type> types = types_of(kernel);
    for (const BundledDerived::Added& added : derived.added) types.push_back(added.type);
    program::KernelFacts facts(std::move(types), entry_of(derived.code).effects);
    for (const auto& [type, kind, of] : derived.added)
        facts.implicit_parameters.push_back({static_cast<ir::ImplicitParameter::Kind>(kind), of});
    for (const auto& [before, after, within] : derived.reads) facts.contents.push_back({before, after, within});
    facts.narrow_extents = narrow_extents(derived.narrow);
    return facts;
}

program::CompiledKernel linked(Binary binary, program::KernelFacts facts) {
    const std::string name = entry_of(binary).name;
    return program::prepare(runtime::load(std::move(binary)), name, std::move(facts));
}

program::CompiledKernel linked(const BundledKernel& kernel, BundledDerived& derived) {
    program::KernelFacts facts = facts_of(kernel, derived);
    return linked(std::move(derived.code), std::move(facts));
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
        for (const runtime::Device* gpu : gpus) newest = std::max(newest, gpu->gpu()->arch);
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

// Links the code of one kernel; code for huge arrays is linked at its first use.
void add_code(Access::KernelImplementation& to, BundledKernel& kernel) {
    const auto add = [&](Binary& binary) {
        program::KernelFacts facts = facts_of(kernel, binary);
        return linked(std::move(binary), std::move(facts));
    };
    const auto add_huge = [&](std::optional<HugeKernel>& to, BundledDerived& derived) {
        program::KernelFacts facts = facts_of(kernel, derived);
        to.emplace(std::move(derived.code), std::move(facts));
    };
    // The file leaves code out that is the same as `general`.
    if (kernel.huge.kernels.empty()) kernel.huge = kernel.general;
    for (auto* three : {&kernel.adjoints, &kernel.recording})
        if (!three->empty() && (*three)[2].code.kernels.empty()) (*three)[2].code = (*three)[1].code;
    program::KernelFacts huge = facts_of(kernel, kernel.huge);
    huge.narrow_extents = narrow_extents(kernel.narrow);
    to.huge.emplace(std::move(kernel.huge), std::move(huge));
    to.dense = add(kernel.dense);
    to.general = add(kernel.general);
    to.no_adjoint = kernel.no_adjoint;
    if (!kernel.adjoints.empty()) {
        to.dense_adjoint = linked(kernel, kernel.adjoints[0]);
        to.general_adjoint = linked(kernel, kernel.adjoints[1]);
        add_huge(to.huge_adjoint, kernel.adjoints[2]);
    }
    for (const BundledAtomicResult& one : kernel.returned) to.returned.push_back({one.element, one.is_log});
    if (!kernel.recording.empty()) {
        to.dense_recording = linked(kernel, kernel.recording[0]);
        to.general_recording = linked(kernel, kernel.recording[1]);
        add_huge(to.huge_recording, kernel.recording[2]);
    }
}

}  // namespace

Program Program::load(const std::filesystem::path& path) {
    return guarded([&] {
        Bundle bundle = read_bundle(path);
        check_processor(bundle, path);
        std::vector<Kernel> kernels;
        for (BundledKernel& kernel : bundle.kernels) {
            std::vector<Parameter> parameters;
            std::vector<std::string> names;
            for (const BundledParameter& parameter : kernel.parameters) {
                const bool is_array = parameter.type.is_array();
                const Type dtype = is_array ? parameter.type.element() : parameter.type;
                parameters.push_back({parameter.name, parameter.type.python_name(), Access::dtype(dtype),
                                      is_array ? parameter.type.ndim() : 0});
                names.push_back(parameter.name);
            }
            auto implementation = std::make_shared<Kernel::Implementation>(
                program::KernelSignature(kernel.name, types_of(kernel), std::move(names)), std::move(parameters));
            add_code(*implementation, kernel);
            implementation->find_needs();
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

const program::CompiledKernel& HugeKernel::code() const {
    const std::scoped_lock lock(mutex_);
    if (!code_) {
        code_ = linked(binary_, facts_);
        binary_ = {};
    }
    return *code_;
}

const std::string& Kernel::name() const { return implementation_->name(); }
const std::vector<Parameter>& Kernel::parameters() const { return implementation_->parameters; }

runtime::Device& Kernel::Implementation::device(std::span<const Argument> arguments) const {
    const std::string what = is_for_gpus() ? "code for GPUs" : "code for CPUs";
    runtime::Device* found = nullptr;
    for (std::size_t i = 0; i < std::min(arguments.size(), parameters.size()); ++i) {
        const auto* const given = std::get_if<Array>(&Access::value(arguments[i]));
        const runtime::Array* const array = given ? Access::array(*given) : nullptr;
        if (array == nullptr) continue;
        const std::string found_here =
            "argument '" + parameters[i].name + "' of kernel '" + name() + "' is on '" + array->device->alias + "'";
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
        throw UsageError(api, "kernel '" + name() + "' is code for " + (is_for_gpus() ? "GPUs" : "CPUs") + ", and '" +
                                  device.alias + "' is none");
    const int needed = is_for_gpus() ? arch_of(dense.executable->binary().target.processor) : 0;
    if (is_for_gpus() && device.gpu()->arch < needed)
        throw UsageError(api, "kernel '" + name() + "' is compiled for GPUs from sm_" + std::to_string(needed) +
                                  " on; '" + device.alias + "' is sm_" + std::to_string(device.gpu()->arch));
}

std::vector<std::byte> Kernel::Implementation::block(std::span<const Argument> arguments) const {
    if (arguments.size() != parameters.size())
        throw UsageError("launch()", "kernel '" + name() + "' takes " + std::to_string(parameters.size()) +
                                         " arguments, found " + std::to_string(arguments.size()));
    std::vector<std::byte> block(static_cast<std::size_t>(dense.layout.size_bytes));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        std::visit(Packer{name(), parameters[i], dense.parameter_types[i], block.data() + dense.layout.offsets[i]},
                   Access::value(arguments[i]));
    return block;
}

void Kernel::Implementation::check_extents(const program::CompiledKernel& code, const std::byte* block,
                                           const char* api) const {
    const std::optional<program::CutExtent> cut = program::cut_extent(code, block);
    if (!cut) return;
    auto parameter = static_cast<std::size_t>(cut->parameter);
    if (parameter >= parameters.size())  // a gradient's array has the extents of its argument
        parameter = static_cast<std::size_t>(code.implicit_parameters[parameter - parameters.size()].of);
    throw UsageError(api, "kernel '" + name() + "' takes the extent of an array as an int32, and " +
                              cut->text("argument '" + parameters[parameter].name + "'") +
                              ". help: write wp.int64(a.shape[...]) in the kernel, or pass the number as a wp.int64");
}

void Kernel::Implementation::launch(std::span<const std::int64_t> dim, const std::vector<std::byte>& block,
                                    std::span<const Argument> arguments, std::span<runtime::Array> kept) const {
    const program::Grid grid = program::make_grid(dim, dense.description.tid_rank, name());
    runtime::Stream& stream = device(arguments).default_stream();
    const program::LaunchLayout arranged =
        program::launch_layout(dense, block.data(), /*with_gradients=*/false, is_for_gpus());
    const bool is_general = arranged.index() != 0 || program::has_null(dense.arrays, block.data());
    if (kept.empty()) {
        const program::CompiledKernel& code = arranged.huge ? huge->code() : is_general ? general : dense;
        check_extents(code, block.data(), "launch()");
        program::run(code, stream, block.data(), grid);
    } else {
        const program::CompiledKernel& recording = arranged.huge ? huge_recording->code()
                                                   : is_general  ? *general_recording
                                                                 : *dense_recording;
        check_extents(recording, block.data(), "Tape::launch()");
        std::vector<std::byte> larger = block;
        larger.resize(static_cast<std::size_t>(recording.layout.size_bytes));
        std::vector<ArrayView> views;
        for (const runtime::Array& one : kept) views.push_back(one.view);
        program::point_implicit_parameters(recording, larger.data(), block.data(), views);
        program::run(recording, stream, larger.data(), grid);
        program::close_atomic_results(name(), recording, kept);
    }
    for (const program::BlockArray& block_array : dense.arrays) {
        const auto parameter = static_cast<std::size_t>(block_array.parameter);
        const ArrayView& view = program::view_at(block.data(), block_array.offset);
        if (block_array.is_parameter && dense.effects[parameter].writes_itself)
            count_write(std::get<Array>(Access::value(arguments[parameter])));
        else if (dense.effects[parameter].writes_itself)
            count_write(shown_memory(view));
        if (!dense.effects[parameter].writes_within || !view.data) continue;
        std::set<runtime::BufferPtr> written;
        for (const program::Variable& one : arrays_within(shown_array(view, block_array.type).array))
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
    guarded([] { program::with_prints([] { runtime::synchronize_devices(); }); });
}

int cpu_threads() { return runtime::cpu_threads(); }

void set_cpu_threads(int count) {
    guarded([&] {
        if (count < 1) throw UsageError("set_cpu_threads()", std::to_string(count) + " threads; expected at least 1");
        runtime::set_cpu_threads(count);
    });
}

}  // namespace weft
