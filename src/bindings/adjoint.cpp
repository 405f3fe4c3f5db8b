// Launches of adjoints and in forward mode, as python/warp/tape.py and tangents.py ask for them: Python's values become
// blocks of arguments, and program/launch.h does the rest.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/array.h"
#include "bindings/array_object.h"
#include "bindings/device.h"
#include "bindings/launch.h"
#include "bindings/nested_arrays.h"
#include "bindings/recording.h"
#include "bindings/structs.h"
#include "bindings/types.h"
#include "bindings/values.h"
#include "ir/typing.h"
#include "program/launch.h"
#include "program/settings.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using transform::Gradient;

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

// What a launch is given in Python, packed.
class Packed {
public:
    Packed(nb::handle kernel_object, nb::list given, nb::handle device_object, const char* api)
        : holder_(kernel_for(kernel_object, given)),
          kernel(*kernel_pointer(holder_)),
          parameters(kernel.parameters()),
          device(device_from_python(device_object, api)),
          block(static_cast<std::size_t>(kernel.block_bytes())) {
        check_count(kernel, nb::len(given));
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            values.push_back(nb::handle(given[i]).ptr());
            pack_argument(kernel, parameters[i], i, values.back(), device, block.data(), holders_);
        }
    }

    ArrayView* view(std::size_t i) {
        if (parameters[i].filler != ParameterPlan::Filler::array) return nullptr;
        return reinterpret_cast<ArrayView*>(block.data() + parameters[i].offset);
    }

    // Those that there are.
    std::vector<Gradient> gradients() {
        std::vector<Gradient> found;
        for (std::size_t i = 0; i < parameters.size(); ++i)
            found.push_back(view(i) && view(i)->grad ? Gradient::used : Gradient::none);
        return found;
    }

    // The same block, with the arrays that have a copy showing that.
    std::vector<std::byte> with_copies(nb::list copies) const {
        std::vector<std::byte> result = block;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const nb::handle copy = copies[i];
            if (parameters[i].filler != ParameterPlan::Filler::array || copy.is_none()) continue;
            auto* const view = reinterpret_cast<ArrayView*>(result.data() + parameters[i].offset);
            view->data = data_like(*view, copy, parameters[i].ndim, "a copy");
        }
        return result;
    }

    // Gradients in place of those of the arrays, each laid out as its array.
    void use_gradients(nb::list gradients) {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const nb::handle gradient = gradients[i];
            if (ArrayView* const of = view(i); of && !gradient.is_none())
                of->grad = data_like(*of, gradient, parameters[i].ndim, "a gradient");
        }
    }

    // The tangents of the arguments, laid out like them; of those that have none, zeros.
    std::vector<std::byte> tangents(nb::list given) {
        std::vector<std::byte> result(block.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const nb::handle tangent = given[i];
            if (tangent.is_none()) continue;
            ParameterPlan plan = parameters[i];
            plan.name = "the tangent of " + plan.name;
            pack_argument(kernel, plan, i, tangent.ptr(), device, result.data(), holders_);
        }
        return result;
    }

private:
    nb::object holder_;
    std::vector<runtime::Array> holders_;

    static void* data_like(const ArrayView& view, nb::handle with, int ndim, const std::string& what) {
        const runtime::Array& array = array_pointer(with)->array;
        for (int axis = 0; axis < ndim; ++axis)
            WEFT_CHECK(array.view.shape[axis] == view.shape[axis] && array.view.strides[axis] == view.strides[axis],
                       what + " is laid out in another way than the array");
        return array.view.data;
    }

public:
    PyKernel& kernel;
    const std::vector<ParameterPlan>& parameters;
    runtime::Device& device;
    std::vector<PyObject*> values;
    std::vector<std::byte> block;
};

