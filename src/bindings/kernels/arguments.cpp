#include "bindings/kernels/arguments.h"

#include <algorithm>
#include <cstring>

#include "bindings/foreign/foreign.h"
#include "bindings/kernels/launch_streams.h"
#include "bindings/python/fastcall.h"
#include "bindings/structs/structs.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "runtime/handles.h"
#include "runtime/memory_pool.h"
#include "support/error.h"
#include "types/objects.h"
#include "types/struct_key.h"

namespace weft::bindings {
namespace {

// "argument 2 'points' of kernel 'integrate'", counted from 1 as people do.
std::string subject(const PyKernel& kernel, const ParameterPlan& parameter, std::size_t index) {
    return "argument " + std::to_string(index + 1) + " '" + parameter.name + "' of kernel '" + kernel.key + "'";
}

[[noreturn]] void throw_wrong_array(const PyKernel& kernel, const ParameterPlan& parameter, std::size_t index,
                                    const PyArray& given) {
    std::string found = given.pending         ? pending_text(given)
                        : given.is_annotation ? "an annotation (wp.array without data)"
                                              : Type::array(given.array.dtype, given.array.ndim).python_name();
    std::string help;
    if (std::string again = redefinition_text(given.array.dtype, parameter.element); !again.empty()) {
        help = ": " + again;
    } else if (given.array.ndim != parameter.ndim) {
        help =
            "; it has " + std::to_string(given.array.ndim) + " dimensions, expected " + std::to_string(parameter.ndim);
    } else if (given.array.dtype != parameter.element) {
        help = ". help: convert it with .astype(), or annotate the parameter as " +
               Type::array(given.array.dtype, given.array.ndim).python_name();
    }
    throw UsageError(
        "launch()",
        subject(kernel, parameter, index) + " is " + found + ", expected " + parameter.type.python_name() + help,
        ErrorCategory::type);
}

// The reason to add if the device could reach an array of another device.
std::string why_not_taken(runtime::Device& device, const runtime::Array& array) {
    return runtime::may_touch(device, array) ? ", and wp.config.launch_array_access_mode is STRICT" : "";
}

void pack_array(PyKernel& kernel, const ParameterPlan& parameter, std::size_t index, nb::handle value,
                runtime::Device& device, std::byte* to, std::vector<runtime::Array>& holders, bool outlives,
                LaunchStreams* streams) {
    if (PyArray* given = array_pointer(value)) {
        const runtime::Array& array = given->array;
        if (array.dtype != parameter.element || array.ndim != parameter.ndim || given->is_annotation) {
            throw_wrong_array(kernel, parameter, index, *given);
        }
        if (array.device != &device && !runtime::launches_take(device, array)) {
            throw UsageError("launch()", subject(kernel, parameter, index) + " is " + parameter.type.python_name() +
                                             " on '" + array.device->alias + "', the launch is on '" + device.alias +
                                             "'" + why_not_taken(device, array) + ". help: " + parameter.name +
                                             ".to('" + device.alias + "')");
        }
        if (array.buffer && array.buffer->is_gone())
            runtime::throw_gone(array, "launch()", subject(kernel, parameter, index));
        std::memcpy(to, &array.view, sizeof(ArrayView));
        return;
    }
    if (value.is_none()) {  // an empty array
        ArrayView empty;
        std::memcpy(to, &empty, sizeof empty);
        return;
    }
    const auto name = [&] { return subject(kernel, parameter, index); };
    const ForeignName foreign_name("launch()", name);
    const auto check_device = [&](const runtime::Device* found) {
        if (found == &device) return;
        throw UsageError("launch()", name() + " is " + describe(value) + " in memory of '" + found->alias +
                                         "', the launch is on '" + device.alias + "'. help: wp.array(" +
                                         parameter.name + ", device='" + device.alias +
                                         "'), or wp.launch(..., device='" + found->alias + "')");
    };
    // The list of arguments keeps the object alive during the launch.
    if (!outlives) {
        const std::optional<ForeignArray> found = read_in_place(value, foreign_name);
        if (found && !found->is_read_only) {
            const ArrayView view = fit_view(*found, value, parameter.element, parameter.ndim, foreign_name);
            check_device(found->device);
            std::memcpy(to, &view, sizeof view);
            return;
        }
    }
    std::optional<std::uint64_t> stream;
    auto foreign = foreign_array(value, parameter.element, parameter.ndim, foreign_name, outlives, &stream);
    if (!foreign) {
        throw UsageError(
            "launch()",
            name() + " is " + describe(value) + ", expected " + parameter.type.python_name() +
                ". help: wp.array(...), a NumPy array, or an array of another library that has __dlpack__ or "
                "__array_interface__",
            ErrorCategory::type);
    }
    check_device(foreign->device);
    if (streams) streams->add_named(stream);
    std::memcpy(to, &foreign->view, sizeof(ArrayView));
    holders.push_back(std::move(*foreign));
}

// Checks that the arrays in a struct are on the launch's device, and keeps them alive as long as the block.
void hold_struct_arrays(PyKernel& kernel, const ParameterPlan& parameter, std::size_t index, nb::handle value,
                        runtime::Device& device, std::vector<runtime::Array>& holders) {
    for (PyArray* array : arrays_in(value)) {
        if (array->array.device != &device && !runtime::launches_take(device, array->array)) {
            throw UsageError("launch()", subject(kernel, parameter, index) + " holds an array on '" +
                                             array->array.device->alias + "', the launch is on '" + device.alias + "'" +
                                             why_not_taken(device, array->array));
        }
        if (array->array.buffer && array->array.buffer->is_gone())
            runtime::throw_gone(array->array, "launch()", subject(kernel, parameter, index));
        holders.push_back(array->array);
        if (array->requires_grad) holders.push_back(program::gradient_to_read(*array));
    }
}

// Kernels would find no texture in the table of another device.
void check_textures(const PyKernel& kernel, const ParameterPlan& parameter, std::size_t index, runtime::Device& device,
                    const std::byte* packed) {
    for (const std::int64_t offset : parameter.textures) {
        std::uint64_t id = 0;
        std::memcpy(&id, packed + offset, sizeof id);
        if (!runtime::spatial::is_object(id, ObjectKind::texture)) continue;
        const runtime::Device* const found = runtime::spatial::table_device(id);
        if (found == (device.geometry() ? &device : nullptr)) continue;
        const std::string where = found ? "'" + found->alias + "'" : "the CPU";
        throw UsageError("launch()", subject(kernel, parameter, index) +
                                         (offset == 0 && texture_dims(parameter.type) != 0 ? " is" : " holds") +
                                         " a texture on " + where + ", the launch is on '" + device.alias +
                                         "'. help: make the texture with device='" + device.alias + "'");
    }
}

}  // namespace

void pack_argument(PyKernel& kernel, const ParameterPlan& parameter, std::size_t index, PyObject* value,
                   runtime::Device& device, std::byte* block, std::vector<runtime::Array>& holders, bool outlives,
                   LaunchStreams* streams) {
    std::byte* to = block + parameter.offset;
    switch (parameter.filler) {
        case ParameterPlan::Filler::array:
            pack_array(kernel, parameter, index, value, device, to, holders, outlives, streams);
            return;
        case ParameterPlan::Filler::f32:
            if (PyFloat_CheckExact(value)) {
                const auto number = static_cast<float>(PyFloat_AS_DOUBLE(value));
                std::memcpy(to, &number, sizeof number);
                return;
            }
            break;
        case ParameterPlan::Filler::i32:
            if (PyLong_CheckExact(value)) {
                int overflow = 0;
                long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
                if (!overflow && number == static_cast<std::int32_t>(number)) {
                    auto narrow = static_cast<std::int32_t>(number);
                    std::memcpy(to, &narrow, sizeof narrow);
                    return;
                }
            }
            break;
        case ParameterPlan::Filler::value:
            break;
    }
    if (!write_value(value, parameter.type, to)) {
        std::string message =
            subject(kernel, parameter, index) + " is " + describe(value) + ", expected " + parameter.type.python_name();
        if (const StructValue* given = struct_pointer(value))
            if (std::string again = redefinition_text(given->type(), parameter.type); !again.empty())
                message += ": " + again;
        // Components that are missing, too many or of another kind.
        if (!parameter.type.is_scalar() && !parameter.type.is_struct() && (value == Py_None || PySequence_Check(value)))
            throw UsageError("launch()", message, ErrorCategory::value);
        throw_unfit("launch()", message, value, parameter.type);
    }
    if (!parameter.type.is_struct()) return;
    hold_struct_arrays(kernel, parameter, index, value, device, holders);
    check_textures(kernel, parameter, index, device, to);
}

void hold_arguments(PyKernel& kernel, std::span<PyObject* const> values, std::vector<runtime::Array>& holders) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const ParameterPlan& parameter = kernel.parameters()[i];
        if (parameter.filler != ParameterPlan::Filler::array || array_pointer(values[i])) continue;
        const auto name = [&] { return subject(kernel, parameter, i); };
        if (!read_in_place(values[i], ForeignName("launch()", name))) continue;  // the others are held already
        holders.push_back(*foreign_array(values[i], parameter.element, parameter.ndim, ForeignName("launch()", name),
                                         /*outlives=*/true));
    }
}

