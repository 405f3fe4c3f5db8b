// wp.launch and recorded launches. This is the hot path: one C call that parses its arguments without building
// tuples or dictionaries, packs the argument block on the stack and runs.
//
// Steps, in the order of launch():
//   1. sort positional and keyword arguments into slots (fastcall.h)
//   2. dimensions; where missing, from the first array, once the kernel is analysed
//   3. every argument into the block, by the kernel's ParameterPlan; views of foreign arrays are kept alive in
//   `holders`
//   4. the variant: strided where an array has gaps, overlapping where a written array shares memory with another
//   5. run; the GIL is released where the estimate says that it is worth it
//   6. what the kernel printed goes to sys.stdout; a fault or Ctrl-C is raised
#include "bindings/kernels/launch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/gradients/recording.h"
#include "bindings/gradients/tape.h"
#include "bindings/interop/array_structure.h"
#include "bindings/interop/foreign.h"
#include "bindings/interop/xla_call.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "bindings/python/device.h"
#include "bindings/python/fastcall.h"
#include "bindings/python/log.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/host.h"
#include "program/launch.h"
#include "program/settings.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// ---- running ----

bool has_no_threads(const Dimensions& dims) {
    return std::ranges::any_of(dims.span(), [](std::int64_t extent) { return extent == 0; });
}

void print_launch(const PyKernel& kernel, const Dimensions& dims, const runtime::Device& device) {
    say(LogLevel::info, "kernel: " + kernel.key + ", dim " + runtime::shape_text(dims.span()) + ", on " + device.alias);
}

bool interrupted() {
    if (is_call_of_xla()) return false;
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;  // leaves KeyboardInterrupt set in this thread
}

// The machine code for this block.
const program::CompiledKernel& choose(PyKernel& kernel, const std::byte* block, const Dimensions& dims) {
    program::Kernel& core = kernel.core();
    return core.choose(core.variant_of(dims.span(), block), block);
}

// Memory that its owner lends to be read only, and tensors whose framework would not learn of the write.
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

