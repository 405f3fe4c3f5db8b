// Launches of adjoints and in forward mode, as python/warp/_gradients/tape.py and tangents.py ask for them: Python's
// values become blocks of arguments, and program/launch.h does the rest.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "bindings/arrays/array.h"
#include "bindings/arrays/array_object.h"
#include "bindings/gradients/recording.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/packed.h"
#include "bindings/kernels/running.h"
#include "bindings/python/device.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/launch.h"
#include "program/settings.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using transform::Gradient;

void run_adjoint(nb::handle kernel_object, nb::handle dim, nb::list values, nb::list gradients,
                 nb::handle device_object) {
    Packed packed(kernel_object, values, device_object, "launch()");
    packed.use_gradients(gradients);
    program::DerivedLaunch what;
    what.derivation.gradients = packed.gradients();
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    what.dims = dims.span();
    what.before = what.after = packed.block.data();
    what.device = &packed.device;

    program::FiniteCheck check;
    const bool checks = program::settings().verify_fp;
    for (std::size_t i = 0; checks && i < packed.parameters.size(); ++i) {
        const std::string& name = packed.parameters[i].name;
        const auto watch = [&](const std::string& of, nb::handle gradient) {
            if (const PyArray* array = array_pointer(gradient)) check.watch(of, array->array);
        };
        if (PyArray* array = array_pointer(packed.values[i]))
            watch(name, nb::handle(gradients[i]).is_none() ? array->grad() : nb::handle(gradients[i]));
        for (const NamedArray& field : named_arrays_in(packed.values[i])) watch(name + field.name, field.array->grad());
    }
    program::launch_derived(packed.kernel.core(), what, checks ? &check : nullptr);
}

// A kernel, or its adjoint, with tangents: `tangents` has one for each value, or None.
program::DerivedLaunch with_tangents(Packed& packed, nb::list tangents, bool of_adjoint) {
    program::DerivedLaunch what;
    if (of_adjoint) what.derivation.gradients = packed.gradients();
    for (nb::handle tangent : tangents) what.derivation.tangents.push_back(!tangent.is_none());
    what.device = &packed.device;
    return what;
}

// The other lists are as bind_adjoint() tells; a kernel that is no adjoint fills `returned`.
void run_jvp(nb::handle kernel, nb::handle dim, nb::list values, nb::list tangents, bool of_adjoint, nb::list before,
             nb::list after, nb::list returned, nb::handle device) {
    Packed packed(kernel, values, device, "jvp()");
    program::DerivedLaunch what = with_tangents(packed, tangents, of_adjoint);
    const std::vector<std::byte> block_before = packed.with_copies(before), block_after = packed.with_copies(after);
    const std::vector<std::byte> moving = packed.tangents(tangents);
    std::vector<runtime::Array> kept = arrays_of(returned);
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    what.dims = dims.span();
    what.before = block_before.data();
    what.after = block_after.data();
    what.tangents = moving.data();
    what.returned = kept;
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
    replace_arrays(returned, std::move(kept));
    count_writes(compiled, packed.values.data());
    count_writes(compiled, moved.data());
}

bool hessian_needs_launch(nb::handle kernel, nb::list values, nb::list tangents, nb::handle device) {
    Packed packed(kernel, values, device, "jvp()");
    program::DerivedLaunch what = with_tangents(packed, tangents, /*of_adjoint=*/true);
    const std::vector<std::byte> moving = packed.tangents(tangents);
    what.before = what.after = packed.block.data();
    what.tangents = moving.data();
    return program::needs_launch(packed.kernel.core(), what);
}

}  // namespace

void bind_adjoint(nb::module_& m) {
    m.def(
        "run_adjoint", &run_adjoint, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("gradients"),
        nb::arg("device").none(),
        "Runs the adjoint of a kernel, on arrays as they are. `gradients` has arrays in place of their gradients, laid "
        "out as the values (None: array.grad).");
    m.def(
        "run_jvp", &run_jvp, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("tangents"),
        nb::arg("of_adjoint"), nb::arg("before"), nb::arg("after"), nb::arg("returned"), nb::arg("device").none(),
        "Runs a kernel, or its adjoint, with tangents: one like each value, or None for zero. `before` and `after` are "
        "arrays to be read in place of the values (None: the value itself) where contents from before or after the "
        "launch are needed, `returned` what its atomics returned; all laid out as the values.");
    m.def("hessian_needs_launch", &hessian_needs_launch, nb::arg("kernel"), nb::arg("values"), nb::arg("tangents"),
          nb::arg("device").none(), "Whether the adjoint with tangents needs what only the launch itself gives.");
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
