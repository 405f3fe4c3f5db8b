#include "bindings/kernels/packed.h"

#include <algorithm>
#include <cstring>

#include "bindings/devices/device.h"
#include "bindings/structs/structs.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
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

// The memory of `with`, which replaces that of an argument's array; messages name it `what`.
void* data_like(const ArrayView& view, int ndim, nb::handle with, const Packed& packed, const ParameterPlan& parameter,
                const std::string& what) {
    const runtime::Array& array = array_pointer(with)->array;
    if (array.device != &packed.device)
        throw UsageError("launch()", what + " of argument '" + parameter.name + "' of kernel '" + packed.kernel.key +
                                         "' is on '" + array.device->alias + "', the launch is on '" +
                                         packed.device.alias + "'. help: .to('" + packed.device.alias + "')");
    for (int axis = 0; axis < ndim; ++axis)
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
        if (const PyArray* array = array_pointer(values.back())) program::mark_gradient_escaped(*array);
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
        view.data = data_like(view, parameters[i].ndim, copy, *this, parameters[i], "a copy");
    }
    return result;
}

void Packed::use_gradients(nb::list gradients) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle gradient = gradients[i];
        if (gradient.is_none()) continue;
        if (ArrayView* const of = view(i)) {
            of->grad = data_like(*of, parameters[i].ndim, gradient, *this, parameters[i], "a gradient");
            continue;
        }
        StructValue *const structure = struct_pointer(values[i]), *const given = struct_pointer(gradient);
        if (!structure || !given || structure->type() != given->type()) continue;
        auto array = given->slots().begin();
        for (const StructValue::Slot& slot : structure->slots()) {
            const nb::object of_array = (array++)->array;
            if (!slot.array.is_valid() || !of_array.is_valid()) continue;
            ArrayView& of = program::view_at(block.data(), parameters[i].offset + slot.offset - structure->offset());
            of.grad = data_like(of, slot.type.ndim(), of_array, *this, parameters[i], "a gradient");
        }
    }
}

namespace {

// Whether it contains a number with a derivative.
bool has_smooth_numbers(Type type) {
    if (!type.is_struct()) return !type.is_array() && ir::is_smooth(type);
    return std::ranges::any_of(type.fields(), [](const Type::Field& field) { return has_smooth_numbers(field.type); });
}

// Sets the struct's numbers with a derivative.
void set_numbers(nb::handle structure, const std::byte* from) {
    const auto fields = struct_pointer(structure)->type().fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const Type::Field& field = fields[i];
        if (!has_smooth_numbers(field.type)) continue;
        if (field.type.is_struct())
            set_numbers(get_field(structure, i), from + field.offset);
        else
            set_field(structure, i, value_to_python(field.type, from + field.offset));
    }
}

}  // namespace

std::vector<std::byte> Packed::number_gradients(nb::list gradients, std::vector<bool>& which) const {
    which.assign(parameters.size(), false);
    std::vector<std::byte> bytes(block.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const nb::handle gradient = gradients[i];
        const Type type = kernel.core().types()[i];
        if (!has_smooth_numbers(type)) continue;
        std::byte* const to = bytes.data() + parameters[i].offset;
        StructValue* const structure = struct_pointer(gradient);
        const Value* const value = value_pointer(gradient);
        if (structure && structure->type() == type)
            structure->pack(to);
        else if (value && value->type() == type)
            std::memcpy(to, value->data(), static_cast<std::size_t>(type.size_bytes()));
        else
            continue;
        which[i] = true;
    }
    if (std::ranges::none_of(which, [](bool has_any) { return has_any; })) which.clear();
    return bytes;
}

void Packed::take_number_gradients(nb::list gradients, const std::vector<bool>& which,
                                   const std::vector<std::byte>& bytes) const {
    for (std::size_t i = 0; i < which.size(); ++i) {
        if (!which[i]) continue;
        const nb::handle gradient = gradients[i];
        const std::byte* const from = bytes.data() + parameters[i].offset;
        if (struct_pointer(gradient))
            set_numbers(gradient, from);
        else
            std::memcpy(value_pointer(gradient)->data(), from,
                        static_cast<std::size_t>(kernel.core().types()[i].size_bytes()));
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
