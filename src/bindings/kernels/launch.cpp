// wp.launch. This is the hot path: one C call that parses its arguments without building tuples or dictionaries, packs
// the argument block on the stack and runs.
//
// Steps, in the order of launch():
//   1. sort positional and keyword arguments into slots (fastcall.h)
//   2. read `dim`, if given; a generic kernel becomes its instance
//   3. pack each argument into the block, by the kernel's ParameterPlan; `holders` keeps views of foreign arrays alive
//   4. without `dim`, take the dimensions of the first array
//   5. choose the code for the layout of the arrays (running.h, program/kernel/launch_layout.h)
//   6. with record_cmd, return a command
//   7. run: a tape records the launch and runs it, or run_unrecorded() does (program/launch/run.h: the GIL, printed
//      output, faults, Ctrl-C)
#include "program/launch/launch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/array_structure.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "bindings/kernels/launch_command.h"
#include "bindings/kernels/launch_streams.h"
#include "bindings/kernels/running.h"
#include "bindings/python/fastcall.h"
#include "bindings/python/lock.h"
#include "bindings/python/log.h"
#include "bindings/structs/structs.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "ir/typing.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "runtime/recording.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// Behind the interpreter's end there is no lock to ask for: daemon threads may still be in a launch.
bool interrupted() {
    if (is_foreign_call() || !Py_IsInitialized()) return false;
    const PythonLock lock;
    return PyErr_CheckSignals() != 0;  // leaves KeyboardInterrupt set in this thread
}

// Reports a long compilation (warp._support.progress). An error in the report is not one of the launch.
void tell_of_compilation(const std::string& kernel, std::optional<double> seconds) {
    if (is_foreign_call()) return;
    const PythonLock lock;
    try {
        const nb::module_ progress = nb::module_::import_("warp._support.progress");
        if (seconds)
            progress.attr("compiling")(kernel, *seconds);
        else
            progress.attr("compiled")(kernel);
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("a line about a compilation");
    }
}

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
    kDeterministic,
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
    }
    // Replaces a structure by the array that it stands for.
    PyObject* open(std::size_t i) {
        if (joined_.empty()) joined_.assign(items(0), items(0) + size(0));
        return joined_[i] = array_in(joined_[i]);
    }
    // The same for a parameter; the structure may have the components of its vectors or matrices.
    PyObject* open(std::size_t i, const ParameterPlan& parameter) {
        PyObject* const array = open(i);
        nb::object elements = as_elements_of(array, parameter.element, parameter.ndim);
        if (!elements.is_valid()) return array;
        kept_.push_back(elements);
        return joined_[i] = elements.ptr();
    }
    // Replaces all structures by arrays.
    void open_all() {
        for (std::size_t i = 0; i < count(); ++i)
            if (is_array_structure(data()[i])) open(i);
    }
    // Appends the defaults of the last parameters, if arguments for them are missing.
    void add_defaults(PyKernel& kernel) {
        const std::size_t given = count(), wanted = kernel.parameter_count();
        const nb::object defaults = nb::getattr(kernel.function, "__defaults__", nb::none());
        if (given >= wanted || !PyTuple_Check(defaults.ptr()) || wanted - given > nb::len(defaults)) return;
        if (joined_.empty()) joined_.assign(items(0), items(0) + size(0));
        for (std::size_t i = nb::len(defaults) - (wanted - given); i < nb::len(defaults); ++i)
            joined_.push_back(PyTuple_GET_ITEM(defaults.ptr(), static_cast<Py_ssize_t>(i)));
    }
    // Keeps the values alive and fixed, even if other threads change a list meanwhile.
    void keep() {
        if (joined_.empty()) joined_.assign(items(0), items(0) + size(0));
        kept_.reserve(joined_.size());
        for (PyObject* value : joined_) kept_.push_back(nb::borrow(value));
    }
    PyObject* const* data() const { return joined_.empty() ? items(0) : joined_.data(); }
    std::size_t count() const { return joined_.empty() ? size(0) : joined_.size(); }

