#include "bindings/kernels/running.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/arrays/writes.h"
#include "bindings/foreign/foreign.h"
#include "bindings/python/log.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/host/settings.h"
#include "program/launch/launch.h"

namespace weft::bindings {

void watch_written(program::NanCheck& check, PyKernel& kernel, const std::vector<ParameterEffects>& effects,
                   PyObject* const* values, const std::string& of) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
        if (!effects[i].writes) continue;
        const std::string name = of + kernel.parameters()[i].name;
        if (PyArray* array = array_pointer(values[i])) check.watch(name, array->array);
        for (const NamedArray& field : named_arrays_in(values[i])) check.watch(name + field.name, field.array->array);
    }
}

std::vector<runtime::Array> arrays_of(nb::list list) {
    std::vector<runtime::Array> arrays;
    for (nb::handle array : list) arrays.push_back(array_pointer(array)->array);
    return arrays;
}

void replace_arrays(nb::list list, std::vector<runtime::Array> arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (array_pointer(list[i])->array.view.data != arrays[i].view.data)
            list[i] = nb::steal(make_array(std::move(arrays[i])));
}

void count_writes(const program::CompiledKernel& compiled, PyObject* const* values) {
    for (const std::size_t i : compiled.written) {
        if (compiled.effects[i].writes_within) count_nested_writes(values[i]);
        if (!compiled.effects[i].writes_itself) continue;
        if (compiled.parameter_types[i].is_struct()) {
            for (PyArray* array : arrays_in(values[i])) count_write(*array);
        } else if (PyArray* array = array_pointer(values[i])) {
            count_write(*array);
        }
    }
}

void warn_of_changed_name(PyKernel& kernel) {
    const std::string changed = kernel.core().changed_name();
    if (changed.empty() || program::settings().log_level > static_cast<int>(LogLevel::warning)) return;
    say(LogLevel::warning, changed + ", and kernel '" + kernel.key +
                               "' goes on with the value that it was compiled with. help: pass the value that changes "
                               "as an argument, or let kernel.module.mark_modified() compile it anew");
}

void print_launch(const PyKernel& kernel, const Dimensions& dims, const runtime::Device& device) {
    say(LogLevel::info, "kernel: " + kernel.key + ", dim " + runtime::shape_text(dims.span()) + ", on " + device.alias);
}

namespace {

// For memory that its owner lends for reading only, and tensors whose framework would not notice the write.
[[noreturn]] void throw_written(PyKernel& kernel, std::size_t index, nb::handle value, const std::string& why) {
    throw UsageError("launch()",
                     "argument " + std::to_string(index + 1) + " '" + kernel.parameters()[index].name +
                         "' of kernel '" + kernel.key + "' is " + describe(value) +
                         ", and the kernel writes to it: " + why,
                     ErrorCategory::value);
}

constexpr const char* kIsReadOnly =
    "its memory is read-only (a JAX array, a read-only NumPy array, or a copy that __array__ made). help: pass a copy, "
    "wp.array(value), and read the result from that";

}  // namespace

// Paddle calls it `not stop_gradient`.
bool tensor_requires_grad(nb::handle tensor) {
    if (!exchange_api(Py_TYPE(tensor.ptr()))) return false;
    static PyObject* const torch = PyUnicode_InternFromString("requires_grad");
    static PyObject* const paddle = PyUnicode_InternFromString("stop_gradient");
    for (PyObject* name : {torch, paddle}) {
        nb::object found = nb::steal(PyObject_GetAttr(tensor.ptr(), name));
        if (found.is_valid()) return (PyObject_IsTrue(found.ptr()) == 1) == (name == torch);
        PyErr_Clear();
    }
    return false;
}

