#include "bindings/interop/torch_operator.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/foreign/foreign.h"
#include "bindings/interop/one_adjoint.h"
#include "bindings/interop/tensors.h"
#include "bindings/interop/torch_tensors.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "bindings/kernels/running.h"
#include "bindings/values/types.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "program/launch/launch.h"
#include "program/launch/nan_check.h"
#include "program/tape/launch_needs.h"
#include "runtime/array_copies.h"
#include "runtime/foreign_memory.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Array;

constexpr const char* kApi = "torch_op()";

nb::object call_method(nb::handle object, const char* name) {
    nb::object result = nb::steal(PyObject_CallMethod(object.ptr(), name, nullptr));
    if (!result.is_valid()) throw nb::python_error();
    return result;
}

bool is_contiguous(const ForeignArray& array) {
    if (array.size() == 0) return true;
    std::int64_t bytes = info(array.scalar).bytes();
    for (int i = array.ndim - 1; i >= 0; --i) {
        if (array.shape[i] > 1 && array.strides[i] != bytes) return false;
        bytes *= array.shape[i];
    }
    return true;
}

nb::object new_tuple(std::size_t size) {
    nb::object result = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(size)));
    if (!result.is_valid()) throw nb::python_error();
    return result;
}

nb::object tuple_of(const std::int64_t* extents, int count) {
    nb::object result = new_tuple(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        PyObject* const extent = PyLong_FromLongLong(extents[i]);
        if (!extent) throw nb::python_error();
        PyTuple_SET_ITEM(result.ptr(), i, extent);
    }
    return result;
}

// An int, or a tuple of ints, as a tuple; empty for other objects.
nb::object extents(nb::handle given) {
    if (PyLong_Check(given.ptr())) return nb::make_tuple(given);
    if (!PyTuple_Check(given.ptr()) || PyTuple_GET_SIZE(given.ptr()) == 0) return {};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.ptr()); ++i)
        if (!PyLong_Check(PyTuple_GET_ITEM(given.ptr(), i))) return {};
    return nb::borrow(given);
}

// Whether it is a tensor of one of these classes; `seen` gets its view.
bool is_plain_tensor(PyObject* object, const nb::tuple& types, dlpack::Tensor& seen) {
    const auto is_class = [&](nb::handle type) { return type.ptr() == reinterpret_cast<PyObject*>(Py_TYPE(object)); };
    if (std::none_of(types.begin(), types.end(), is_class)) return false;
    const dlpack::ExchangeApi* api = exchange_api(Py_TYPE(object));
    if (!api || !api->view_of_object) return false;
    if (api->view_of_object(object, &seen) == 0) return true;
    PyErr_Clear();
    return false;
}

