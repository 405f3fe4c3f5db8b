#include "bindings/kernels/packed.h"

#include <algorithm>

#include "bindings/arrays/array.h"
#include "bindings/python/device.h"
#include "bindings/values/types.h"
#include "support/error.h"

namespace weft::bindings {

using transform::Gradient;

namespace {

// The kernel that a launch with these values runs.
nb::object kernel_for(nb::handle object, nb::list values) {
    PyKernel* kernel = kernel_pointer(object);
    if (!kernel) {
        throw UsageError("launch()",
                         "the kernel is " + describe(object) + ", expected a function decorated with @wp.kernel",
                         ErrorCategory::type);
    }
    if (!kernel->is_generic()) return nb::borrow(object);
    std::vector<PyObject*> given;
    for (nb::handle value : values) given.push_back(value.ptr());
    return kernel->instance_for(given);
}

// `what`, which belongs to an argument, in place of the argument's own.
void* data_like(const ArrayView& view, nb::handle with, const Packed& packed, const ParameterPlan& parameter,
                const std::string& what) {
    const runtime::Array& array = array_pointer(with)->array;
    if (array.device != &packed.device)
        throw UsageError("launch()", what + " of argument '" + parameter.name + "' of kernel '" + packed.kernel.key +
                                         "' is on '" + array.device->alias + "', the launch is on '" +
                                         packed.device.alias + "'. help: .to('" + packed.device.alias + "')");
    for (int axis = 0; axis < parameter.ndim; ++axis)
        WEFT_CHECK(array.view.shape[axis] == view.shape[axis] && array.view.strides[axis] == view.strides[axis],
                   what + " is laid out in another way than the array");
    return array.view.data;
}

}  // namespace

Packed::Packed(nb::handle object, nb::list given, nb::handle device_object, const char* api)
    : kernel_object(kernel_for(object, given)),
      kernel(*kernel_pointer(kernel_object)),
      parameters(kernel.parameters()),
      device(device_from_python(device_object, api)),
      block(static_cast<std::size_t>(kernel.block_bytes())) {
    check_count(kernel, nb::len(given));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        values.push_back(nb::handle(given[i]).ptr());
        pack_argument(kernel, parameters[i], i, values.back(), device, block.data(), holders, /*outlives=*/true);
        if (const PyArray* array = array_pointer(values.back())) program::show_gradient(*array);
    }
}

ArrayView* Packed::view(std::size_t i) {
    if (parameters[i].filler != ParameterPlan::Filler::array) return nullptr;
    return &program::view_at(block.data(), parameters[i].offset);
}

std::vector<Gradient> Packed::gradients() {
    std::vector<Gradient> found;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        found.push_back(view(i) && view(i)->grad ? Gradient::used : Gradient::none);
    return found;
}

std::vector<std::byte> Packed::with_copies(nb::list copies) const {
    std::vector<std::byte> result = block;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle copy = copies[i];
        if (parameters[i].filler != ParameterPlan::Filler::array || copy.is_none()) continue;
        ArrayView& view = program::view_at(result.data(), parameters[i].offset);
        view.data = data_like(view, copy, *this, parameters[i], "a copy");
    }
    return result;
}

void Packed::use_gradients(nb::list gradients) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle gradient = gradients[i];
        if (ArrayView* const of = view(i); of && !gradient.is_none())
            of->grad = data_like(*of, gradient, *this, parameters[i], "a gradient");
    }
}

std::vector<std::byte> Packed::tangents(nb::list given) {
    std::vector<std::byte> result(block.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle tangent = given[i];
        if (tangent.is_none()) continue;
        ParameterPlan plan = parameters[i];
        plan.name = "the tangent of " + plan.name;
        pack_argument(kernel, plan, i, tangent.ptr(), device, result.data(), holders, /*outlives=*/true);
    }
    return result;
}

}  // namespace weft::bindings
