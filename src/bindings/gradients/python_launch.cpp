#include "bindings/gradients/python_launch.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/devices/device.h"
#include "bindings/kernels/running.h"
#include "bindings/spatial/spatial.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/tape/stopped_gradients.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// The arrays of the block, in the order of Kernel::arrays().
std::vector<PyRecordedLaunch::Argument> arguments_of(PyKernel& kernel, std::span<PyObject* const> values) {
    const std::vector<program::BlockArray>& block_arrays = kernel.core().arrays();
    std::vector<PyRecordedLaunch::Argument> found(block_arrays.size());
    for (std::size_t i = 0; i < block_arrays.size();) {
        const int parameter = block_arrays[i].parameter;
        const nb::handle value = values[static_cast<std::size_t>(parameter)];
        if (block_arrays[i].is_parameter) {
            found[i++].array = array_pointer(value);
            continue;
        }
        // Both are in the order of the fields; a value that is no struct of ours has none.
        StructValue* const structure = struct_pointer(value);
        const std::span<StructValue::Slot> slots = structure ? structure->slots() : std::span<StructValue::Slot>();
        for (auto slot = slots.begin(); i < block_arrays.size() && block_arrays[i].parameter == parameter; ++i) {
            if (slot == slots.end()) continue;
            found[i].array = slot->array.is_valid() ? array_pointer(slot->array) : nullptr;
            ++slot;
        }
    }
    return found;
}

}  // namespace

PyRecordedLaunch::PyRecordedLaunch(LaunchDescription given)
    : RecordedLaunch(kernel_pointer(given.kernel)->differentiable(), given.device, given.block, given.dims,
                     arguments_of(*kernel_pointer(given.kernel), given.values)),
      kernel_object_(std::move(given.kernel)) {
    for (const Argument& one : arrays())
        if (one.array) object_of(*one.array).release();  // kept until the end of this launch
    if (!given.holders.empty()) rest().holders = given.holders;
    // Memory that is no Python array, and structs, are rare.
    if (!rest_ && !signature().has_structs) return;
    for (std::size_t i = 0; i < given.values.size(); ++i) {
        const Type type = signature().types[i];
        const nb::handle value = given.values[i];
        if (type.is_array() && !value.is_none() && !array_pointer(value))
            rest().values.emplace_back(i, nb::borrow(value));
        StructValue* const structure = type.is_struct() ? struct_pointer(value) : nullptr;
        if (structure &&
            std::ranges::any_of(structure->slots(), [](const auto& slot) { return slot.array.is_valid(); }))
            rest().structs.push_back(nb::borrow(value));
    }
    find_nested(given.values);
}

PyRecordedLaunch::~PyRecordedLaunch() {
    for (const Argument& one : arrays())
        if (one.array) object_of(*one.array).dec_ref();
}

void PyRecordedLaunch::find_nested(std::span<PyObject* const> values) {
    std::vector<Nested> nested;
    const std::vector<Type>& types = signature().types;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const Type type = types[i].is_array() ? types[i].element() : types[i];
        if (!type.is_struct() || !ir::holds_array(type)) continue;
        Nested& one = nested.emplace_back();
        one.parameter = i;
        for (nb::object& array : nested_arrays(values[i])) {
            one.arrays.push_back(array_pointer(array));
            rest().nested.push_back(std::move(array));
        }
    }
    if (!nested.empty()) set_nested(std::move(nested));
}

program::TapeEntry::Group PyRecordedLaunch::arrays_of_object(std::uint64_t id) {
    Group arrays;
    for (const program::Variable* array : arrays_of_mesh(id)) {
        arrays.push_back(array);
        if (array) rest().nested.push_back(object_of(*array));
    }
    return arrays;
}