private:
    void add(PyObject* sequence, const char* name, int part) {
        if (!sequence || sequence == Py_None) return;
        if (PyList_Check(sequence) || PyTuple_Check(sequence)) {
            parts_[part] = nb::borrow(sequence);
            return;
        }
        // These can be iterated too, but are never meant as the list of arguments.
        const bool is_other =
            PyUnicode_Check(sequence) || PyDict_Check(sequence) || PyAnySet_Check(sequence) || array_pointer(sequence);
        nb::object fast = is_other ? nb::object() : sequence_items(sequence);
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
    std::vector<nb::object> kept_;
};

// Packs a structure that fits the parameter as it is; otherwise false, and the array's own path gives the error.
bool pack_structure(PyObject* structure, const ParameterPlan& parameter, const runtime::Device& device,
                    std::byte* block) {
    if (parameter.filler != ParameterPlan::Filler::array) return false;
    const ArrayView* const view = plain_view(structure, parameter.element, parameter.ndim, device);
    if (view) std::memcpy(block + parameter.offset, view, sizeof *view);
    return view != nullptr;
}

// An int, an object with __index__, or a float without its fraction; limited to 32 bits. Empty for anything else.
std::optional<int> whole_number(PyObject* object) {
    constexpr int kMost = std::numeric_limits<int>::max();
    if (PyFloat_Check(object)) {
        const double number = PyFloat_AS_DOUBLE(object);
        if (std::isnan(number)) return std::nullopt;
        return static_cast<int>(std::clamp(number, -double{kMost}, double{kMost}));
    }
    const nb::object index = nb::steal(PyNumber_Index(object));
    if (!index.is_valid()) {
        PyErr_Clear();
        return std::nullopt;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow != 0) return overflow < 0 ? -kMost : kMost;
    return static_cast<int>(std::clamp<long long>(number, -kMost, kMost));
}

enum class Form { plain, tiled };
constexpr const char* name_of(Form form) { return form == Form::plain ? "launch()" : "launch_tiled()"; }

// A tiled launch has a thread for each lane of each block, along an axis behind those of the blocks.
constexpr int kLanes = 1;

// The shape of the blocks: block_dim and max_blocks. 0 is the device's choice, as None and numbers below 1 are.
program::Grid read_blocks(const Slots& slots, Form form, const runtime::Device& device) {
    constexpr int kMostThreads = 1024;  // of the CPU too: programs learn of a mistake without a GPU
    const auto read = [&](Slot slot, const char* name, int most) {
        if (!is_given(slots[slot])) return 0;
        const std::optional<int> number = whole_number(slots[slot]);
        if (!number || *number > most)
            throw UsageError(name_of(form),
                             std::string(name) + " is " + nb::repr(nb::handle(slots[slot])).c_str() +
                                 ", expected an int of at most " + std::to_string(most) + " on '" + device.alias + "'",
                             number ? ErrorCategory::value : ErrorCategory::type);
        return std::max(*number, 0);
    };
    const int most_threads = device.is_cpu ? kMostThreads : std::min(kMostThreads, device.gpu()->max_threads_per_block);
    const int block_dim = read(kBlockDim, "block_dim", most_threads);
    const int max_blocks = read(kMaxBlocks, "max_blocks", std::numeric_limits<int>::max());
    program::Grid blocks;
    if (device.is_cpu) {
        if (program::settings().enable_cpu_blocks) blocks.block_dim = block_dim;
        return blocks;
    }
    blocks.block_dim = form == Form::tiled ? kLanes : block_dim;
    blocks.max_blocks = max_blocks;
    return blocks;
}

