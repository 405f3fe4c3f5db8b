// wp.compile_aot_module(): kernels and their launch data, in one file.
#include "binary/bundle.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "bindings/kernels/kernel.h"
#include "bindings/python/errors.h"
#include "ir/typing.h"
#include "jit/assemble.h"
#include "jit/features.h"
#include "jit/jit.h"
#include "runtime/cuda_devices.h"
#include "runtime/device.h"
#include "support/error.h"

namespace weft::bindings {

namespace {

constexpr const char* kApi = "compile_aot_module()";

std::vector<BundledNarrow> narrow(const program::CompiledKernel& kernel) {
    std::vector<BundledNarrow> result;
    for (const transform::NarrowExtent& one : kernel.narrow_extents) result.push_back({one.parameter, one.axis});
    return result;
}

BundledDerived bundled(const program::CompiledKernel& derived) {
    BundledDerived result;
    result.code = derived.executable->binary();
    for (std::size_t i = 0; i < derived.implicit_parameters.size(); ++i)
        result.added.push_back({derived.parameter_types[derived.own_count() + i],
                                static_cast<std::uint8_t>(derived.implicit_parameters[i].kind),
                                derived.implicit_parameters[i].of});
    for (const transform::Contents& contents : derived.contents)
        result.reads.push_back({contents.before, contents.after, contents.within});
    result.narrow = narrow(derived);
    return result;
}

// The code for huge arrays; empty if it is the same as that for general ones.
Binary unless_same(const Binary& general, const Binary& huge) {
    const bool is_same = general.code == huge.code && general.kernels.at(0).code == huge.kernels.at(0).code;
    return is_same ? Binary{} : huge;
}

// The code of a kernel for a file: for packed arrays that do not overlap, for all others, and for huge ones of any
// kind.
class Compiler {
public:
    Compiler(program::Kernel& core, const Target& target) : core_(core), target_(target) {
        dense_ = core.configured();
        dense_.debug = false;  // a fault would have no source to point at
        dense_.nan_check = false;
        dense_.serial &= target.kind == Target::Kind::cpu;
        general_ = dense_;
        general_.null_arrays = true;
    }

    void keep_returned() { dense_.keeps_atomic_results = general_.keeps_atomic_results = true; }
    std::shared_ptr<const program::CompiledKernel> dense(const program::Derivation& derivation = {}) const {
        return compiled(dense_, {}, derivation);
    }
    std::shared_ptr<const program::CompiledKernel> general(const program::Derivation& derivation = {}) const {
        return compiled(general_, program::LaunchLayout::without_promises(), derivation);
    }
    std::shared_ptr<const program::CompiledKernel> huge(const program::Derivation& derivation = {}) const {
        program::LaunchLayout any = program::LaunchLayout::without_promises();
        any.huge = true;
        return compiled(general_, any, derivation);
    }

private:
    std::shared_ptr<const program::CompiledKernel> compiled(program::Variant variant,
                                                            program::LaunchLayout launch_layout,
                                                            const program::Derivation& derivation) const {
        const program::CompileOptions options = core_.compile_options(variant, launch_layout, derivation, &target_);
        return core_.code(false).compiled(options);
    }