// False where it has not been run, because arguments have gradients that were not `expected`.
bool run_adjoint(nb::handle kernel_object, nb::handle dim, nb::list values, nb::list before, nb::list after,
                 nb::list records, nb::list gradients, nb::handle expected, nb::handle device_object) {
    Packed packed(kernel_object, values, device_object, "launch()");
    packed.use_gradients(gradients);
    program::DerivedLaunch what;
    what.derivation.gradients = packed.gradients();
    for (std::size_t i = 0; !expected.is_none() && i < packed.parameters.size(); ++i) {
        Gradient& gradient = what.derivation.gradients[i];
        if (gradient != Gradient::none && !nb::cast<bool>(expected[i])) return false;
        if (!nb::handle(gradients[i]).is_none()) gradient = Gradient::retained;
    }
    const std::vector<std::byte> block_before = packed.with_copies(before), block_after = packed.with_copies(after);
    std::vector<runtime::Array> recorded = arrays_of(records);
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    what.dims = dims.span();
    what.before = block_before.data();
    what.after = block_after.data();
    what.records = recorded;
    what.device = &packed.device;

    program::FiniteCheck check;
    const bool checks = program::settings().verify_fp;
    for (std::size_t i = 0; checks && i < packed.parameters.size(); ++i) {
        const std::string& name = packed.parameters[i].name;
        const auto watch = [&](const std::string& of, nb::handle gradient) {
            if (const PyArray* array = array_pointer(gradient)) check.watch(of, array->array);
        };
        if (PyArray* array = array_pointer(packed.values[i]))
            watch(name, nb::handle(gradients[i]).is_none() ? nb::handle(array->grad) : gradients[i]);
        for (const NamedArray& field : named_arrays_in(packed.values[i])) watch(name + field.name, field.array->grad);
    }
    program::launch_derived(packed.kernel.core(), what, checks ? &check : nullptr);
    return true;
}

// A kernel, or its adjoint, with tangents: `tangents` has one for each value, or None.
program::DerivedLaunch with_tangents(Packed& packed, nb::list tangents, bool of_adjoint) {
    program::DerivedLaunch what;
    if (of_adjoint) what.derivation.gradients = packed.gradients();
    for (nb::handle tangent : tangents) what.derivation.tangents.push_back(!tangent.is_none());
    what.device = &packed.device;
    return what;
}

// The other lists are those of run_adjoint(); a kernel that is no adjoint fills `records`.
void run_jvp(nb::handle kernel, nb::handle dim, nb::list values, nb::list tangents, bool of_adjoint, nb::list before,
             nb::list after, nb::list records, nb::handle device) {
    Packed packed(kernel, values, device, "jvp()");
    program::DerivedLaunch what = with_tangents(packed, tangents, of_adjoint);
    const std::vector<std::byte> block_before = packed.with_copies(before), block_after = packed.with_copies(after);
    const std::vector<std::byte> moving = packed.tangents(tangents);
    std::vector<runtime::Array> recorded = arrays_of(records);
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    what.dims = dims.span();
    what.before = block_before.data();
    what.after = block_after.data();
    what.tangents = moving.data();
    what.records = recorded;
    if (of_adjoint) {  // on copies, which hvp() makes
        program::launch_derived(packed.kernel.core(), what);
        return;
    }
    std::vector<PyObject*> moved;
    for (nb::handle tangent : tangents) moved.push_back(tangent.ptr());
    program::FiniteCheck check;
    const bool checks = program::settings().verify_fp;
    if (checks) {
        program::Kernel& core = packed.kernel.core();
        const auto& effects = core.facts(core.configured()).effects;
        watch_written(check, packed.kernel, effects, packed.values.data());
        watch_written(check, packed.kernel, effects, moved.data(), "the tangent of ");
    }
    const program::CompiledKernel& compiled =
        program::launch_derived(packed.kernel.core(), what, checks ? &check : nullptr);
    replace_arrays(records, std::move(recorded));
    count_writes(compiled, packed.values);
    count_writes(compiled, moved);
}

bool hessian_needs_launch(nb::handle kernel, nb::list values, nb::list tangents, nb::handle device) {
    Packed packed(kernel, values, device, "jvp()");
    program::DerivedLaunch what = with_tangents(packed, tangents, /*of_adjoint=*/true);
    const std::vector<std::byte> moving = packed.tangents(tangents);
    what.before = what.after = packed.block.data();
    what.tangents = moving.data();
    return program::needs_launch(packed.kernel.core(), what);
}

nb::list to_list(const std::vector<bool>& flags) {
    nb::list list;
    for (const bool flag : flags) list.append(flag);
    return list;
}