// Whether a tensor of torch or Paddle does, which calls it `not stop_gradient`.
bool requires_grad(nb::handle tensor) {
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

// What the kernel writes may be written. `holders` has the memory of foreign arrays.
void check_written(PyKernel& kernel, const program::CompiledKernel& compiled, PyObject* const* values,
                   const std::byte* block, const std::vector<runtime::Array>& holders) {
    const auto is_lent = [](const runtime::Array& array) { return array.buffer && array.buffer->is_read_only; };
    for (std::size_t i = 0; i < compiled.effects.size(); ++i) {
        if (!compiled.effects[i].writes) continue;
        if (const PyArray* array = array_pointer(values[i])) {
            if (is_lent(array->array)) throw_written(kernel, i, values[i], kIsReadOnly);
            continue;
        }
        if (holders.empty()) continue;
        if (compiled.parameter_types[i].is_struct()) {
            for (const PyArray* array : arrays_in(values[i]))
                if (is_lent(array->array)) throw_written(kernel, i, values[i], kIsReadOnly);
            continue;
        }
        ArrayView view;
        std::memcpy(&view, block + kernel.parameters()[i].offset, sizeof view);
        const auto same = std::ranges::find(holders, view.data, [](const runtime::Array& a) { return a.view.data; });
        if (same == holders.end() || !view.data) continue;
        if (is_lent(*same)) throw_written(kernel, i, values[i], kIsReadOnly);
        if (requires_grad(values[i])) {
            throw_written(kernel, i, values[i],
                          "the tensor requires a gradient, which its framework would compute as if nothing was "
                          "written. help: tensor.detach(), or wp.from_torch() or wp.from_paddle() and a wp.Tape");
        }
    }
}

// Runs it, and counts what it writes.
void run_launch(PyKernel& kernel, const program::CompiledKernel& compiled, runtime::Device& device,
                const std::byte* block, const program::Grid& grid, PyObject* const* values) {
    if (program::settings().verify_fp) {
        program::FiniteCheck check;
        watch_written(check, kernel, compiled.effects, values);
        program::launch(kernel.core(), compiled, device, block, grid, &check);
    } else {
        program::run(compiled, device.default_stream(), block, grid);
    }
    count_writes(compiled, {values, compiled.effects.size()});
}

// The same with what its atomics give kept in `records`, for the adjoint.
void run_recording(PyKernel& kernel, const program::CompiledKernel& plain, runtime::Device& device,
                   const std::byte* block, const Dimensions& dims, PyObject* const* values,
                   std::span<runtime::Array> records) {
    program::FiniteCheck check;
    const bool checks = program::settings().verify_fp;
    if (checks) watch_written(check, kernel, plain.effects, values);
    const program::CompiledKernel& compiled =
        program::launch_recording(kernel.core(), device, dims.span(), block, records, checks ? &check : nullptr);
    count_writes(compiled, {values, compiled.effects.size()});
}

// ---- arrays of structs that hold arrays ----

bool may_hold(Type structure, Type element) {
    for (const Type::Field& field : structure.fields()) {
        if (field.type.is_array() && field.type.element() == element) return true;
        if (field.type.is_struct() && may_hold(field.type, element)) return true;
    }
    return false;
}

// A kernel that stores structs with array fields makes memory point to arrays that it got from any of its arguments:
// those of the right type, and what other structs point to. All of it lives from now on as long as that memory.
void keep_stored_arrays(const program::CompiledKernel& compiled, PyObject* const* values,
                        std::span<const runtime::Array> holders) {
    std::vector<runtime::Array> written, all(holders.begin(), holders.end());
    for (std::size_t i = 0; i < compiled.effects.size(); ++i) {
        std::vector<PyArray*> arrays = arrays_in(values[i]);
        if (PyArray* array = array_pointer(values[i])) arrays.push_back(array);
        for (PyArray* array : arrays) {
            all.push_back(array->array);
            if (array->requires_grad) all.push_back(array_pointer(array->grad)->array);
            if (compiled.effects[i].keeps && ir::holds_array(array->array.dtype)) written.push_back(array->array);
        }
    }
    for (const runtime::Array& to : written) {
        if (!to.buffer) continue;
        for (const runtime::Array& from : all) {
            if (!from.buffer) continue;
            if (may_hold(to.dtype, from.dtype)) to.buffer->references.add(from.buffer, *to.buffer);
            if (ir::holds_array(from.dtype)) to.buffer->references.add_all(from.buffer->references, *to.buffer);
        }
    }
}

// ---- the tape ----

// A launch as a tape has to know it.
struct Arguments {
    const nb::object& kernel;
    const std::byte* block;
    const program::Grid& grid;
    const Dimensions& dims;
    std::span<PyObject* const> values;
    const std::vector<runtime::Array>& holders;
    runtime::Device& device;
};

// A tape of a class that takes launches itself.
void run_taken(PyTape& recorder, const program::CompiledKernel& compiled, const Arguments& launch) {
    PyKernel& kernel = *kernel_pointer(launch.kernel);
    nb::list extents, given;
    for (const std::int64_t extent : launch.dims.span()) extents.append(extent);
    for (PyObject* value : launch.values) given.append(nb::handle(value));
    const nb::object tape = nb::borrow(active_tape());
    const nb::object answer =
        tape.attr("_record_launch")(launch.kernel, nb::tuple(extents), given, device_to_python(launch.device), true);
    if (answer.is_none()) return;  // it has run it
    const auto kept = nb::borrow<nb::list>(answer);
    try {
        if (nb::len(kept) == 0)
            return run_launch(kernel, compiled, launch.device, launch.block, launch.grid, launch.values.data());
        std::vector<runtime::Array> records = arrays_of(kept);
        run_recording(kernel, compiled, launch.device, launch.block, launch.dims, launch.values.data(), records);
        if (auto* last = dynamic_cast<PyLaunch*>(recorder.tape.entries().back().get()))
            last->records = std::move(records);
    } catch (...) {
        nb::error_scope keep;
        tape.attr("_forget_last")();
        throw;
    }
}

// Runs it, and records it before where a tape does so. What fails is not on the tape.
void run_recorded(PyTape* recorder, const program::CompiledKernel& compiled, const Arguments& launch) {
    PyKernel& kernel = *kernel_pointer(launch.kernel);
    if (!recorder) return run_launch(kernel, compiled, launch.device, launch.block, launch.grid, launch.values.data());
    if (recorder->takes_all) return run_taken(*recorder, compiled, launch);
    const nb::object tape = nb::borrow(active_tape());
    auto entry = std::make_shared<PyLaunch>(
        PyLaunch::Given{launch.kernel, launch.device, launch.block, launch.dims.span(), launch.values, launch.holders});
    entry->find_needs(compiled, launch.block, /*is_seen=*/true);
    recorder->tape.record(entry);
    try {
        if (entry->records.empty())
            run_launch(kernel, compiled, launch.device, launch.block, launch.grid, launch.values.data());
        else
            run_recording(kernel, compiled, launch.device, launch.block, launch.dims, launch.values.data(),
                          entry->records);
    } catch (...) {
        recorder->tape.forget_last();
        throw;
    }
}

// ---- recorded launches ----

// A launch with its arguments packed, to be run again and again (wp.launch(..., record_cmd=True)).
class Launch {
public:
    Launch(nb::object kernel, std::vector<std::byte> block, Dimensions dims, std::vector<nb::object> arguments,
           std::vector<runtime::Array> holders, runtime::Device* device)
        : kernel_object_(std::move(kernel)),
          kernel_(kernel_pointer(kernel_object_)),
          block_(std::move(block)),
          dims_(dims),
          arguments_(std::move(arguments)),
          holders_(std::move(holders)),
          device_(device) {
        refresh();
    }

    // One without arguments, to be filled: no threads, and None for each parameter.
    Launch(nb::object kernel, runtime::Device* device)
        : kernel_object_(std::move(kernel)),
          kernel_(kernel_pointer(kernel_object_)),
          device_(device),
          is_filled_(false) {
        if (!kernel_) {
            throw UsageError(
                "Launch()",
                "the kernel is " + describe(kernel_object_) + ", expected a function decorated with @wp.kernel",
                ErrorCategory::type);
        }
        arguments_.assign(kernel_->parameters().size(), nb::none());
        block_.resize(static_cast<std::size_t>(kernel_->block_bytes()));
        dims_.count = 1;
        dims_.extents[0] = 0;
    }

    void set_dim(nb::handle dim) {
        dims_ = read_dimensions(dim.ptr());
        if (is_filled_) refresh();
    }

    void set_parameter(std::size_t index, nb::handle value) {
        const auto& parameters = kernel_->parameters();
        if (index >= parameters.size()) {
            throw UsageError("Launch.set_param_at_index()",
                             "kernel '" + kernel_->key + "' has " + std::to_string(parameters.size()) +
                                 " parameters, there is no index " + std::to_string(index),
                             ErrorCategory::index);
        }
        if (is_array_structure(value.ptr())) value = array_in(value.ptr());
        pack_argument(*kernel_, parameters[index], index, value.ptr(), *device_, block_.data(), holders_);
        arguments_[index] = nb::borrow(value);
        if (is_filled_) refresh();
    }

    void set_parameter(const std::string& name, nb::handle value) {
        const auto& parameters = kernel_->parameters();
        std::vector<std::string> names;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (parameters[i].name == name) return set_parameter(i, value);
            names.push_back(parameters[i].name);
        }
        throw UsageError("Launch.set_param_by_name()",
                         "kernel '" + kernel_->key + "' has no parameter '" + name + "'; it has " + join_or(names),
                         ErrorCategory::value);
    }

    void set_parameters(nb::sequence values) {
        std::size_t count = nb::len(values);
        if (count != arguments_.size()) {
            throw UsageError("Launch.set_params()",
                             "got " + std::to_string(count) + " values, kernel " + kernel_->signature() + " takes " +
                                 std::to_string(arguments_.size()),
                             ErrorCategory::type);
        }
        for (std::size_t i = 0; i < count; ++i) set_parameter(i, values[i]);
    }

    void launch() {
        if (!is_filled_) {
            if (has_no_threads(dims_)) return;
            refresh();
            is_filled_ = true;
        }
        if (program::settings().print_launches) print_launch(*kernel_, dims_, *device_);
        if (!active_tape() && !compiled_->keeps_arrays && !program::settings().verify_fp) {
            program::run(*compiled_, device_->default_stream(), block_.data(), grid_);
            for (const nb::object& array : written_) count_write(*array_pointer(array));
            for (const nb::object& holder : written_within_) count_nested_writes(holder);
            return;
        }
        std::vector<PyObject*> values;
        for (const nb::object& argument : arguments_) values.push_back(argument.ptr());
        if (compiled_->keeps_arrays) keep_stored_arrays(*compiled_, values.data(), holders_);
        run_recorded(active_recorder(), *compiled_,
                     {kernel_object_, block_.data(), grid_, dims_, values, holders_, *device_});
    }

    nb::object kernel() const { return kernel_object_; }
    nb::object device() const { return device_to_python(*device_); }
    nb::object bounds() const {
        static PyObject* module = nullptr;
        return function_of("warp._kernels.commands", module, "LaunchBounds")(dim());
    }
    nb::list parameters() const {
        nb::list result;
        result.append(bounds());
        for (const nb::object& argument : arguments_) result.append(argument);
        return result;
    }
    nb::tuple dim() const {
        nb::list extents;
        for (std::int64_t extent : dims_.span()) extents.append(extent);
        return nb::tuple(extents);
    }

private:
    // After any change: the variant, the grid, and which arrays count writes.
    void refresh() {
        compiled_ = &choose(*kernel_, block_.data(), dims_);
        std::vector<PyObject*> values;
        for (const nb::object& argument : arguments_) values.push_back(argument.ptr());
        check_written(*kernel_, *compiled_, values.data(), block_.data(), holders_);
        grid_ = program::make_grid(dims_.span(), compiled_->description.tid_rank, kernel_->key);
        written_.clear();
        written_within_.clear();
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            if (compiled_->effects[i].writes_within) written_within_.push_back(arguments_[i]);
            if (!compiled_->effects[i].writes_itself) continue;
            if (array_pointer(arguments_[i])) written_.push_back(arguments_[i]);
            for (nb::object& array : array_objects_in(arguments_[i])) written_.push_back(std::move(array));
        }
    }

    nb::object kernel_object_;
    PyKernel* kernel_;
    std::vector<std::byte> block_;
    Dimensions dims_;
    std::vector<nb::object> arguments_;
    std::vector<runtime::Array> holders_;
    std::vector<nb::object> written_;
    std::vector<nb::object> written_within_;  // arguments
    runtime::Device* device_;
    const program::CompiledKernel* compiled_ = nullptr;
    program::Grid grid_;
    bool is_filled_ = true;  // false until the first run of one that was made without arguments
};