// On the CPU a thread runs a whole block of several lanes, by code for their number. Replaces the kernel by itself with
// this code; a launch of threads becomes one of blocks.
void use_blocks(nb::object& kernel, Dimensions& dims, int lanes, Form form) {
    sema::Blocks blocks{.lanes = lanes};
    if (form == Form::tiled) {
        blocks.lane_axis = static_cast<int>(dims.count) - 1;
        kernel = kernel_pointer(kernel)->with_blocks(blocks);
        return;
    }
    nb::object probe = kernel_pointer(kernel)->with_blocks(blocks);
    program::Kernel& core = kernel_pointer(probe)->core();
    if (!core.code(core.configured().debug).asks_for_blocks()) return;
    // The extents of the launch are constants of the code.
    std::int64_t threads = 1;
    for (const std::int64_t extent : dims.span()) {
        blocks.threads.push_back(extent);
        threads *= extent;
    }
    if (threads > std::numeric_limits<std::int32_t>::max() - lanes)
        throw UsageError("launch()",
                         "a launch of " + std::to_string(threads) + " threads in blocks of " + std::to_string(lanes) +
                             " lanes, expected fewer than 2147483648 threads. help: launch_tiled()",
                         ErrorCategory::value);
    kernel = kernel_pointer(kernel)->with_blocks(blocks);
    dims = Dimensions();
    dims.count = 1;
    dims.extents[0] = (threads + lanes - 1) / lanes;
}

// adjoint=True: python/warp/_gradients/adjoint_launch.py chooses the gradients.
nb::object launch_adjoint(const Slots& slots, const program::Grid& blocks) {
    static PyObject *launches = nullptr, *commands = nullptr;
    const auto given = [&](Slot slot) { return slots[slot] ? nb::borrow(slots[slot]) : nb::none(); };
    const nb::object made = function_of("warp._gradients.adjoint_launch", launches, "AdjointLaunch")(
        given(kKernel), given(kDim), given(kInputs), given(kOutputs), given(kAdjInputs), given(kAdjOutputs),
        given(kDevice), nb::make_tuple(blocks.block_dim, blocks.max_blocks));
    if (flag(slots[kRecordCmd], false))
        return function_of("warp._kernels.commands", commands, "AdjointLaunchCommand")(made);
    return made.attr("run")();
}

// deterministic: a wp.DeterministicMode, its name, or a bool.
bool wants_determinism(const Slots& slots) {
    static PyObject* config = nullptr;
    if (flag(slots[kRecordCmd], false))
        throw UsageError("launch()",
                         "deterministic is about this launch, and record_cmd=True makes one for later. help: "
                         "@wp.kernel(deterministic=...)",
                         ErrorCategory::value);
    return nb::cast<bool>(function_of("warp.config", config, "_is_deterministic")(nb::handle(slots[kDeterministic]),
                                                                                  "launch(): deterministic"));
}

