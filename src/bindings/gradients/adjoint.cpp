// Launches of adjoints and in forward mode, called by python/warp/_gradients/tape.py and tangents.py: Python's values
// become blocks of arguments, and program/launch/launch.h does the rest.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/devices/device.h"
#include "bindings/gradients/python_launch.h"
#include "bindings/gradients/tape.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/packed.h"
#include "bindings/kernels/running.h"
#include "bindings/spatial/spatial.h"
#include "bindings/structs/structs.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/host/settings.h"
#include "program/launch/launch.h"
#include "program/tape/referenced_objects.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using transform::Gradient;
namespace spatial = runtime::spatial;

void run_adjoint(nb::handle kernel_object, nb::handle dim, nb::list values, nb::list gradients,
                 nb::handle device_object, int block_dim, int max_blocks) {
    Packed packed(kernel_object, values, device_object, "launch()");
    packed.use_gradients(gradients);
    program::DerivedLaunch what;
    what.derivation.gradients = packed.gradients();
    std::vector<std::byte> numbers = packed.number_gradients(gradients, what.derivation.numbers);
    what.number_gradients = numbers.data();
    const Dimensions dims = launch_dimensions(packed.kernel, dim.ptr(), packed.block.data());
    what.dims = dims.span();
    what.before = what.after = packed.block.data();
    what.device = &packed.device;
    what.block_dim = block_dim;
    what.max_blocks = max_blocks;

    program::NanCheck check;
    const bool checks = program::settings().verify_fp;
    for (std::size_t i = 0; checks && i < packed.parameters.size(); ++i) {
        const std::string& name = packed.parameters[i].name;
        const auto watch = [&](const std::string& of, nb::handle gradient) {
            if (const PyArray* array = array_pointer(gradient)) check.watch(of, array->array);
        };
        if (PyArray* array = array_pointer(packed.values[i]))
            watch(name, nb::handle(gradients[i]).is_none() ? array->grad() : nb::handle(gradients[i]));
        const std::vector<NamedArray> given = named_arrays_in(nb::handle(gradients[i]));
        for (const NamedArray& field : named_arrays_in(packed.values[i])) {
            const auto found = std::ranges::find(given, field.name, &NamedArray::name);
            if (found == given.end())
                watch(name + field.name, field.array->grad());
            else
                check.watch(name + field.name, found->array->array);
        }
    }
    program::launch_derived(packed.kernel.core(), what, checks ? &check : nullptr);
    packed.take_number_gradients(gradients, what.derivation.numbers, numbers);
}

// A kernel, or its adjoint, with tangents: `tangents` has one for each value, or None.
program::DerivedLaunch with_tangents(Packed& packed, nb::list tangents, bool of_adjoint) {
    program::DerivedLaunch what;
    if (of_adjoint) what.derivation.gradients = packed.gradients();
    for (nb::handle tangent : tangents) what.derivation.tangents.push_back(!tangent.is_none());
    what.device = &packed.device;
    return what;
}

// The arrays of meshes that the kernel may read with these arguments; other objects have no arrays.
std::unique_ptr<program::ReferencedObjects> referenced_objects(Packed& packed) {
    program::Kernel& core = packed.kernel.core();
    const program::KernelFacts& facts = core.facts(core.configured());
    if (!program::ReferencedObjects::finds_any(facts)) return nullptr;
    std::vector<const program::Variable*> arrays;
    for (const program::BlockArray& block_array : core.arrays()) {
        const PyArray* const array = block_array.is_parameter
                                         ? array_pointer(packed.values[static_cast<std::size_t>(block_array.parameter)])
                                         : nullptr;
        arrays.push_back(array);
    }
    return std::make_unique<program::ReferencedObjects>(
        core.signature(), facts, packed.block.data(), arrays, [](std::uint64_t id) {
            const std::vector<program::Variable*> all = arrays_of_mesh(id);
            return std::vector<const program::Variable*>(all.begin(), all.end());
        });
}

nb::list arrays_of_objects(nb::handle kernel, nb::list values, nb::handle device) {
    Packed packed(kernel, values, device, "jvp()");
    nb::list arrays;
    if (const auto found = referenced_objects(packed))
        found->for_each_array([&](const program::Variable& one) { arrays.append(object_of(one)); });
    return arrays;
}

// The tangents of arrays of meshes: pairs of an array and its tangent.
class MovingArrays {
public:
    explicit MovingArrays(nb::list pairs) {
        for (nb::handle pair : pairs)
            moving_[array_pointer(pair[0])] = &array_argument(nb::object(pair[1]).ptr(), "jvp()", "meshes").array.view;
    }
    bool any() const { return !moving_.empty(); }
    // The memory of the tangents lives as long as the recorded work.
    void keep_in(runtime::Recording& recording) const {
        for (const auto& [array, tangent] : moving_) {
            const void* const addresses[] = {tangent->data, tangent->grad};
            recording.memory().add(addresses);
        }
    }
    const ArrayView* tangent(const program::Variable& of) const {
        const auto found = moving_.find(&of);
        return found == moving_.end() ? nullptr : found->second;
    }

private:
    std::map<const program::Variable*, const ArrayView*> moving_;
};