// A ctypes number or struct as the Python value that stands for it: python/warp/_kernels/commands.py.
nb::object from_ctype(nb::handle value) {
    static PyObject* module = nullptr;
    return function_of("warp._kernels.commands", module, "value_of_ctype")(value);
}

// Commands of plain launches have no gradients to be set.
void refuse_adjoint(bool adjoint, const char* api) {
    if (adjoint) {
        throw UsageError(
            api, "this launch was recorded without gradients. help: wp.launch(..., adjoint=True, record_cmd=True)",
            ErrorCategory::index);
    }
}

// ---- wp.launch ----

enum Slot : int {
    kKernel,
    kDim,
    kInputs,
    kOutputs,
    kAdjInputs,
    kAdjOutputs,
    kDevice,
    kStream,
    kAdjoint,
    kRecordTape,
    kRecordCmd,
    kMaxBlocks,
    kBlockDim,
    kSlotCount
};
using Slots = Signature<kSlotCount>::Values;

// The arguments of a kernel: inputs then outputs, each a list, a tuple or another sequence.
class Values {
public:
    Values(PyObject* inputs, PyObject* outputs) {
        add(inputs, "inputs", 0);
        add(outputs, "outputs", 1);
        if (parts_[1].is_valid() && size(1) > 0) {
            joined_.reserve(size(0) + size(1));
            for (int part : {0, 1}) joined_.insert(joined_.end(), items(part), items(part) + size(part));
        }
        if (std::any_of(data(), data() + count(), is_array_structure)) {
            if (joined_.empty()) joined_.assign(items(0), items(0) + size(0));
            for (PyObject*& item : joined_)
                if (is_array_structure(item)) item = array_in(item);
        }
    }
    PyObject* const* data() const { return joined_.empty() ? items(0) : joined_.data(); }
    std::size_t count() const { return joined_.empty() ? size(0) : joined_.size(); }

private:
    void add(PyObject* sequence, const char* name, int part) {
        if (!sequence || sequence == Py_None) return;
        // These can be iterated too, but are never meant as the list of arguments.
        const bool is_other =
            PyUnicode_Check(sequence) || PyDict_Check(sequence) || PyAnySet_Check(sequence) || array_pointer(sequence);
        const bool is_quick = PyList_Check(sequence) || PyTuple_Check(sequence);
        nb::object fast = is_quick ? nb::borrow(sequence) : is_other ? nb::object() : sequence_items(sequence);
        if (!fast.is_valid()) {
            throw UsageError("launch()",
                             std::string(name) + " is " + describe(sequence) +
                                 ", expected a list of arguments. help: " + name + "=[...]",
                             ErrorCategory::type);
        }
        parts_[part] = std::move(fast);
    }
    std::size_t size(int part) const {
        return parts_[part].is_valid() ? static_cast<std::size_t>(PySequence_Fast_GET_SIZE(parts_[part].ptr())) : 0;
    }
    PyObject* const* items(int part) const {
        return parts_[part].is_valid() ? PySequence_Fast_ITEMS(parts_[part].ptr()) : nullptr;
    }

