// wp.compile_aot_module(): kernels and what launches must know of them, in one file.
#include "binary/bundle.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <set>

#include "bindings/kernels/kernel.h"
#include "bindings/python/errors.h"
#include "ir/typing.h"
#include "jit/jit.h"
#include "support/error.h"

namespace weft::bindings {

namespace {

constexpr const char* kApi = "compile_aot_module()";

constexpr program::Arrangement kAny = {.strided = true, .overlapping = true, .repeating = true};

BundledDerived bundled(const program::CompiledKernel& derived) {
    BundledDerived result;
    result.code = derived.executable->binary();
    for (std::size_t i = 0; i < derived.implicit_parameters.size(); ++i)
        result.added.push_back({derived.parameter_types[derived.own_count() + i],
                                static_cast<std::uint8_t>(derived.implicit_parameters[i].kind),
                                derived.implicit_parameters[i].of});
    for (const transform::Contents& contents : derived.contents)
        result.reads.push_back({contents.before, contents.after, contents.within});
    return result;
}

// Adds the adjoints for gradients of all arrays of floats, or why there are none.
void add_adjoints(program::Kernel& core, program::Variant dense, program::Variant general, BundledKernel& result) {
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
        const program::CompiledKernel &first = core.compiled(dense, {}, derivation),
                                      &second = core.compiled(general, kAny, derivation);
        result.adjoints = {bundled(first), bundled(second)};
        for (const auto& [element, is_log] : first.returned) result.returned.push_back({element, is_log});
        if (result.returned.empty()) return;
        dense.keeps_returned = general.keeps_returned = true;
        result.recording = {bundled(core.compiled(dense)), bundled(core.compiled(general, kAny))};
    } catch (const CompileError& error) {
        result.no_adjoint = error.what();
    }
}

BundledKernel bundled(PyKernel& kernel, const std::string& name, bool gradients) {
    program::Kernel& core = kernel.core();
    program::Variant dense = core.configured();
    dense.debug = false;  // a fault would have no source to point at
    dense.finite = false;
    program::Variant general = dense;
    general.nulls = true;
    const program::CompiledKernel& first = core.compiled(dense);
    BundledKernel result;
    result.name = name;
    const std::vector<ParameterPlan>& parameters = kernel.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
        result.parameters.push_back({parameters[i].name, parameters[i].type});
    result.dense = first.executable->binary();
    result.general = core.compiled(general, kAny).executable->binary();
    result.no_adjoint = "the file was written without them. help: compile_aot_module(..., gradients=True)";
    if (gradients) add_adjoints(core, dense, general, result);
    return result;
}

// The bytes of the file: kernels are pairs of a name and a wp.Kernel.
nb::bytes bundle(const std::string& module, nb::list kernels, bool gradients) {
    Bundle result;
    result.name = module;
    result.triple = jit::host_target().triple;
    result.processor = jit::host_target().processor;
    result.features = jit::required_features(jit::host_target());
    std::set<std::string> names;
    for (nb::handle item : kernels) {
        const std::string name = nb::cast<std::string>(item[0]);
        PyKernel* const kernel = kernel_pointer(item[1]);
        if (kernel == nullptr) throw InternalError("bundle() got something else than a kernel");
        if (!names.insert(name).second)
            throw UsageError(
                kApi, "module '" + module + "' has two kernels called '" + name + "'. help: give one another name",
                ErrorCategory::value);
        result.kernels.push_back(bundled(*kernel, name, gradients));
    }
    const std::vector<std::byte> bytes = serialize(result);
    return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_bundles(nb::module_& m) {
    m.def("bundle", &bundle, nb::arg("module"), nb::arg("kernels"), nb::arg("gradients"),
          "The file of compile_aot_module() as bytes; kernels are pairs of a name and a wp.Kernel, `gradients` adds "
          "their "
          "adjoints.");
}

}  // namespace weft::bindings