// All that is known of an operator before it is called. Calls hold the GIL, which is the lock of kernels and their
// code.
class TorchOperator {
public:
    // The first `inputs` parameters are inputs; `changed` has the indices of those that are outputs too.
    TorchOperator(nb::object kernel_object, std::size_t inputs, const std::vector<std::size_t>& changed,
                  nb::tuple plain_types)
        : kernel_object_(std::move(kernel_object)),
          kernel_(kernel_pointer(kernel_object_)),
          plain_types_(std::move(plain_types)) {
        const std::vector<ParameterPlan>& parameters = kernel_->parameters();
        kinds_.assign(parameters.size(), program::kIsArray);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (parameters[i].filler != ParameterPlan::Filler::array) {
                values_.push_back(i);
                continue;
            }
            const bool is_input = i < inputs;
            const bool is_output = !is_input || std::ranges::find(changed, i) != changed.end();
            array_parameters_.push_back({i, is_input, is_output, info(parameters[i].element.scalar()).is_float()});
            input_count_ += is_input;
            new_count_ += !is_input;
        }
        for (const bool of_input : {true, false})
            for (ArrayParameter& array_parameter : array_parameters_)
                if (array_parameter.is_output && array_parameter.is_input == of_input)
                    array_parameter.output = static_cast<Py_ssize_t>(output_count_++);
    }

    // The prepared call, if its arguments are plain tensors, as they must be: (dims, shapes, values, tensors). None for
    // anything out of the ordinary, which the caller handles. `launch_dims` is an extent or a tuple of extents;
    // `output_dims` is one of these, or a dict of them by name. None means the shape of the first tensor.
    nb::object prepare(nb::tuple arguments, nb::handle launch_dims, nb::handle output_dims) {
        if (arguments.size() != input_count_ + values_.size()) return nb::none();
        nb::object tensors = new_tuple(input_count_), values = new_tuple(values_.size());
        nb::object dims = launch_dims.is_none() ? nb::object() : extents(launch_dims);
        if (!launch_dims.is_none() && !dims.is_valid()) return nb::none();
        for (std::size_t at = 0, tensor = 0, value = 0; at < arguments.size(); ++at) {
            PyObject* const item = PyTuple_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(at));
            if (tensor == input_count_ || array_parameters_[tensor].parameter != at) {
                if (exchange_api(Py_TYPE(item))) return nb::none();  // a tensor for a number
                PyTuple_SET_ITEM(values.ptr(), static_cast<Py_ssize_t>(value++), Py_NewRef(item));
                continue;
            }
            const ParameterPlan& parameter = plan(array_parameters_[tensor]);
            dlpack::Tensor seen;
            std::int64_t inner[2];
            const int inner_count = inner_shape(parameter.element, inner);
            if (!is_plain_tensor(item, plain_types_, seen) || seen.ndim != parameter.ndim + inner_count)
                return nb::none();
            if (!std::equal(inner, inner + inner_count, seen.shape + parameter.ndim)) return nb::none();
            if (!dims.is_valid()) dims = tuple_of(seen.shape, parameter.ndim);
            PyTuple_SET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(tensor++), Py_NewRef(item));
        }
        nb::object shapes = new_tuple(new_count_);
        for (Py_ssize_t at = 0; const ArrayParameter& array_parameter : array_parameters_) {
            if (array_parameter.is_input) continue;
            nb::handle wanted = output_dims;
            if (PyDict_Check(wanted.ptr()))
                wanted = PyDict_GetItemString(wanted.ptr(), plan(array_parameter).name.c_str());
            nb::object shape = !wanted || wanted.is_none() ? dims : extents(wanted);
            if (!shape.is_valid() || PyTuple_GET_SIZE(shape.ptr()) != plan(array_parameter).ndim) return nb::none();
            PyTuple_SET_ITEM(shapes.ptr(), at++, shape.release().ptr());
        }
        return nb::make_tuple(dims, shapes, values, tensors);
    }

    // The outputs: first those that are inputs too. `dims` is the grid, `shapes` has an item for each other output.
    nb::object launch(nb::tuple dims, nb::tuple shapes, nb::tuple values, nb::handle tensors) {
        const Items given(tensors, input_count_, "tensors"), wanted(shapes, new_count_, "shapes");
        const Work work(*this, given[0]);
        Call call(*this, work.device, dims, values);
        std::vector<Array> arrays;
        std::vector<nb::object> made(array_parameters_.size());  // of outputs, in memory of PyTorch
        arrays.reserve(array_parameters_.size());
        for (std::size_t i = 0, input = 0, output = 0; i < array_parameters_.size(); ++i) {
            const ArrayParameter& array_parameter = array_parameters_[i];
            if (array_parameter.is_input) {
                arrays.push_back(array_of(given[input++], array_parameter, work.device, /*is_packed=*/false));
                if (array_parameter.is_output)
                    arrays.back() = result_like(arrays.back(), array_parameter, given[0], made[i]);
            } else {
                arrays.push_back(
                    new_result(array_parameter, extents_of(wanted[output++]), work.device, given[0], made[i]));
            }
            call.view(array_parameter) = arrays.back().view;
        }
        call.choose();
        clear_outputs(call, arrays);
        if (call.compiled) run(call, arrays);
        work.finish();
        nb::object result = new_tuple(output_count_);
        for (std::size_t i = 0; i < array_parameters_.size(); ++i) {
            if (!array_parameters_[i].is_output) continue;
            nb::object tensor = made[i].is_valid() ? std::move(made[i]) : torch_tensor_of(arrays[i]);
            PyTuple_SET_ITEM(result.ptr(), array_parameters_[i].output, tensor.release().ptr());
        }
        return result;
    }

    // The gradients of the tensors, and None for those that have none or are not `wanted` (a bool for each tensor;
    // None: all are). `gradients` are those of the outputs, in their order; for outputs without one the item may be
    // anything.
    nb::object adjoint(nb::tuple dims, nb::tuple shapes, nb::tuple values, nb::handle tensors, nb::handle gradients,
                       nb::object wanted) {
        const Items given(tensors, input_count_, "tensors"), extents(shapes, new_count_, "shapes"),
            slopes(gradients, output_count_, "gradients");
        const Items chosen(wanted.is_none() ? tensors : wanted, input_count_, "wanted");
        const Work work(*this, given[0]);
        Call call(*this, work.device, dims, values);
        std::vector<AdjointArray> arrays;
        std::vector<nb::object> made(array_parameters_.size());  // gradients in memory of PyTorch
        arrays.reserve(array_parameters_.size());
        for (std::size_t i = 0, input = 0, output = 0; i < array_parameters_.size(); ++i) {
            const ArrayParameter& array_parameter = array_parameters_[i];
            auto& [variable, is_output] = arrays.emplace_back();
            is_output = !array_parameter.is_input;
            bool is_wanted = array_parameter.is_output;
            if (array_parameter.is_input) {
                is_wanted = is_wanted || chosen[input].ptr() != Py_False;
                variable.array = array_of(given[input++], array_parameter, work.device, /*is_packed=*/true);
                if (array_parameter.is_output) variable.array = runtime::clone(variable.array);
            } else {
                variable.array =
                    runtime::empty(plan(array_parameter).element, extents_of(extents[output++]), work.device);
            }
            if (array_parameter.is_smooth && is_wanted) {
                if (array_parameter.is_output)
                    set_gradient(variable, array_parameter, slopes[static_cast<std::size_t>(array_parameter.output)],
                                 made[i]);
                else
                    make_gradient(variable, array_parameter, given[0], made[i]);
            }
            call.view(array_parameter) = variable.array.view;
        }
        call.choose();
        if (call.compiled) {
            run_one_adjoint(*kernel_, work.device, *call.compiled, call.grid, call.dims, call.block.data(), arrays,
                            kApi);
            work.finish();
        }
        nb::object result = new_tuple(input_count_);
        for (std::size_t i = 0, input = 0; i < array_parameters_.size(); ++i) {
            if (!array_parameters_[i].is_input) continue;
            const program::Variable& variable = arrays[i].variable;
            const bool has_result = variable.requires_grad && chosen[input].ptr() != Py_False;
            nb::object gradient = !has_result          ? nb::none()
                                  : made[i].is_valid() ? std::move(made[i])
                                                       : torch_tensor_of(program::gradient_of(variable));
            PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(input++), gradient.release().ptr());
        }
        return result;
    }