    nb::object parts_[2];
    std::vector<PyObject*> joined_;
};

// adjoint=True: python/warp/_gradients/adjoint_launch.py decides which gradients are worked on.
nb::object launch_adjoint(const Slots& slots) {
    static PyObject* module = nullptr;
    const auto given = [&](Slot slot) { return slots[slot] ? nb::borrow(slots[slot]) : nb::none(); };
    if (flag(slots[kRecordCmd], false)) {
        static PyObject* commands = nullptr;
        return function_of("warp._kernels.commands", commands, "AdjointLaunch")(
            given(kKernel), given(kDim), given(kInputs), given(kOutputs), given(kAdjInputs), given(kAdjOutputs),
            given(kDevice));
    }
    return function_of("warp._gradients.adjoint_launch", module, "launch_adjoint")(
        given(kKernel), given(kDim), given(kInputs), given(kOutputs), given(kAdjInputs), given(kAdjOutputs),
        given(kDevice));
}

nb::object launch(const Slots& slots) {
    PyKernel* kernel = kernel_pointer(slots[kKernel]);
    if (!kernel) {
        throw UsageError(
            "launch()", "the kernel is " + describe(slots[kKernel]) + ", expected a function decorated with @wp.kernel",
            ErrorCategory::type);
    }
    if (flag(slots[kAdjoint], false)) return launch_adjoint(slots);
    if (is_given(slots[kStream])) {
        throw UsageError("launch()",
                         "stream is " + describe(slots[kStream]) + ": the CPU has no streams; expected None");
    }
    runtime::Device& device = device_from_python(slots[kDevice], "launch()");

    Values values(slots[kInputs], slots[kOutputs]);
    const bool is_command = flag(slots[kRecordCmd], false);
    Dimensions dims;
    if (is_given(slots[kDim])) {
        dims = read_dimensions(slots[kDim]);
        if (!is_command && has_no_threads(dims)) {
            if (!kernel->is_generic() && values.count() != kernel->parameters().size())
                check_count(*kernel, values.count());
            return nb::none();
        }
    }
    nb::object kernel_object = nb::borrow(slots[kKernel]);
    if (kernel->is_generic()) {
        kernel_object = kernel->instance_for({values.data(), values.count()});
        kernel = kernel_pointer(kernel_object);
    }
    const auto& parameters = kernel->parameters();
    if (values.count() != parameters.size()) check_count(*kernel, values.count());
    std::size_t block_bytes = static_cast<std::size_t>(kernel->block_bytes());
    program::Block block(block_bytes);
    std::vector<runtime::Array> holders;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        pack_argument(*kernel, parameters[i], i, values.data()[i], device, block.data(), holders);
    }

    if (dims.count == 0) dims = launch_dimensions(*kernel, nullptr, block.data());
    const program::CompiledKernel& compiled = choose(*kernel, block.data(), dims);
    check_written(*kernel, compiled, values.data(), block.data(), holders);
    if (is_command) {
        std::vector<nb::object> arguments;
        for (std::size_t i = 0; i < values.count(); ++i) arguments.push_back(nb::borrow(values.data()[i]));
        return nb::cast(new Launch(kernel_object, {block.data(), block.data() + block_bytes}, dims,
                                   std::move(arguments), std::move(holders), &device),
                        nb::rv_policy::take_ownership);
    }
    program::Grid grid = program::make_grid(dims.span(), compiled.description.tid_rank, kernel->key);
    if (program::settings().print_launches) {
        print_launch(*kernel, dims, device);
    }
    if (compiled.keeps_arrays) keep_stored_arrays(compiled, values.data(), holders);
    PyTape* const recorder = flag(slots[kRecordTape], true) ? active_recorder() : nullptr;
    run_recorded(recorder, compiled,
                 {kernel_object, block.data(), grid, dims, {values.data(), values.count()}, holders, device});
    return nb::none();
}