nb::object launch(const Slots& slots, Form form) {
    PyKernel* kernel = kernel_pointer(slots[kKernel]);
    if (!kernel) {
        throw UsageError(
            name_of(form),
            "the kernel is " + describe(slots[kKernel]) + ", expected a function decorated with @wp.kernel",
            ErrorCategory::type);
    }
    runtime::Device* device_of_stream = nullptr;
    std::optional<runtime::UseStream> stream;
    if (is_given(slots[kStream])) {
        PyStream given = stream_argument(slots[kStream], slots[kDevice] ? slots[kDevice] : Py_None, "launch()");
        device_of_stream = &given.device();
        stream.emplace(std::move(given.stream));
    }
    std::optional<program::Determinism> determinism;
    if (is_given(slots[kDeterministic])) determinism.emplace(wants_determinism(slots));
    runtime::Device& device = device_of_stream ? *device_of_stream : device_from_python(slots[kDevice], "launch()");
    program::Grid blocks = read_blocks(slots, form, device);
    const int lanes = device.is_cpu ? std::exchange(blocks.block_dim, 0) : 1;
    if (flag(slots[kAdjoint], false)) {
        if (lanes <= 1 || !is_given(slots[kDim])) return launch_adjoint(slots, blocks);
        Slots changed = slots;
        nb::object kernel_of_blocks = nb::borrow(slots[kKernel]);
        Dimensions grid = read_dimensions(slots[kDim]);
        if (form == Form::plain && kernel->is_generic())
            throw UsageError(
                name_of(form),
                "the adjoint of a generic kernel with block_dim on the CPU is not there yet. help: launch_tiled()");
        use_blocks(kernel_of_blocks, grid, lanes, form);
        nb::list extents;
        for (const std::int64_t extent : grid.span()) extents.append(extent);
        const nb::tuple dimensions(extents);
        changed[kKernel] = kernel_of_blocks.ptr();
        changed[kDim] = dimensions.ptr();
        return launch_adjoint(changed, blocks);
    }

    Values values(slots[kInputs], slots[kOutputs]);
    const bool is_command = flag(slots[kRecordCmd], false);
    Dimensions dims;
    if (is_given(slots[kDim])) {
        dims = read_dimensions(slots[kDim]);
        if (!is_command && has_no_threads(dims)) {
            values.add_defaults(*kernel);
            if (!kernel->is_generic() && values.count() != kernel->parameters().size())
                check_count(*kernel, values.count());
            return nb::none();
        }
    }
    nb::object kernel_object = nb::borrow(slots[kKernel]);
    if (kernel->is_generic()) {
        values.add_defaults(*kernel);
        values.open_all();
        kernel_object = kernel->instance_for({values.data(), values.count()});
        kernel = kernel_pointer(kernel_object);
    }
    const auto& parameters = kernel->parameters();
    if (values.count() != parameters.size()) {
        values.add_defaults(*kernel);
        check_count(*kernel, values.count());
    }
    std::size_t block_bytes = static_cast<std::size_t>(kernel->block_bytes());
    program::Block block(block_bytes);
    std::vector<runtime::Array> holders;
    LaunchRecorder* const recorder = !is_command && flag(slots[kRecordTape], true) ? launch_recorder() : nullptr;
    std::optional<LaunchStreams> streams;
    if (!device.is_cpu && !is_command)
        streams.emplace(device, std::span(values.data(), values.count()), device_of_stream != nullptr);
    const bool outlives = is_command || recorder || runtime::current_recording(device);
    const bool opens = outlives || program::settings().verify_fp;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        PyObject* value = values.data()[i];
        if (is_array_structure(value)) {
            if (!opens && pack_structure(value, parameters[i], device, block.data())) continue;
            value = values.open(i, parameters[i]);
        }
        pack_argument(*kernel, parameters[i], i, value, device, block.data(), holders, outlives,
                      streams ? &*streams : nullptr);
    }

    if (dims.count == 0) dims = launch_dimensions(*kernel, nullptr, block.data());
    if (lanes > 1) {
        use_blocks(kernel_object, dims, lanes, form);
        kernel = kernel_pointer(kernel_object);
        kernel->parameters();
    }
    const program::CompiledKernel& compiled = choose(*kernel, device, block.data(), dims);
    check_written(*kernel, compiled, values.data(), block.data(), holders);
    if (is_command) {
        std::vector<nb::object> arguments;
        for (std::size_t i = 0; i < values.count(); ++i) arguments.push_back(nb::borrow(values.data()[i]));
        return make_launch_command(kernel_object, {block.data(), block.data() + block_bytes}, dims,
                                   std::move(arguments), std::move(holders), device, blocks);
    }
    program::Grid grid = program::make_grid(dims.span(), compiled.description.tid_rank, kernel->key);
    grid.block_dim = blocks.block_dim;
    grid.max_blocks = blocks.max_blocks;
    if (program::settings().print_launches) {
        print_launch(*kernel, dims, device);
    }
    if (compiled.gradients_escape) {
        values.open_all();
        if (compiled.keeps_arrays && !outlives) hold_arguments(*kernel, {values.data(), values.count()}, holders);
        mark_arrays_escaped(compiled, values.data(), holders);
    }
    if (program::runs_without_host(compiled, grid) || compiled.loaded->may_be_long()) values.keep();
    if (streams) streams->begin();
    run(recorder, compiled,
        {kernel_object, *kernel, block.data(), grid, dims, {values.data(), values.count()}, holders, device});
    if (streams) streams->end();
    return nb::none();
}

constexpr std::array<const char*, kSlotCount> kNames = {
    "kernel", "dim",     "inputs",      "outputs",    "adj_inputs", "adj_outputs", "device",
    "stream", "adjoint", "record_tape", "record_cmd", "max_blocks", "block_dim",   "deterministic"};