nb::tuple launch_needs(nb::handle kernel_object, nb::handle dim, nb::list values, nb::handle device_object,
                       nb::object shape) {
    Packed packed(kernel_object, values, device_object, "launch()");
    const auto extents = shape.is_none() ? std::vector<std::int64_t>() : nb::cast<std::vector<std::int64_t>>(shape);
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    std::vector<bool> is_array;
    nb::dict nested;
    for (std::size_t i = 0; i < packed.values.size(); ++i) {
        const Type type = packed.parameters[i].type;
        is_array.push_back(array_pointer(packed.values[i]) != nullptr);
        if (ir::holds_array(type.is_array() ? type.element() : type))
            nested[nb::int_(i)] = nested_arrays(packed.values[i]);
    }
    const program::LaunchNeeds needs = program::launch_needs(packed.kernel.core(), dims.span(), packed.block.data(),
                                                             packed.gradients(), is_array, extents);
    nb::list records;
    if (!needs.records.empty()) {
        if (shape.is_none()) {
            throw UsageError("Tape.record_launch()",
                             "the gradient of kernel '" + packed.kernel.key +
                                 "' needs what its atomics give, which only a launch that the tape records keeps. "
                                 "help: launch it inside of 'with tape:'");
        }
        for (runtime::Array& array : program::open_records(needs.records, extents, packed.device))
            records.append(nb::steal(make_array(std::move(array))));
    }
    nb::list before, within, after, gradients;
    for (const transform::Contents& contents : needs.contents) {
        before.append(contents.before);
        within.append(contents.within);
        after.append(contents.after);
    }
    for (const Gradient gradient : needs.gradients) gradients.append(gradient != Gradient::none);
    return nb::make_tuple(before, within, after, to_list(needs.writes), to_list(needs.writes_within),
                          to_list(needs.overwrites), gradients, nested, records, needs.has_adjoint, needs.is_left_out);
}

}  // namespace

void bind_adjoint(nb::module_& m) {
    m.def("run_adjoint", &run_adjoint, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("before"),
          nb::arg("after"), nb::arg("records"), nb::arg("gradients"), nb::arg("expected").none(),
          nb::arg("device").none(),
          "Runs the adjoint of a kernel. `before` and `after` are arrays to be read in place of the values (None: the "
          "value itself) where contents from before or after the launch are needed, `records` what its atomics gave, "
          "`gradients` arrays in place of their gradients (None: array.grad); all laid out as the values. A tape tells "
          "which gradients it `expected` when it recorded: stores leave those that are given as they are, and where an "
          "argument has one that was not expected, nothing is run, and False given back.");
    m.def("run_jvp", &run_jvp, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("tangents"),
          nb::arg("of_adjoint"), nb::arg("before"), nb::arg("after"), nb::arg("records"), nb::arg("device").none(),
          "Runs a kernel, or its adjoint, with tangents: one like each value, or None for zero. The other lists are "
          "those of run_adjoint().");
    m.def("hessian_needs_launch", &hessian_needs_launch, nb::arg("kernel"), nb::arg("values"), nb::arg("tangents"),
          nb::arg("device").none(), "Whether the adjoint with tangents needs what only the launch itself gives.");
    m.def(
        "launch_needs", &launch_needs, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"),
        nb::arg("device").none(), nb::arg("shape").none(),
        "What a tape has to know of a launch. Lists by argument: whether the adjoint needs the contents from before "
        "the launch, those of arrays that lie in its elements, and the contents from after it; whether the launch "
        "writes it, and arrays that lie in its elements; whether it overwrites all of it and does nothing else with "
        "it; whether the adjoint is that for a gradient of it. Then the arrays that lie in elements, by the number of "
        "the argument; arrays for what the launch has to keep of its atomics, where its grid has this shape (None: "
        "it is not made here); whether there is an adjoint, as the launch writes something that may have a gradient; "
        "whether there is none only because of enable_backward=False.");
    m.def(
        "field_names",
        [](nb::handle value) {
            std::vector<std::string> names;
            if (const StructValue* of = struct_pointer(value))
                for (const Type::Field& field : of->type().fields()) names.push_back(field.name);
            return names;
        },
        nb::arg("value"), "The fields of a struct instance.");
    m.def(
        "arrays_in", [](nb::handle value) { return array_objects_in(value); }, nb::arg("value").none(),
        "The arrays in the fields of a struct; none in anything else, such as a field that is None.");
}

}  // namespace weft::bindings