PyObject* launch_entry(PyObject*, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    static const Signature<kSlotCount> signature(
        "launch()",
        {"kernel", "dim", "inputs", "outputs", "adj_inputs", "adj_outputs", "device", "stream", "adjoint",
         "record_tape", "record_cmd", "max_blocks", "block_dim"},
        1);
    return guarded([&] {
        Slots slots = signature.parse(arguments, positional, keywords);
        // Programs of 2021 have `adjoint` in the place of `stream`; a bool is no stream.
        if (positional > kStream && PyBool_Check(slots[kStream])) {
            if (slots[kAdjoint]) throw_given_twice(signature.api(), "adjoint");
            std::swap(slots[kStream], slots[kAdjoint]);
        }
        return launch(slots).release().ptr();
    });
}

constexpr const char* kLaunchDoc =
    "launch($module, kernel, dim=None, inputs=(), outputs=(), adj_inputs=(), adj_outputs=(), device=None, "
    "stream=None, adjoint=False, record_tape=True, record_cmd=False, max_blocks=0, block_dim=256)\n--\n\n"
    "Runs a kernel once for every point of a grid.\n\n"
    "Args:\n"
    "    kernel: a function decorated with @wp.kernel.\n"
    "    dim: number of threads, or a tuple of 1 to 4 extents; where missing, the shape of the first array argument,\n"
    "        if it has as many dimensions as wp.tid() is unpacked to.\n"
    "    inputs: the arguments in order: arrays (wp.array, NumPy arrays and others with __array_interface__, without\n"
    "        copying; None for an empty one), numbers, vectors and matrices (also as tuples).\n"
    "    outputs: further arguments, after the inputs.\n"
    "    device: where to run; all arrays must live there. The default is the current device.\n"
    "    stream: None. A bool as eighth positional argument is `adjoint`, as it was in 2021.\n"
    "    record_cmd: do not run, but return a Launch whose launch() runs with these arguments.\n"
    "    max_blocks, block_dim: shape CUDA launches; the CPU has no use for them.\n"
    "Returns:\n"
    "    None, or a Launch with record_cmd=True.\n"
    "Raises:\n"
    "    CompileError: the kernel has a mistake.\n"
    "    UsageError (a RuntimeError): an argument has the wrong type, number of dimensions or device.\n";

