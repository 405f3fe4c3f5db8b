#include "bindings/kernels/launch_command.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bindings/arrays/array_object.h"
#include "bindings/arrays/array_structure.h"
#include "bindings/arrays/nested_arrays.h"
#include "bindings/arrays/writes.h"
#include "bindings/devices/device.h"
#include "bindings/devices/stream.h"
#include "bindings/kernels/kernel.h"
#include "bindings/kernels/launch_streams.h"
#include "bindings/kernels/running.h"
#include "bindings/structs/structs.h"
#include "bindings/values/values.h"
#include "program/host/settings.h"
#include "program/launch/launch.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// A launch with its arguments packed, to be run again and again (wp.launch(..., record_cmd=True)).
class LaunchCommand {
public:
    LaunchCommand(nb::object kernel, std::vector<std::byte> block, Dimensions dims, std::vector<nb::object> arguments,
                  std::vector<runtime::Array> holders, runtime::Device* device, const program::Grid& blocks)
        : kernel_object_(std::move(kernel)),
          kernel_(kernel_pointer(kernel_object_)),
          block_(std::move(block)),
          dims_(dims),
          arguments_(std::move(arguments)),
          holders_(std::move(holders)),
          device_(device),
          blocks_(blocks) {
        refresh();
    }

    // An empty command: no threads, and None for each parameter.
    LaunchCommand(nb::object kernel, runtime::Device* device)
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
        if (kernel_ && kernel_->is_for_one_size()) {
            throw UsageError("Launch.set_dim()",
                             "the command of kernel '" + kernel_->key +
                                 "' runs blocks of several lanes (wp.config.enable_cpu_blocks), whose code is for one "
                                 "size. help: record another command for the other size");
        }
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
        nb::object elements;
        if (is_array_structure(value.ptr())) {
            value = array_in(value.ptr());
            elements = as_elements_of(value.ptr(), parameters[index].element, parameters[index].ndim);
            if (elements.is_valid()) value = elements;
        }
        pack_argument(*kernel_, parameters[index], index, value.ptr(), *device_, block_.data(), holders_,
                      /*outlives=*/true);
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

    // `is_stream_chosen`: the program has named the stream of this launch.
    void launch(bool is_stream_chosen = false) {
        if (!is_filled_) {
            if (has_no_threads(dims_)) return;
            refresh();
            is_filled_ = true;
        }
        for (const runtime::Array& array : lent_) runtime::require_memory(array, "Launch.launch()", "an argument");
        if (program::settings().print_launches) print_launch(*kernel_, dims_, *device_);
        if (foreign_.empty()) return enqueue();
        LaunchStreams streams(*device_, foreign_, is_stream_chosen);
        streams.begin();
        enqueue();
        streams.end();
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
    void enqueue() {
        if (!launch_recorder() && !compiled_->gradients_escape && !program::settings().verify_fp) {
            program::launch(kernel_->core(), *compiled_, *device_, block_.data(), grid_);
            for (const nb::object& array : written_) count_write(*array_pointer(array));
            for (const nb::object& holder : written_within_) count_nested_writes(holder);
            return;
        }
        std::vector<PyObject*> values;
        for (const nb::object& argument : arguments_) values.push_back(argument.ptr());
        if (compiled_->gradients_escape) mark_arrays_escaped(*compiled_, values.data(), holders_);
        run(launch_recorder(), *compiled_,
            {kernel_object_, *kernel_, block_.data(), grid_, dims_, values, holders_, *device_});
    }

    // After any change: chooses the code, and updates the grid and the arrays that count writes.
    void refresh() {
        compiled_ = &choose(*kernel_, *device_, block_.data(), dims_);
        std::vector<PyObject*> values;
        for (const nb::object& argument : arguments_) values.push_back(argument.ptr());
        check_written(*kernel_, *compiled_, values.data(), block_.data(), holders_);
        grid_ = program::make_grid(dims_.span(), compiled_->description.tid_rank, kernel_->key);
        grid_.block_dim = blocks_.block_dim;
        grid_.max_blocks = blocks_.max_blocks;
        find_lent();
        foreign_.clear();
        if (device_->gpu()) std::ranges::copy_if(values, std::back_inserter(foreign_), may_be_foreign);
        written_.clear();
        written_within_.clear();
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            if (compiled_->effects[i].writes_within) written_within_.push_back(arguments_[i]);
            if (!compiled_->effects[i].writes_itself) continue;
            if (array_pointer(arguments_[i])) written_.push_back(arguments_[i]);
            for (nb::object& array : array_objects_in(arguments_[i])) written_.push_back(std::move(array));
        }
    }

    void find_lent() {
        lent_.clear();
        const auto add = [&](const runtime::Array& array) {
            if (array.buffer && array.buffer->home) lent_.push_back(array);
        };
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            for (const PyArray* array : arrays_in(arguments_[i])) add(array->array);
            const ParameterPlan& parameter = kernel_->parameters()[i];
            if (const PyArray* array = array_pointer(arguments_[i])) {
                add(array->array);
            } else if (parameter.filler == ParameterPlan::Filler::array) {
                // Holders of arguments that were replaced are still there.
                const void* const data = program::view_at(block_.data(), parameter.offset).data;
                const auto last = std::ranges::find(holders_.rbegin(), holders_.rend(), data,
                                                    [](const runtime::Array& holder) { return holder.view.data; });
                if (data && last != holders_.rend()) add(*last);
            }
        }
    }

    nb::object kernel_object_;
    PyKernel* kernel_;
    std::vector<std::byte> block_;
    Dimensions dims_;
    std::vector<nb::object> arguments_;
    std::vector<runtime::Array> holders_;
    std::vector<runtime::Array> lent_;  // of the block: memory that its owner may move
    std::vector<PyObject*> foreign_;    // those of the arguments that may belong to other libraries, on a GPU
    std::vector<nb::object> written_;
    std::vector<nb::object> written_within_;  // arguments
    runtime::Device* device_;
    program::Grid blocks_;  // block_dim and max_blocks of the launch
    const program::CompiledKernel* compiled_ = nullptr;
    program::Grid grid_;
    bool is_filled_ = true;  // false until the first run of a command that was made without arguments
};