PyObject* launch_entry(PyObject*, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    static const Signature<kSlotCount> signature("launch()", kNames, 1);
    return guarded([&] {
        Slots slots = signature.parse(arguments, positional, keywords);
        // Programs of 2021 pass `adjoint` in the place of `stream`; a bool is no stream.
        if (positional > kStream && PyBool_Check(slots[kStream])) {
            if (slots[kAdjoint]) throw_given_twice(signature.api(), "adjoint");
            std::swap(slots[kStream], slots[kAdjoint]);
        }
        return launch(slots, Form::plain).release().ptr();
    });
}

// The dimensions of the launch: those of the blocks, then the lanes of a block.
nb::tuple tiled_dimensions(PyObject* dim) {
    constexpr Py_ssize_t kMostOfBlocks = kMaxDims - 1;
    if ((PyTuple_Check(dim) || PyList_Check(dim)) && PySequence_Size(dim) > kMostOfBlocks)
        throw UsageError("launch_tiled()",
                         "dim has " + std::to_string(PySequence_Size(dim)) + " extents, expected 1 to " +
                             std::to_string(kMostOfBlocks) + ": the lanes of a block are one more",
                         ErrorCategory::runtime);
    const Dimensions blocks = read_dimensions(dim);
    nb::list extents;
    for (std::int64_t extent : blocks.span()) extents.append(extent);
    extents.append(kLanes);
    return nb::tuple(extents);
}

PyObject* launch_tiled_entry(PyObject*, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    static const Signature<kSlotCount> signature("launch_tiled()", kNames);
    return guarded([&] {
        Slots slots = signature.parse(arguments, positional, keywords);
        for (Slot slot : {kDim, kBlockDim}) {
            if (slots[slot] && positional <= slot) continue;
            throw UsageError(signature.api(),
                             std::string(kNames[slot]) + (slots[slot] ? " is given by position" : " is missing") +
                                 ", expected it by keyword. help: launch_tiled(kernel, dim=..., inputs=[...], "
                                 "block_dim=...)",
                             ErrorCategory::runtime);
        }
        if (!slots[kKernel]) throw_missing(signature.api(), kNames[kKernel]);
        const nb::tuple dimensions = tiled_dimensions(slots[kDim]);
        slots[kDim] = dimensions.ptr();
        return launch(slots, Form::tiled).release().ptr();
    });
}

constexpr const char* kLaunchDoc =
    "launch($module, kernel, dim=None, inputs=(), outputs=(), adj_inputs=(), adj_outputs=(), device=None, "
    "stream=None, adjoint=False, record_tape=True, record_cmd=False, max_blocks=0, block_dim=256, "
    "deterministic=None)\n--\n\n"
    "Runs a kernel once for every point of a grid.\n\n"
    "Args:\n"
    "    kernel: a function decorated with @wp.kernel.\n"
    "    dim: number of threads, or a tuple of 1 to 4 extents; by default the shape of the first array argument,\n"
    "        if it has as many dimensions as wp.tid() is unpacked to.\n"
    "    inputs: the arguments in order: arrays (wp.array, NumPy arrays and others with __array_interface__, without\n"
    "        copying; None for an empty one), numbers, vectors and matrices (also as tuples). The last ones may be "
    "left\n"
    "        out if their parameters have defaults.\n"
    "    outputs: further arguments, after the inputs.\n"
    "    device: where to run; all arrays must live there. The default is the current device.\n"
    "    stream: a wp.Stream of the device; by default the current one. A bool as eighth positional argument is\n"
    "        `adjoint`, as it was in 2021.\n"
    "    record_cmd: do not run, but return a wp.Launch whose launch() runs with these arguments.\n"
    "    max_blocks, block_dim: shape CUDA launches. None and numbers below 1 are the device's choice; block_dim is "
    "at\n"
    "        most 1024. The CPU has blocks for kernels with tiles, if wp.config.enable_cpu_blocks is set.\n"
    "    deterministic: a wp.DeterministicMode, its name or a bool, in place of those of the kernel, its module and\n"
    "        wp.config. A gradient that a tape takes of the launch follows those.\n"
    "Returns:\n"
    "    None, or a wp.Launch with record_cmd=True.\n"
    "Raises:\n"
    "    CompileError: the kernel has a mistake.\n"
    "    UsageError (a RuntimeError): an argument has the wrong type, number of dimensions or device.\n";