// An instance with these bytes, and with the launch's arrays in its fields.
nb::object PyRecordedLaunch::struct_value(std::size_t parameter, const std::byte* bytes) const {
    const Type type = signature().types[parameter];
    nb::object made = new_struct(type);
    StructValue& structure = *struct_pointer(made);
    std::memcpy(structure.data(), bytes, static_cast<std::size_t>(type.size_bytes()));
    structure.set_from_memory();
    auto slot = structure.slots().begin();
    for (std::size_t i = 0; i < arrays().size(); ++i) {
        if (signature().arrays[i].parameter != static_cast<int>(parameter)) continue;
        if (arrays()[i].array) slot->array = object_of(*arrays()[i].array);
        ++slot;
    }
    return made;
}

nb::list PyRecordedLaunch::values() const {
    const std::vector<std::byte> bytes = block();
    nb::list result;
    const auto known = [&](std::size_t parameter) -> nb::object {
        if (rest_)
            for (const auto& [at, value] : rest_->values)
                if (at == parameter) return value;
        const Type type = signature().types[parameter];
        const std::byte* const from = bytes.data() + signature().layout.offsets[parameter];
        if (type.is_struct()) return struct_value(parameter, from);
        if (!type.is_array()) return value_to_python(type, from);
        for (std::size_t i = 0; i < arrays().size(); ++i)
            if (arrays()[i].array && signature().arrays[i].parameter == static_cast<int>(parameter))
                return object_of(*arrays()[i].array);
        return nb::none();
    };
    for (std::size_t i = 0; i < signature().types.size(); ++i) result.append(known(i));
    return result;
}

std::vector<nb::object> PyRecordedLaunch::structs() const { return rest_ ? rest_->structs : std::vector<nb::object>(); }

void PyRecordedLaunch::backward(const Backward& backward) {
    if (rest_)
        for (const runtime::Array& holder : rest_->holders)
            if (holder.buffer && holder.buffer->is_gone())
                runtime::throw_gone(holder, "Tape.backward()", "an array of " + text());
    RecordedLaunch::backward(backward);
}

std::vector<program::TapeEntry::Use> PyRecordedLaunch::uses() const {
    std::vector<Use> found = RecordedLaunch::uses();
    if (needs().is_left_out || !rest_ || rest_->values.empty()) return found;
    const std::vector<std::byte> bytes = block();
    const bool is_first = rest_->foreign.empty();
    for (std::size_t i = 0, next = 0; i < arrays().size(); ++i) {
        const program::BlockArray& block_array = signature().arrays[i];
        const ArrayView& view = program::view_at(bytes.data(), block_array.offset);
        if (arrays()[i].array || !block_array.is_parameter || !view.data) continue;
        if (is_first) {
            auto& made = rest_->foreign.emplace_back(std::make_unique<program::Variable>());
            made->array.view = view;
            made->array.view.grad = nullptr;
            made->array.dtype = block_array.type.element();
            made->array.ndim = block_array.ndim;
            made->array.device = &device();
            const auto holder =
                std::ranges::find(rest_->holders, view.data, [](const auto& one) { return one.view.data; });
            if (holder != rest_->holders.end()) made->array.buffer = holder->buffer;
            for (const auto& [at, value] : rest_->values)
                if (at == static_cast<std::size_t>(block_array.parameter) && made->array.buffer &&
                    tensor_requires_grad(value.ptr()))
                    program::note_gradient_beside(made->array.buffer, made->array.buffer);
        }
        const auto parameter = static_cast<std::size_t>(block_array.parameter);
        found.push_back({rest_->foreign[next++].get(), i, needs().reads[parameter], needs().writes[parameter], false});
    }
    return found;
}

bool PyRecordedLaunch::may_stop_gradients() const {
    if (RecordedLaunch::may_stop_gradients()) return true;
    if (!rest_ || rest_->values.empty()) return false;
    const bool writes_foreign =
        std::ranges::any_of(rest_->values, [&](const auto& value) { return needs().writes[value.first]; });
    const bool reads_gradient =
        std::ranges::any_of(rest_->values, [](const auto& value) { return tensor_requires_grad(value.second.ptr()); });
    return (writes_foreign || reads_gradient) &&
           std::ranges::any_of(arrays(), [](const auto& one) { return one.array && one.array->requires_grad; });
}