    program::Kernel& core_;
    const Target& target_;
    program::Variant dense_, general_;
};

std::vector<BundledDerived> all_three(BundledDerived dense, const program::CompiledKernel& general,
                                      const program::CompiledKernel& huge) {
    std::vector<BundledDerived> result = {std::move(dense), bundled(general), bundled(huge)};
    result[2].code = unless_same(result[1].code, result[2].code);
    return result;
}

// Adds the adjoints for gradients of all arrays of floats, or the reason why there are none.
void add_adjoints(program::Kernel& core, Compiler compiler, BundledKernel& result) {
    program::Derivation derivation;
    for (const Type type : core.types()) {
        const bool has_gradient = type.is_array() && ir::is_smooth(type.element());
        derivation.gradients.push_back(has_gradient ? transform::Gradient::used : transform::Gradient::none);
    }
    try {
        if (!core.options().enable_backward) {
            result.no_adjoint = "it was declared with enable_backward=False";
            return;
        }
        const auto first = compiler.dense(derivation);
        result.adjoints = all_three(bundled(*first), *compiler.general(derivation), *compiler.huge(derivation));
        for (const auto& [element, is_log] : first->returned) result.returned.push_back({element, is_log});
        if (result.returned.empty()) return;
        compiler.keep_returned();
        result.recording = all_three(bundled(*compiler.dense()), *compiler.general(), *compiler.huge());
    } catch (const CompileError& error) {
        result.no_adjoint = error.what();
    }
}

BundledKernel bundled(PyKernel& kernel, const std::string& name, bool gradients, const Target& target) {
    program::Kernel& core = kernel.core();
    const Compiler compiler(core, target);
    const auto dense = compiler.dense();
    BundledKernel result;
    result.name = name;
    const std::vector<ParameterPlan>& parameters = kernel.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
        result.parameters.push_back({parameters[i].name, parameters[i].type});
    result.dense = dense->executable->binary();
    result.general = compiler.general()->executable->binary();
    const auto huge = compiler.huge();
    result.huge = unless_same(result.general, huge->executable->binary());
    result.narrow = narrow(*huge);
    result.no_adjoint = "the file was written without them. help: compile_aot_module(..., gradients=True)";
    if (gradients) add_adjoints(core, compiler, result);
    return result;
}

// Adds machine code to all code of a kernel, made by the compilers in these folders, or by those of the machine.
void add_machine_code(BundledKernel& kernel, const std::vector<std::filesystem::path>& folders) {
    const auto add = [&](Binary& binary) {
        if (binary.kernels.empty()) return;  // the same as for other arrays
        const std::string_view text(reinterpret_cast<const char*>(binary.code.data()), binary.code.size() - 1);
        binary.machine_code = jit::assemble(text, binary.target.processor, folders, kApi);
    };
    add(kernel.dense);
    add(kernel.general);
    add(kernel.huge);
    for (BundledDerived& adjoint : kernel.adjoints) add(adjoint.code);
    for (BundledDerived& recording : kernel.recording) add(recording.code);
}

// The bytes of the file: kernels are pairs of a name and a wp.Kernel; `arch` is a GPU's, 0 for this CPU. With a list of
// folders, machine code is made.
nb::bytes bundle(const std::string& module, nb::list kernels, bool gradients, int arch,
                 std::optional<std::vector<std::string>> folders) {
    const Target target = arch > 0 ? runtime::cuda_target(arch) : jit::host_target();
    Bundle result;
    result.name = module;
    result.triple = target.triple;
    result.processor = target.processor;
    if (target.kind == Target::Kind::cpu) result.features = jit::required_features(target);
    std::set<std::string> names;
    for (nb::handle item : kernels) {
        const std::string name = nb::cast<std::string>(item[0]);
        PyKernel* const kernel = kernel_pointer(item[1]);
        if (kernel == nullptr) throw InternalError("bundle() got something else than a kernel");
        if (!names.insert(name).second)
            throw UsageError(
                kApi, "module '" + module + "' has two kernels called '" + name + "'. help: give one another name",
                ErrorCategory::value);
        result.kernels.push_back(bundled(*kernel, name, gradients, target));
        if (folders) add_machine_code(result.kernels.back(), {folders->begin(), folders->end()});
    }
    const std::vector<std::byte> bytes = serialize(result);
    return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_bundles(nb::module_& m) {
    m.def("bundle", &bundle, nb::arg("module"), nb::arg("kernels"), nb::arg("gradients"), nb::arg("arch"),
          nb::arg("compilers").none(),
          "The file of compile_aot_module() as bytes; kernels are pairs of a name and a wp.Kernel, `gradients` adds "
          "their adjoints; `arch` is a GPU's architecture, 86 for 8.6, or 0 for this CPU; `compilers` are folders with "
          "a bin/ptxas or a "
          "lib/libnvJitLink.so, which may be there: then there is machine code in the file as well.");
}

}  // namespace weft::bindings
