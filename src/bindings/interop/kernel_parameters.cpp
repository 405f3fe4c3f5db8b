#include "bindings/interop/kernel_parameters.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "bindings/arrays/array_object.h"
#include "bindings/kernels/kernel.h"
#include "bindings/values/types.h"
#include "support/error.h"

namespace weft::bindings {

namespace nb = nanobind;

namespace {

nb::list parameters_of(nb::handle kernel_object, const std::string& api, const std::string& library) {
    PyKernel* kernel = kernel_pointer(kernel_object);
    if (!kernel) {
        throw UsageError(api,
                         "the kernel is " + describe(kernel_object) + ", expected a function decorated with @wp.kernel",
                         ErrorCategory::type);
    }
    if (kernel->is_generic()) {
        throw UsageError(api,
                         "kernel '" + kernel->key + "' is generic, and arrays of " + library +
                             " do not say which of its types is meant. help: wp.overload(kernel, [types]) gives one "
                             "instance",
                         ErrorCategory::type);
    }
    const auto& effects = kernel->core().facts(kernel->core().configured()).effects;
    nb::list result;
    for (std::size_t at = 0; at < kernel->parameters().size(); ++at) {
        const ParameterPlan& parameter = kernel->parameters()[at];
        const bool writes = effects[at].writes;
        if (parameter.filler != ParameterPlan::Filler::array) {
            const bool is_value = parameter.type.is_scalar() || parameter.type.is_numeric_aggregate();
            result.append(nb::make_tuple(parameter.name, parameter.type.python_name(), nb::none(), "", nb::tuple(),
                                         writes, is_value ? dtype_to_python(parameter.type) : nb::none()));
            continue;
        }
        if (!parameter.element.is_scalar() && !parameter.element.is_numeric_aggregate()) {
            throw UsageError(api,
                             "parameter '" + parameter.name + "' of kernel '" + kernel->key + "' is " +
                                 parameter.type.python_name() + ": arrays of " + library +
                                 " hold scalars, vectors and matrices",
                             ErrorCategory::type);
        }
        std::int64_t inner[2];
        const int inner_count = inner_shape(parameter.element, inner);
        nb::list extents;
        for (int i = 0; i < inner_count; ++i) extents.append(inner[i]);
        result.append(nb::make_tuple(parameter.name, parameter.type.python_name(), parameter.ndim,
                                     info(parameter.element.scalar()).python, nb::tuple(extents), writes,
                                     dtype_to_python(parameter.element)));
    }
    return result;
}

// With custom derivatives, the derivative of the gradient need not be symmetric, as second derivatives are.
bool has_own_gradients(nb::handle kernel_object) {
    program::Kernel& core = kernel_pointer(kernel_object)->core();
    const ir::Module& module = core.code(core.configured().debug).analysed();
    return std::ranges::any_of(module.functions, [](const auto& function) { return function->gradient != nullptr; });
}

}  // namespace

void bind_kernel_parameters(nb::module_& m) {
    m.def("has_own_gradients", &has_own_gradients, nb::arg("kernel"),
          "Whether the kernel calls a function whose gradient a user wrote (wp.func_grad).");
    m.def("kernel_parameters", &parameters_of, nb::arg("kernel"), nb::arg("api"), nb::arg("library"),
          "The parameters of a kernel: name, type, of arrays the number of dimensions, the name of the scalar type and "
          "the extents of the elements; whether the kernel writes to it; the dtype of its elements, or of itself.");
}

}  // namespace weft::bindings