int PyRecordedLaunch::traverse(visitproc visit, void* arg) const {
    Py_VISIT(kernel_object_.ptr());
    for (const Argument& one : arrays())
        if (one.array) Py_VISIT(object_of(*one.array).ptr());
    if (!rest_) return 0;
    for (const auto& [parameter, value] : rest_->values) Py_VISIT(value.ptr());
    for (const std::vector<nb::object>* all : {&rest_->structs, &rest_->nested})
        for (const nb::object& one : *all) Py_VISIT(one.ptr());
    return 0;
}

std::vector<runtime::BufferPtr> PyRecordedLaunch::show_nested(std::byte* before, std::byte* after) const {
    nb::list originals, copies;
    for (const Nested& nested : this->nested()) {
        for (const program::SavedPrimalPtr& primal : nested.primals) {
            if (!primal->copy) continue;
            originals.append(object_of(*primal->of));
            copies.append(nb::steal(make_array(*primal->copy)));
        }
    }
    std::vector<runtime::BufferPtr> holders;
    const std::vector<program::BlockArray>& block_arrays = signature().arrays;
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        const auto& [array, primal] = arrays()[i];
        if (!array || !ir::holds_array(block_arrays[i].type.element())) continue;
        const nb::object shown = primal && primal->copy ? nb::steal(make_array(*primal->copy)) : object_of(*array);
        const runtime::Array leading = array_pointer(with_nested(shown, originals, copies))->array;
        program::view_at(before, block_arrays[i].offset).data = leading.view.data;
        if (!block_arrays[i].is_parameter) program::view_at(after, block_arrays[i].offset).data = leading.view.data;
        holders.push_back(leading.buffer);
    }
    return holders;
}

// ---- for Python ----

namespace {

nb::list objects_of(const program::TapeEntry::Group& variables) {
    nb::list result;
    for (const program::Variable* one : variables) result.append(object_of(*one));
    return result;
}

// The arrays that come from the program.
nb::list known_arrays(const PyRecordedLaunch& launch) {
    nb::list result;
    for (const PyRecordedLaunch::Argument& one : launch.arrays())
        if (one.array) result.append(object_of(*one.array));
    return result;
}

// By argument, the arrays that the adjoint reads.
nb::dict before(const PyRecordedLaunch& launch) {
    nb::dict result;
    const std::vector<program::BlockArray>& block_arrays = launch.signature().arrays;
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        if (!launch.arrays()[i].before) continue;
        const nb::int_ parameter(block_arrays[i].parameter);
        if (!result.contains(parameter)) result[parameter] = nb::list();
        nb::borrow<nb::list>(result[parameter]).append(nb::cast(launch.arrays()[i].before));
    }
    return result;
}

nb::dict after(const PyRecordedLaunch& launch) {
    nb::dict result;
    for (const auto& [parameter, primal] : launch.after()) result[nb::int_(parameter)] = nb::cast(primal);
    return result;
}

nb::dict within(const PyRecordedLaunch& launch) {
    nb::dict result;
    for (const PyRecordedLaunch::Nested& nested : launch.nested())
        if (!nested.primals.empty()) result[nb::int_(nested.parameter)] = nb::cast(nested.primals);
    return result;
}

nb::dict nested(const PyRecordedLaunch& launch) {
    nb::dict result;
    for (const PyRecordedLaunch::Nested& nested : launch.nested())
        result[nb::int_(nested.parameter)] = objects_of(nested.arrays);
    return result;
}

// The arrays of the meshes that the launch may read.
nb::list arrays_of_meshes(const PyRecordedLaunch& launch) {
    nb::list result;
    if (launch.objects())
        launch.objects()->for_each_primal([&](const program::Variable& array, const program::SavedPrimalPtr& primal) {
            result.append(nb::make_tuple(object_of(array), primal ? nb::cast(primal) : nb::none()));
        });
    return result;
}

nb::list returned(const PyRecordedLaunch& launch) {
    nb::list result;
    for (const runtime::Array& one : launch.returned) result.append(nb::steal(make_array(one)));
    return result;
}

nb::tuple dim(const PyRecordedLaunch& launch) {
    nb::list extents;
    for (const std::int64_t extent : launch.dims().span()) extents.append(extent);
    return nb::tuple(extents);
}