// The Python value of a ctypes number or struct: python/warp/_kernels/commands.py.
nb::object from_ctype(nb::handle value) {
    static PyObject* module = nullptr;
    return function_of("warp._kernels.commands", module, "value_of_ctype")(value);
}

// Commands of plain launches have no gradients to set.
void refuse_adjoint(bool adjoint, const char* api) {
    if (adjoint) {
        throw UsageError(api,
                         "this command was made without gradients. help: wp.launch(..., adjoint=True, record_cmd=True)",
                         ErrorCategory::index);
    }
}

}  // namespace

nb::object make_launch_command(nb::object kernel, std::vector<std::byte> block, Dimensions dims,
                               std::vector<nb::object> arguments, std::vector<runtime::Array> holders,
                               runtime::Device& device, const program::Grid& blocks) {
    return nb::cast(new LaunchCommand(std::move(kernel), std::move(block), dims, std::move(arguments),
                                      std::move(holders), &device, blocks),
                    nb::rv_policy::take_ownership);
}

void bind_launch_command(nb::module_& m) {
    nb::class_<LaunchCommand>(m, "Launch", "A launch command: the result of wp.launch(..., record_cmd=True).")
        .def("set_dim", &LaunchCommand::set_dim, nb::arg("dim"), "Changes the grid.")
        .def(
            "set_param_at_index",
            [](LaunchCommand& self, std::size_t index, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_at_index()");
                self.set_parameter(index, value);
            },
            nb::arg("index"), nb::arg("value").none(), nb::arg("adjoint") = false,
            "Changes one argument, counted from 0.")
        .def(
            "set_param_by_name",
            [](LaunchCommand& self, const std::string& name, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_by_name()");
                self.set_parameter(name, value);
            },
            nb::arg("name"), nb::arg("value").none(), nb::arg("adjoint") = false,
            "Changes one argument by its parameter's name.")
        .def(
            "set_param_at_index_from_ctype",
            [](LaunchCommand& self, std::size_t index, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_at_index_from_ctype()");
                self.set_parameter(index, from_ctype(value));
            },
            nb::arg("index"), nb::arg("value"), nb::arg("adjoint") = false,
            "The same, with a number of ctypes, a vector or a matrix.")
        .def(
            "set_param_by_name_from_ctype",
            [](LaunchCommand& self, const std::string& name, nb::handle value, bool adjoint) {
                refuse_adjoint(adjoint, "Launch.set_param_by_name_from_ctype()");
                self.set_parameter(name, from_ctype(value));
            },
            nb::arg("name"), nb::arg("value"), nb::arg("adjoint") = false, "The same, by the parameter's name.")
        .def(
            "set_params_from_ctypes",
            [](LaunchCommand& self, nb::sequence values) {
                nb::list converted;
                for (nb::handle value : values) converted.append(from_ctype(value));
                self.set_parameters(nb::borrow<nb::sequence>(converted));
            },
            nb::arg("values"), "Changes all arguments: numbers of ctypes, vectors and matrices.")
        .def(
            "__init__",
            [](LaunchCommand* self, nb::object kernel, nb::object device) {
                new (self) LaunchCommand(std::move(kernel), &device_from_python(device, "Launch()"));
            },
            nb::arg("kernel"), nb::arg("device") = nb::none(),
            "A launch without threads and arguments, to be filled by set_dim() and set_params().")
        .def_prop_ro("device", &LaunchCommand::device, "The device on which it runs.")
        .def_prop_ro("params", &LaunchCommand::parameters, "The bounds, then the arguments as they were given: a list.")
        .def_prop_ro(
            "max_blocks", [](const LaunchCommand&) { return 0; }, "0: the CPU has no blocks.")
        .def_prop_ro(
            "block_dim", [](const LaunchCommand&) { return 1; }, "1: a block of the CPU is a thread.")
        .def_prop_ro("bounds", &LaunchCommand::bounds, "The grid: an object with shape and size.")
        .def("set_params", &LaunchCommand::set_parameters, nb::arg("values"), "Changes all arguments.")
        .def(
            "launch",
            [](LaunchCommand& self, nb::handle stream) {
                const runtime::UseStream use(
                    stream.is_none() ? nullptr : stream_argument(stream, self.device(), "Launch.launch()").stream);
                self.launch(!stream.is_none());
            },
            nb::arg("stream") = nb::none(), "Runs the kernel with the arguments as they are now set.")
        .def("__call__", [](LaunchCommand& self) { self.launch(); })
        .def_prop_ro("kernel", &LaunchCommand::kernel, "The kernel that runs.")
        .def_prop_ro("dim", &LaunchCommand::dim, "The grid, a tuple of 1 to 4 extents.");
}

}  // namespace weft::bindings