private:
    // An array parameter.
    struct ArrayParameter {
        std::size_t parameter;
        bool is_input, is_output;
        bool is_smooth;         // may have a gradient
        Py_ssize_t output = 0;  // its number among the outputs
    };

    // A tuple or list of so many items.
    class Items {
    public:
        Items(nb::handle sequence, std::size_t count, const char* name)
            : fast_(nb::steal(PySequence_Fast(sequence.ptr(), name))) {
            if (!fast_.is_valid()) throw nb::python_error();
            const auto found = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast_.ptr()));
            if (found != count) {
                throw UsageError(
                    kApi, "a call has " + std::to_string(found) + " " + name + ", expected " + std::to_string(count));
            }
        }
        nb::handle operator[](std::size_t i) const {
            return PySequence_Fast_GET_ITEM(fast_.ptr(), static_cast<Py_ssize_t>(i));
        }

    private:
        nb::object fast_;
    };

    // The device of the tensors. While it lives, the work there is in PyTorch's current stream, and in a graph if that
    // is captured. On the CPU it is done now, as all of PyTorch's work.
    struct Work {
        Work(const TorchOperator& of, nb::handle tensor)
            : device(of.device_of(tensor)), stream(torch_stream(tensor, device)) {
            if (device.is_host_memory) without.emplace();
        }
        // To be called after the work: kernels that print or fail are waited for.
        void finish() const {
            if (!device.gpu()) return;
            runtime::bring_reports(runtime::current_stream(device));
            program::flush_prints();
        }
        runtime::Device& device;
        runtime::UseStream stream;
        std::optional<runtime::WithoutRecording> without;
    };

    // The arguments of one call.
    struct Call {
        Call(TorchOperator& of, runtime::Device& device, nb::tuple grid, nb::tuple values)
            : of(of),
              device(device),
              dims(read_dimensions(grid.ptr())),
              block(static_cast<std::size_t>(of.kernel_->block_bytes())) {
            const Items given(values, of.values_.size(), "values");
            std::vector<Array> holders;  // stays empty: values are numbers
            for (std::size_t i = 0; i < of.values_.size(); ++i) {
                const std::size_t at = of.values_[i];
                pack_argument(*of.kernel_, of.kernel_->parameters()[at], at, given[i].ptr(), device, block.data(),
                              holders);
            }
        }
        ArrayView& view(const ArrayParameter& array_parameter) {
            return program::view_at(block.data(), of.kernel_->parameters()[array_parameter.parameter].offset);
        }
        // To be called after the views are set. No code if there are no threads.
        void choose() {
            if (has_no_threads(dims)) return;
            compiled = &bindings::choose(*of.kernel_, device, block.data(), dims);
            grid = program::make_grid(dims.span(), compiled->description.tid_rank, of.kernel_->key);
        }

        TorchOperator& of;
        runtime::Device& device;
        Dimensions dims;
        program::Block block;
        const program::CompiledKernel* compiled = nullptr;
        program::Grid grid;
    };

    const ParameterPlan& plan(const ArrayParameter& array_parameter) const {
        return kernel_->parameters()[array_parameter.parameter];
    }

    runtime::Device& device_of(nb::handle tensor) const {
        const auto text = [&] { return "the first tensor of kernel '" + kernel_->key + "'"; };
        return device_of_tensor(tensor, ForeignName(kApi, text));
    }

    // A tensor as the kernel reads it; one that it cannot read in place is copied. `is_packed`: laid out without gaps,
    // as its gradient is.
    Array array_of(nb::handle tensor, const ArrayParameter& array_parameter, runtime::Device& device, bool is_packed) {
        const ParameterPlan& parameter = plan(array_parameter);
        const auto text = [&] { return "argument '" + parameter.name + "' of kernel '" + kernel_->key + "'"; };
        const ForeignName name(kApi, text);
        nb::object plain = nb::borrow(tensor);
        if (is_negated(plain)) plain = call_method(plain, "resolve_neg");
        std::optional<ForeignArray> found = read_foreign(plain, name);
        if (!found) refuse(name, tensor, "expected a tensor");
        if (found->device != &device) {
            refuse(name, tensor,
                   "it is on '" + found->device->alias + "', and the first tensor is on '" + device.alias +
                       "'. help: tensor.to('" + device.alias + "')",
                   ErrorCategory::runtime);
        }
        if ((is_packed || !parameter.element.is_scalar()) && !is_contiguous(*found)) {
            plain = call_method(plain, "contiguous");
            found = read_foreign(plain, name);
        }
        // Tensors of PyTorch have signed integers in their place.
        if (found->scalar == scalar_of_tensor(parameter.element.scalar())) found->scalar = parameter.element.scalar();
        return fit(*found, plain, parameter.element, parameter.ndim, name);
    }

    static runtime::Shape extents_of(nb::handle shape) { return shape_argument(shape.ptr(), kApi); }

    // Uninitialised memory of a result. On a GPU it is that of a new tensor, which `made` gets; `like`: any tensor.
    Array new_result(const ArrayParameter& array_parameter, std::span<const std::int64_t> shape,
                     runtime::Device& device, nb::handle like, nb::object& made) {
        if (device.is_host_memory) return runtime::empty(plan(array_parameter).element, shape, device);
        const auto text = [&] {
            return "a result '" + plan(array_parameter).name + "' of kernel '" + kernel_->key + "'";
        };
        NewTensor result = new_tensor(like, plan(array_parameter).element, shape, device, ForeignName(kApi, text));
        made = std::move(result.tensor);
        return std::move(result.array);
    }
    // A copy in memory of a result.
    Array result_like(const Array& array, const ArrayParameter& array_parameter, nb::handle like, nb::object& made) {
        if (array.device->is_host_memory) return runtime::clone(array);
        Array result = new_result(array_parameter, array.shape(), *array.device, like, made);
        runtime::copy(result, array);
        return result;
    }

    // The same as program::make_gradient(), in memory of a result.
    void make_gradient(program::Variable& variable, const ArrayParameter& array_parameter, nb::handle like,
                       nb::object& made) {
        if (variable.array.device->is_host_memory) return program::make_gradient(variable);
        const Array gradient = new_result(array_parameter, variable.array.shape(), *variable.array.device, like, made);
        runtime::zero(gradient);
        set_gradient_memory(variable, gradient);
    }

    static void set_gradient_memory(program::Variable& variable, const Array& gradient) {
        variable.requires_grad = true;
        variable.gradient = gradient.buffer;
        variable.array.view.grad = gradient.view.data;
    }

    // Gives an output its gradient: PyTorch's own memory, or a copy if there is a result in the same place.
    void set_gradient(program::Variable& variable, const ArrayParameter& array_parameter, nb::handle slope,
                      nb::object& made) {
        Array gradient = array_of(slope, array_parameter, *variable.array.device, /*is_packed=*/true);
        if (!std::ranges::equal(gradient.shape(), variable.array.shape())) {
            throw UsageError(kApi, "the gradient of output '" + plan(array_parameter).name + "' has the shape " +
                                       runtime::shape_text(gradient.shape()) + ", expected " +
                                       runtime::shape_text(variable.array.shape()));
        }
        if (array_parameter.is_input) gradient = result_like(gradient, array_parameter, slope, made);
        set_gradient_memory(variable, gradient);
    }

    // New outputs start as zeros. Arrays that the launch overwrites are not cleared, unless verify_fp compares them.
    void clear_outputs(Call& call, const std::vector<Array>& arrays) {
        std::shared_ptr<const program::LaunchNeeds> needs;
        if (call.compiled && !program::settings().verify_fp) {
            needs = program::launch_needs(kernel_->core(), call.device, *call.compiled, call.dims.span(),
                                          call.block.data(), kinds_);
        }
        for (std::size_t i = 0; i < array_parameters_.size(); ++i) {
            if (array_parameters_[i].is_input) continue;
            if (!needs || !program::overwrites(*needs, array_parameters_[i].parameter, arrays[i].view, call.grid))
                runtime::zero(arrays[i]);
        }
    }

    void run(Call& call, const std::vector<Array>& arrays) {
        if (program::settings().print_launches) print_launch(*kernel_, call.dims, call.device);
        program::NanCheck check;
        const bool checks = program::settings().verify_fp;
        for (std::size_t i = 0; checks && i < array_parameters_.size(); ++i)
            if (array_parameters_[i].is_output) check.watch(plan(array_parameters_[i]).name, arrays[i]);
        program::launch(kernel_->core(), *call.compiled, call.device, call.block.data(), call.grid,
                        checks ? &check : nullptr);
    }

    nb::object kernel_object_;
    PyKernel* kernel_;
    nb::tuple plain_types_;  // classes of tensors
    std::vector<ArrayParameter> array_parameters_;
    std::vector<std::size_t> values_;                                 // the other parameters
    std::vector<std::uint8_t> kinds_;                                 // by parameter, for launch_needs()
    std::size_t input_count_ = 0, output_count_ = 0, new_count_ = 0;  // tensors; outputs that are no inputs
};

}  // namespace