namespace {

bool read_extent(PyObject* object, std::int64_t& extent) {
    if (PyLong_CheckExact(object)) {
        extent = PyLong_AsLongLong(object);
    } else if (PyIndex_Check(object)) {
        nb::object index = nb::steal(PyNumber_Index(object));
        if (!index.is_valid()) {  // a NumPy array of several extents
            PyErr_Clear();
            return false;
        }
        extent = PyLong_AsLongLong(index.ptr());
    } else {
        return false;
    }
    if (extent == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        throw UsageError("launch()",
                         "dim " + std::string(nb::repr(nb::handle(object)).c_str()) + " does not fit into 64 bits",
                         ErrorCategory::value);
    }
    return true;
}

}  // namespace

Dimensions read_dimensions(PyObject* dim) {
    Dimensions result;
    if (read_extent(dim, result.extents[0])) {
        result.count = 1;
        return result;
    }
    const bool is_list = !PyUnicode_Check(dim) && !PyDict_Check(dim) && !PyAnySet_Check(dim);
    nb::object items = is_list ? sequence_items(dim) : nb::object();
    if (!items.is_valid()) {
        throw UsageError("launch()", "dim is " + describe(dim) + ", expected an int or a tuple of 1 to 4 ints",
                         ErrorCategory::type);
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    if (count < 1 || count > kMaxDims) {
        throw UsageError("launch()", "dim has " + std::to_string(count) + " extents, expected 1 to 4",
                         ErrorCategory::value);
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
        if (!read_extent(item, result.extents[i])) {
            throw UsageError("launch()", "dim[" + std::to_string(i) + "] is " + describe(item) + ", expected an int",
                             ErrorCategory::type);
        }
    }
    result.count = static_cast<std::size_t>(count);
    return result;
}

// A launch without dim: the shape of the first array, if it fits the names that tid() is unpacked to.
static Dimensions infer_dimensions(PyKernel& kernel, const std::byte* block) {
    program::Kernel& core = kernel.core();
    const int tid_rank = core.code(core.configured().debug).tid_rank();
    auto fail = [&](const std::string& why) {
        throw UsageError("launch()",
                         "dim is missing, and cannot be inferred for kernel '" + kernel.key + "': " + why +
                             ". help: dim=n or dim=(n, m)",
                         ErrorCategory::type);
    };
    for (const ParameterPlan& parameter : kernel.parameters()) {
        if (parameter.filler != ParameterPlan::Filler::array) continue;
        if (parameter.ndim != tid_rank) {
            fail("its first array '" + parameter.name + "' has " + std::to_string(parameter.ndim) +
                 " dimensions, and wp.tid() is " +
                 (tid_rank == 0 ? std::string("not used") : "unpacked to " + std::to_string(tid_rank) + " names"));
        }
        auto* view = reinterpret_cast<const ArrayView*>(block + parameter.offset);
        Dimensions result;
        result.count = static_cast<std::size_t>(parameter.ndim);
        std::copy(view->shape, view->shape + parameter.ndim, result.extents);
        return result;
    }
    fail("it has no array parameter");
    return {};
}

Dimensions launch_dimensions(PyKernel& kernel, PyObject* dim, const std::byte* block) {
    return dim && dim != Py_None ? read_dimensions(dim) : infer_dimensions(kernel, block);
}

void check_count(PyKernel& kernel, std::size_t given) {
    if (given == kernel.parameters().size()) return;
    std::vector<std::string> names;
    for (const ParameterPlan& parameter : kernel.parameters()) names.push_back(parameter.name);
    throw_wrong_count(kernel, given, names);
}

void throw_wrong_count(PyKernel& kernel, std::size_t given, const std::vector<std::string>& names) {
    const std::string difference = given < names.size()
                                       ? "'" + names[given] + "' is the first that is missing"
                                       : "there is no parameter for argument " + std::to_string(names.size() + 1);
    throw UsageError("launch()",
                     "got " + std::to_string(given) + (given == 1 ? " argument" : " arguments") +
                         " (inputs and outputs together), kernel " + kernel.signature() + " takes " +
                         std::to_string(names.size()) + ": " + difference,
                     ErrorCategory::type);
}

}  // namespace weft::bindings