void bind_saved_primal(nb::module_& m) {
    using program::SavedPrimal;
    nb::class_<SavedPrimal>(m, "SavedPrimal", "That an entry of a tape reads an array, and its adjoint does so again.")
        .def(
            "__init__",
            [](SavedPrimal* self, nb::handle array) {
                new (self) SavedPrimal(array_argument(array.ptr(), "Tape", "array"));
            },
            nb::arg("array"), nb::keep_alive<1, 2>())
        .def_prop_ro(
            "array", [](const SavedPrimal& self) { return object_of(*self.of); }, "The array.")
        .def_prop_rw(
            "copy",
            [](const SavedPrimal& self) -> nb::object {
                return self.copy ? nb::steal(make_array(*self.copy)) : nb::none();
            },
            [](SavedPrimal& self, nb::handle copy) {
                self.copy = std::make_shared<const runtime::Array>(array_argument(copy.ptr(), "Tape", "copy").array);
            },
            "A copy of the contents that the entry saw; None while the array still has them.")
        .def_prop_ro(
            "copy_id", [](const SavedPrimal& self) { return reinterpret_cast<std::uintptr_t>(self.copy.get()); },
            "Tells copies apart: needs of the same contents share one. 0 without a copy.")
        .def(
            "contents",
            [](const SavedPrimal& self) { return self.copy ? nb::steal(make_array(*self.copy)) : object_of(*self.of); },
            "An array with the contents that the entry saw.");
}

}  // namespace

void bind_recorded_launch(nb::module_& m) {
    bind_saved_primal(m);
    nb::class_<PyRecordedLaunch, program::TapeEntry>(m, "RecordedLaunch", nb::type_slots(entry_slots),
                                                     "A launch on a tape: an entry of wp.Tape.launches.")
        .def_prop_ro(
            "kernel", [](const PyRecordedLaunch& self) { return self.kernel_object(); }, "The kernel.")
        .def_prop_ro("dim", &dim, "The grid, a tuple of 1 to 4 extents.")
        .def_prop_ro(
            "device", [](const PyRecordedLaunch& self) { return device_to_python(self.device()); },
            "The device on which it ran.")
        .def_prop_ro("values", &PyRecordedLaunch::values,
                     "Its arguments. Structs, vectors and matrices, which may be changed later, are copies.")
        .def_prop_ro(
            "structs", [](const PyRecordedLaunch& self) { return self.structs(); },
            "Those of its arguments that are structs with arrays, themselves.")
        .def_prop_ro(
            "writes", [](const PyRecordedLaunch& self) { return self.needs().writes; },
            "By argument: whether it is written.")
        .def_prop_ro(
            "is_smooth", [](const PyRecordedLaunch& self) { return self.needs().has_adjoint; },
            "Whether there is an adjoint: it writes something that may have a gradient.")
        .def_prop_ro(
            "is_left_out", [](const PyRecordedLaunch& self) { return self.needs().is_left_out; },
            "Whether there is none only because of enable_backward=False.")
        .def_prop_ro("before", &before, "Contents from before the launch that the adjoint reads: lists by argument.")
        .def_prop_ro("within", &within, "The same of arrays that lie in elements of arguments.")
        .def_prop_ro("after", &after, "Contents that the launch left which the adjoint reads, by argument.")
        .def_prop_ro("arrays_of_meshes", &arrays_of_meshes,
                     "Pairs of an array of a mesh that it may look into, and the saved primal of its contents or None.")
        .def_prop_ro("nested", &nested, "The arrays that lie in elements, by argument.")
        .def_prop_rw(
            "returned", &returned,
            [](PyRecordedLaunch& self, nb::list kept) {
                self.returned.clear();
                for (nb::handle one : kept)
                    self.returned.push_back(array_argument(one.ptr(), "Tape", "returned").array);
            },
            "The atomic results, as arrays.")
        .def("known_arrays", &known_arrays, "The arrays that the program has given.");
}

}  // namespace weft::bindings