void bind_torch_operator(nb::module_& m) {
    nb::class_<TorchOperator>(
        m, "TorchOperator",
        "A kernel as an operator of PyTorch: its first parameters are inputs, the others outputs, "
        "and so are the inputs of the numbers `changed`. Tensors of the classes `plain_types` are "
        "no wrappers of other tensors.")
        .def(nb::init<nb::object, std::size_t, std::vector<std::size_t>, nb::tuple>(), nb::arg("kernel"),
             nb::arg("inputs"), nb::arg("changed"), nb::arg("plain_types"))
        .def("prepare", &TorchOperator::prepare, nb::arg("arguments"), nb::arg("launch_dims").none(),
             nb::arg("output_dims").none(),
             "The launch of a call with plain tensors: (dims, shapes, values, tensors). None if its arguments are "
             "anything else, or do not fit.")
        .def("launch", &TorchOperator::launch, nb::arg("dims"), nb::arg("shapes"), nb::arg("values"),
             nb::arg("tensors"), "The outputs of a launch, a tuple of new tensors: those of `changed` first.")
        .def(
            "adjoint", &TorchOperator::adjoint, nb::arg("dims"), nb::arg("shapes"), nb::arg("values"),
            nb::arg("tensors"), nb::arg("gradients"), nb::arg("wanted").none() = nb::none(),
            "The gradients of the tensors, from those of the outputs: a tuple, with None for tensors that have none or "
            "of which `wanted` is False.");
}

}  // namespace weft::bindings