void check_written(PyKernel& kernel, const program::CompiledKernel& compiled, PyObject* const* values,
                   const std::byte* block, const std::vector<runtime::Array>& holders) {
    for (const std::size_t i : compiled.written) {
        if (const PyArray* array = array_pointer(values[i])) {
            if (is_read_only(array->array)) throw_written(kernel, i, values[i], kIsReadOnly);
            continue;
        }
        if (compiled.parameter_types[i].is_struct()) {
            if (holders.empty()) continue;
            for (const PyArray* array : arrays_in(values[i]))
                if (is_read_only(array->array)) throw_written(kernel, i, values[i], kIsReadOnly);
            continue;
        }
        ArrayView view;
        std::memcpy(&view, block + kernel.parameters()[i].offset, sizeof view);
        if (!view.data) continue;
        const auto same = std::ranges::find(holders, view.data, [](const runtime::Array& a) { return a.view.data; });
        if (same != holders.end() && is_read_only(*same)) throw_written(kernel, i, values[i], kIsReadOnly);
        if (tensor_requires_grad(values[i])) {
            throw_written(kernel, i, values[i],
                          "the tensor requires a gradient, which its framework would compute as if nothing was "
                          "written. help: tensor.detach(), or wp.from_torch() or wp.from_paddle() and a wp.Tape");
        }
    }
}

// ---- running ----

static thread_local LaunchRecorder* recorder = nullptr;

LaunchRecorder* launch_recorder() { return recorder; }
void set_launch_recorder(LaunchRecorder* next) { recorder = next; }

void run_unrecorded(const program::CompiledKernel& compiled, const PackedLaunch& launch) {
    PyObject* const* const values = launch.values.data();
    if (program::settings().verify_fp) {
        program::NanCheck check;
        watch_written(check, launch.kernel, compiled.effects, values);
        program::launch(launch.kernel.core(), compiled, launch.device, launch.block, launch.grid, &check);
    } else {
        program::launch(launch.kernel.core(), compiled, launch.device, launch.block, launch.grid);
    }
    count_writes(compiled, values);
}

void run_keeping_atomic_results(const program::CompiledKernel& plain, const PackedLaunch& launch,
                                std::span<runtime::Array> returned) {
    PyObject* const* const values = launch.values.data();
    program::NanCheck check;
    const bool checks = program::settings().verify_fp;
    if (checks) watch_written(check, launch.kernel, plain.effects, values);
    const program::CompiledKernel& compiled = program::launch_keeping_atomic_results(
        launch.kernel.core(), launch.device, launch.dims.span(), launch.block, returned, checks ? &check : nullptr);
    count_writes(compiled, values);
}

// ---- arrays of structs that hold arrays ----

static bool may_hold(Type structure, Type element) {
    for (const Type::Field& field : structure.fields()) {
        if (field.type.is_array() && field.type.element() == element) return true;
        if (field.type.is_struct() && may_hold(field.type, element)) return true;
    }
    return false;
}

static void keep_stored_arrays(const program::CompiledKernel& compiled, PyObject* const* values,
                               std::span<const runtime::Array> holders) {
    std::vector<runtime::Array> written, all(holders.begin(), holders.end());
    for (std::size_t i = 0; i < compiled.effects.size(); ++i) {
        std::vector<PyArray*> arrays = arrays_in(values[i]);
        if (PyArray* array = array_pointer(values[i])) arrays.push_back(array);
        for (PyArray* array : arrays) {
            all.push_back(array->array);
            if (array->requires_grad) all.push_back(program::gradient_of(*array));
            if (compiled.effects[i].keeps && ir::holds_array(array->array.dtype)) written.push_back(array->array);
        }
    }
    for (const runtime::Array& to : written) {
        if (!to.buffer) continue;
        for (const runtime::Array& from : all) {
            if (!from.buffer) continue;
            if (may_hold(to.dtype, from.dtype)) {
                to.buffer->references.add(from.buffer, *to.buffer);
                to.buffer->references.add_extent(from.longest_extent(), *to.buffer);
            }
            if (ir::holds_array(from.dtype)) to.buffer->references.add_all(from.buffer->references, *to.buffer);
        }
    }
}

void mark_arrays_escaped(const program::CompiledKernel& compiled, PyObject* const* values,
                         std::span<const runtime::Array> holders) {
    for (std::size_t i = 0; i < compiled.effects.size(); ++i)
        if (const PyArray* array = array_pointer(values[i])) program::mark_gradient_escaped(*array);
    if (compiled.keeps_arrays) keep_stored_arrays(compiled, values, holders);
}

}  // namespace weft::bindings