PyMethodDef launch_method = {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&launch_entry)),
                             METH_FASTCALL | METH_KEYWORDS, kLaunchDoc};

}  // namespace

void watch_written(program::FiniteCheck& check, PyKernel& kernel, const std::vector<ParameterEffects>& effects,
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

void count_writes(const program::CompiledKernel& compiled, std::span<PyObject* const> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (compiled.effects[i].writes_within) count_nested_writes(values[i]);
        if (!compiled.effects[i].writes_itself) continue;
        if (compiled.parameter_types[i].is_struct()) {
            for (PyArray* array : arrays_in(values[i])) count_write(*array);
        } else if (PyArray* array = array_pointer(values[i])) {
            count_write(*array);
        }
    }
}

// What kernels print goes to sys.stdout.
static void print_to_python(const std::string& text) {
    const nb::gil_scoped_acquire gil;  // threads of XLA have it not
    nb::object out = nb::module_::import_("sys").attr("stdout");
    if (out.is_none()) return;  // a process without a console (pythonw): Python's own print() does the same
    out.attr("write")(text);
}

void bind_launch(nb::module_& m) {
    program::host() = {.interrupted = &interrupted,
                       .stop = [] { throw nb::python_error(); },
                       .leave = []() -> void* { return is_call_of_xla() ? nullptr : PyEval_SaveThread(); },
                       .enter =
                           [](void* state) {
                               if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
                           },
                       .print = &print_to_python,
                       .log = &log};
    m.attr("launch") = nb::steal(PyCFunction_NewEx(&launch_method, nullptr, nb::str("warp").release().ptr()));

    bind_adjoint(m);
    bind_tape(m);
    bind_recording(m);
    bind_xla_calls(m);
    nb::class_<Launch>(m, "Launch", "A recorded launch: wp.launch(..., record_cmd=True).")
        .def("set_dim", &Launch::set_dim, nb::arg("dim"), "Changes the grid.")
        .def(
            "set_param_at_index",
            [](Launch& self, std::size_t index, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_at_index()");
                self.set_parameter(index, value);
            },
            nb::arg("index"), nb::arg("value").none(), nb::arg("adjoint") = false,
            "Changes one argument, counted from 0.")
        .def(
            "set_param_by_name",
            [](Launch& self, const std::string& name, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_by_name()");
                self.set_parameter(name, value);
            },
            nb::arg("name"), nb::arg("value").none(), nb::arg("adjoint") = false,
            "Changes one argument by its parameter's name.")
        .def(
            "set_param_at_index_from_ctype",
            [](Launch& self, std::size_t index, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_at_index_from_ctype()");
                self.set_parameter(index, from_ctype(value));
            },
            nb::arg("index"), nb::arg("value"), nb::arg("adjoint") = false,
            "The same, with a number of ctypes, a vector or a matrix.")
        .def(
            "set_param_by_name_from_ctype",
            [](Launch& self, const std::string& name, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_by_name_from_ctype()");
                self.set_parameter(name, from_ctype(value));
            },
            nb::arg("name"), nb::arg("value"), nb::arg("adjoint") = false, "The same, by the parameter's name.")
        .def(
            "set_params_from_ctypes",
            [](Launch& self, nb::sequence values) {
                nb::list converted;
                for (nb::handle value : values) converted.append(from_ctype(value));
                self.set_parameters(nb::borrow<nb::sequence>(converted));
            },
            nb::arg("values"), "Changes all arguments: numbers of ctypes, vectors and matrices.")
        .def(
            "__init__",
            [](Launch* self, nb::object kernel, nb::object device) {
                new (self) Launch(std::move(kernel), &device_from_python(device, "Launch()"));
            },
            nb::arg("kernel"), nb::arg("device") = nb::none(),
            "A launch without threads and arguments, to be filled by set_dim() and set_params().")
        .def_prop_ro("device", &Launch::device, "Where it runs.")
        .def_prop_ro("params", &Launch::parameters, "The bounds, then the arguments as they were given: a list.")
        .def_prop_ro(
            "max_blocks", [](const Launch&) { return 0; }, "0: the CPU has no blocks.")
        .def_prop_ro(
            "block_dim", [](const Launch&) { return 1; }, "1: a block of the CPU is a thread.")
        .def_prop_ro("bounds", &Launch::bounds, "The grid: an object with shape and size.")
        .def("set_params", &Launch::set_parameters, nb::arg("values"), "Changes all arguments.")
        .def(
            "launch",
            [](Launch& self, nb::handle stream) {
                if (!stream.is_none())
                    throw UsageError("Launch.launch()", "stream must be None: the CPU has no streams");
                self.launch();
            },
            nb::arg("stream") = nb::none(), "Runs the kernel with the arguments as they are now set.")
        .def("__call__", [](Launch& self) { self.launch(); })
        .def_prop_ro("kernel", &Launch::kernel, "The kernel that runs.")
        .def_prop_ro("dim", &Launch::dim, "The grid, a tuple of 1 to 4 extents.");
}

}  // namespace weft::bindings