constexpr const char* kLaunchTiledDoc =
    "launch_tiled($module, kernel, *, dim, inputs=(), outputs=(), adj_inputs=(), adj_outputs=(), device=None, "
    "stream=None, adjoint=False, record_tape=True, record_cmd=False, max_blocks=0, block_dim, "
    "deterministic=None)\n--\n\n"
    "Runs a kernel once for every block of a grid. The lanes of a block run it together, and share its tiles.\n\n"
    "wp.tid() is the block, and one name more is the lane: i, lane = wp.tid(). wp.block_dim() is the number\n"
    "of lanes; kernels that step by it are right for any. A block has one lane, but on the CPU block_dim of them if\n"
    "wp.config.enable_cpu_blocks is set.\n\n"
    "Args:\n"
    "    kernel: a function decorated with @wp.kernel.\n"
    "    dim: number of blocks, or a tuple of 1 to 3 extents; by keyword.\n"
    "    block_dim: the lanes of a block where it has more than one, at most 1024; by keyword. None and numbers\n"
    "        below 1 are the device's choice.\n"
    "    inputs, outputs, adj_inputs, adj_outputs, device, stream: as for wp.launch.\n"
    "    adjoint, record_tape, record_cmd, max_blocks, deterministic: as for wp.launch.\n"
    "Returns:\n"
    "    None, or a wp.Launch with record_cmd=True.\n"
    "Raises:\n"
    "    CompileError: the kernel has a mistake.\n"
    "    UsageError (a RuntimeError): dim or block_dim is missing or given by position, dim has more than three\n"
    "        extents, or as for wp.launch.\n";

PyMethodDef launch_method = {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&launch_entry)),
                             METH_FASTCALL | METH_KEYWORDS, kLaunchDoc};
PyMethodDef launch_tiled_method = {"launch_tiled",
                                   reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&launch_tiled_entry)),
                                   METH_FASTCALL | METH_KEYWORDS, kLaunchTiledDoc};

}  // namespace

// Printed output of kernels goes to sys.stdout.
static void print_to_python(const std::string& text) {
    const PythonLock lock;  // threads in a call of another library do not have it
    nb::object out = nb::module_::import_("sys").attr("stdout");
    if (out.is_none()) return;  // a process without a console (pythonw): Python's own print() does the same
    // wp.printf("%c", x) may print bytes that are no UTF-8.
    const auto size = static_cast<Py_ssize_t>(text.size());
    nb::object decoded = nb::steal(PyUnicode_DecodeUTF8(text.data(), size, "backslashreplace"));
    if (!decoded.is_valid()) throw nb::python_error();
    out.attr("write")(decoded);
}

static constexpr runtime::WaitingHost kWaitingHost{
    .check =
        [] {
            if (is_foreign_call()) return;
            const PythonLock lock;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();  // takes Python's error, which this has set
        },
    .leave = []() -> void* { return is_foreign_call() || !PyGILState_Check() ? nullptr : PyEval_SaveThread(); },
    .enter = &take_back_lock,
};

void bind_launch(nb::module_& m) {
    program::host() = {.interrupted = &interrupted,
                       .stop = [] { throw nb::python_error(); },
                       .leave = []() -> void* { return is_foreign_call() ? nullptr : PyEval_SaveThread(); },
                       .enter = &take_back_lock,
                       .print = &print_to_python,
                       .compiling = &tell_of_compilation,
                       .log = &log};
    runtime::waiting_host = &kWaitingHost;
    const auto add = [&](PyMethodDef& method) {
        m.attr(method.ml_name) = nb::steal(PyCFunction_NewEx(&method, m.ptr(), nb::str("warp").release().ptr()));
    };
    add(launch_method);
    add(launch_tiled_method);
}

}  // namespace weft::bindings