// The objects that a launch in forward mode finds by ids. For an adjoint of `entry`, a launch on `tape`: as that launch
// found them, or the present ones if `entry` is None. Meshes that do not move have no gradients.
spatial::PreviousObjectsPtr previous_objects(Packed& packed, bool of_adjoint, const MovingArrays& moving,
                                             nb::handle entry, nb::handle tape) {
    const auto tangent = [&](const program::Variable& of) { return moving.tangent(of); };
    const auto moves = [&](const program::Variable& of) { return moving.tangent(of) != nullptr; };
    runtime::Recording* const recording = runtime::current_recording(packed.device);
    if (recording) moving.keep_in(*recording);
    if (!entry.is_none()) {
        const auto& launch = nb::cast<const PyRecordedLaunch&>(entry);
        auto previous = launch.previous_objects(nb::cast<PyTape&>(tape).tape.memory(), moves);
        if (previous) launch.objects()->add_tangents(tangent, *previous);
        return previous;
    }
    if (!of_adjoint && !moving.any()) return nullptr;
    const std::unique_ptr<program::ReferencedObjects> found = referenced_objects(packed);
    if (!found) return nullptr;
    found->keep(packed.device);
    std::shared_ptr<spatial::PreviousObjects> previous;
    if (!of_adjoint) {
        previous = std::make_shared<spatial::PreviousObjects>(/*are_all=*/false);
        if (recording) previous->set_of_graph();
    } else if (recording) {
        previous = found->previous_in_graph({}, /*reads=*/false, moves, packed.kernel.core().name());
    } else {
        previous = found->previous({}, /*reads=*/false, moves);
    }
    found->add_tangents(tangent, *previous);
    return previous;
}

// bind_adjoint() describes the other lists; a kernel that is no adjoint fills `returned`.
void run_jvp(nb::handle kernel, nb::handle dim, nb::list values, nb::list tangents, bool of_adjoint, nb::list before,
             nb::list after, nb::list returned, nb::handle device, nb::list meshes, nb::handle entry, nb::handle tape) {
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
    const MovingArrays moving_arrays(meshes);
    if (of_adjoint) {  // on copies, which hvp() makes
        const spatial::SnapshotScope snapshot_scope(previous_objects(packed, of_adjoint, moving_arrays, entry, tape));
        program::launch_derived(packed.kernel.core(), what);
        if (!entry.is_none()) nb::cast<const PyRecordedLaunch&>(entry).check_found(spatial::SnapshotScope::current());
        return;
    }
    std::vector<PyObject*> moved;
    for (nb::handle tangent : tangents) moved.push_back(tangent.ptr());
    program::NanCheck check;
    const bool checks = program::settings().verify_fp;
    if (checks) {
        program::Kernel& core = packed.kernel.core();
        const auto& effects = core.facts(core.configured()).effects;
        watch_written(check, packed.kernel, effects, packed.values.data());
        watch_written(check, packed.kernel, effects, moved.data(), "the tangent of ");
    }
    std::optional<spatial::SnapshotScope> snapshot_scope;
    if (auto previous = previous_objects(packed, of_adjoint, moving_arrays, entry, tape))
        snapshot_scope.emplace(previous);
    const program::CompiledKernel& compiled =
        program::launch_derived(packed.kernel.core(), what, checks ? &check : nullptr);
    snapshot_scope.reset();
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
        nb::arg("device").none(), nb::arg("block_dim") = 0, nb::arg("max_blocks") = 0,
        "Runs the adjoint of a kernel, on arrays as they are. `gradients` has arrays in place of their gradients, laid "
        "out as the values (None: array.grad); for structs a struct of such arrays, whose numbers are added to; for "
        "other arguments a value of the parameter's type, which is added to, or None.");
    m.def(
        "run_jvp", &run_jvp, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("tangents"),
        nb::arg("of_adjoint"), nb::arg("before"), nb::arg("after"), nb::arg("returned"), nb::arg("device").none(),
        nb::arg("meshes"), nb::arg("entry") = nb::none(), nb::arg("tape") = nb::none(),
        "Runs a kernel, or its adjoint, with tangents: one like each value, or None for zero. `before` and `after` are "
        "arrays to be read in place of the values (None: the value itself) where contents from before or after the "
        "launch are needed, `returned` what its atomics returned; all laid out as the values. `meshes` has pairs of "
        "an array of a mesh that the launch may look into, and its tangent. `entry` is the launch on "
        "`tape` that an adjoint belongs to; ids mean the objects that this launch found.");
    m.def("arrays_of_objects", &arrays_of_objects, nb::arg("kernel"), nb::arg("values"), nb::arg("device").none(),
          "The arrays of the meshes that a launch may look into.");
    m.def("hessian_needs_launch", &hessian_needs_launch, nb::arg("kernel"), nb::arg("values"), nb::arg("tangents"),
          nb::arg("device").none(),
          "Whether the adjoint with tangents needs atomic results, which only the launch itself gives.");
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
