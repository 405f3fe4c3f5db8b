// wp.compile_aot_module(): kernels and what launches must know of them, in one file.
#include "binary/bundle.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <set>

#include "bindings/errors.h"
#include "bindings/kernel.h"
#include "jit/jit.h"
#include "support/error.h"

namespace weft::bindings {

namespace {

constexpr const char* kApi = "compile_aot_module()";

BundledKernel bundled(PyKernel& kernel, const std::string& name) {
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
    result.general = core.compiled(general, {.strided = true, .overlapping = true, .repeating = true}).executable->binary();
    return result;
}

// The bytes of the file: kernels are pairs of a name and a wp.Kernel.
nb::bytes bundle(const std::string& module, nb::list kernels) {
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
        result.kernels.push_back(bundled(*kernel, name));
    }
    const std::vector<std::byte> bytes = serialize(result);
    return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_bundles(nb::module_& m) {
    m.def("bundle", &bundle, nb::arg("module"), nb::arg("kernels"),
          "The file of compile_aot_module() as bytes; kernels are pairs of a name and a wp.Kernel.");
}

}  // namespace weft::bindings
