#include "bindings/interop/xla_function.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/gradients/active_tape.h"
#include "bindings/interop/xla_frame.h"
#include "bindings/python/lock.h"
#include "bindings/values/types.h"
#include "jit/hash.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Array;

constexpr const char* kOfNone = "jax_callable()";  // the API that errors name if no call is known

// An argument of the function: a value, or an array over a buffer.
struct Argument {
    std::string name;
    nb::object value;  // of an argument that is no array
    Array shape;
    int rank = 0;  // of its buffers without a batch
    bool is_input = false, is_output = false;

    bool is_array() const { return !value.is_valid(); }
};

// A function with the shapes and values of one traced call.
struct FunctionCall {
    nb::object function;
    std::string api, subject;  // names in errors: "jax_callable()", "function 'two_steps'"
    std::vector<Argument> arguments;
};

// Executables outlive their Python objects, so calls are kept for ever. The id of a call is made of its key, which says
// all that it does. Without a key it is made of name, shapes, and the number of calls before: another process must not
// take it for one of its own.
class Registry {
public:
    std::int64_t add(std::unique_ptr<const FunctionCall> call, const std::string& key) {
        const std::lock_guard lock(mutex_);
        std::string text = call->subject + "\n" + (key.empty() ? std::to_string(calls_.size()) : "key " + key);
        for (const Argument& argument : call->arguments) {
            text += "\n" + argument.name;
            for (int axis = 0; axis < argument.shape.ndim; ++axis)
                text += "," + std::to_string(argument.shape.view.shape[axis]);
        }
        const Digest digest = jit::hash_bytes(text);
        std::int64_t id;
        std::memcpy(&id, &digest, sizeof id);
        calls_.try_emplace(id, std::move(call));
        return id;
    }
    const FunctionCall& at(std::int64_t id) {
        const std::lock_guard lock(mutex_);
        const auto found = calls_.find(id);
        if (found == calls_.end()) {
            throw UsageError(kOfNone,
                             "JAX runs a compiled program whose function is not known in this process. help: trace it "
                             "here first (call it under jax.jit)");
        }
        return *found->second;
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::int64_t, std::unique_ptr<const FunctionCall>> calls_;
};
Registry& registry() {
    static auto& registry = *new Registry;
    return registry;
}

// `arguments`: (name, value) for each, or (name, dtype, shape, is an input, is an output).
std::int64_t make_call(nb::object function, std::string api, std::string subject, nb::list arguments,
                       const std::string& key) {
    auto call = std::make_unique<FunctionCall>();
    call->function = std::move(function);
    call->api = std::move(api);
    call->subject = std::move(subject);
    for (const nb::handle each : arguments) {
        const auto given = nb::cast<nb::tuple>(each);
        Argument& argument = call->arguments.emplace_back();
        argument.name = nb::cast<std::string>(given[0]);
        if (given.size() == 2) {
            argument.value = nb::borrow(given[1]);
            continue;
        }
        const auto extents = nb::cast<std::vector<std::int64_t>>(given[2]);
        Array& shape = argument.shape;
        shape.dtype = dtype_argument(nb::handle(given[1]).ptr(), call->api.c_str());
        shape.ndim = static_cast<int>(extents.size());
        shape.device = &runtime::host_device();
        std::ranges::copy(extents, shape.view.shape);
        runtime::set_contiguous_strides(shape);
        std::int64_t inner[2];
        argument.rank = shape.ndim + inner_shape(shape.dtype, inner);
        argument.is_input = nb::cast<bool>(given[3]);
        argument.is_output = nb::cast<bool>(given[4]);
    }
    return registry().add(std::move(call), key);
}

// Arrays that the function has stored elsewhere would show memory that is XLA's again.
void require_released(const FunctionCall& call, const std::vector<runtime::BufferPtr>& buffers) {
    const auto kept = [&] {
        return std::ranges::find_if(buffers, [](const auto& buffer) { return buffer && buffer.use_count() > 1; });
    };
    if (kept() == buffers.end()) return;
    PyGC_Collect();  // arrays that only cycles hold are not kept
    const auto found = kept();
    if (found == buffers.end()) return;
    const Argument& argument = call.arguments[static_cast<std::size_t>(found - buffers.begin())];
    throw UsageError(call.api, call.subject + " keeps its argument '" + argument.name +
                                   "' after it has returned, and the memory is JAX's. help: keep wp.clone(" +
                                   argument.name + ")");
}

// Runs one sample of the batch.
void run_once(const FunctionCall& call, runtime::Device& device, std::span<std::byte* const> inputs,
              std::span<std::byte* const> outputs) {
    std::vector<runtime::BufferPtr> buffers(call.arguments.size());
    {
        std::vector<nb::object> given;
        std::vector<PyObject*> values;
        for (std::size_t i = 0; i < call.arguments.size(); ++i) {
            const Argument& argument = call.arguments[i];
            if (!argument.is_array()) {
                values.push_back(argument.value.ptr());
                continue;
            }
            Array array = argument.shape;
            array.device = &device;
            const std::int64_t size = array.size_bytes();
            std::byte* const data = outputs[i] ? outputs[i] : inputs[i];
            if (size > 0 && outputs[i] && outputs[i] != inputs[i]) {
                if (inputs[i])
                    copy_within(device, data, inputs[i], size);
                else
                    clear_within(device, data, size);
            }
            array.buffer = buffers[i] = lent(device, data, size);
            array.buffer->is_read_only = !argument.is_output;
            array.view.data = size > 0 ? data : nullptr;
            given.push_back(nb::steal(make_array(std::move(array))));
            values.push_back(given.back().ptr());
        }
        const nb::object result =
            nb::steal(PyObject_Vectorcall(call.function.ptr(), values.data(), values.size(), nullptr));
        if (!result.is_valid()) {
            const nb::python_error failure;
            throw std::runtime_error(call.api + ": " + call.subject + ": " + failure.what());
        }
        if (!result.is_none()) {
            throw UsageError(call.api,
                             call.subject + " returned " + describe(result) +
                                 ", expected None: it writes its outputs, which are its last arguments",
                             ErrorCategory::type);
        }
    }
    require_released(call, buffers);
}

void run(const xla::CallFrame& frame, const FunctionCall& call, bool is_gpu) {
    const PythonLock lock;
    leave_foreign_call();
    CallPlace place(frame, is_gpu);
    const Unrecorded unrecorded;
    const std::size_t count = call.arguments.size();
    std::vector<const xla::Buffer*> inputs(count), outputs(count);
    std::int64_t next_input = 0, next_output = 0;
    Batch batch;
    for (std::size_t i = 0; i < count; ++i) {
        const Argument& argument = call.arguments[i];
        if (argument.is_input) batch.add(*(inputs[i] = &item(frame.arguments, next_input++)), argument.rank);
        if (!argument.is_output) continue;
        batch.add(*(outputs[i] = &item(frame.results, next_output++)), argument.rank);
        if (!is_gpu && (!inputs[i] || inputs[i]->data != outputs[i]->data))
            expect_first_write(*outputs[i], argument.rank, argument.shape.size_bytes());
    }
    std::vector<std::byte*> from(count), to(count);
    for (std::int64_t sample = 0, samples = batch.count(); sample < samples; ++sample) {
        for (std::size_t i = 0; i < count; ++i) {
            const Argument& argument = call.arguments[i];
            const auto sample_of = [&](const xla::Buffer* buffer) {
                return buffer ? batch.sample(*buffer, argument.rank, argument.shape.size_bytes(), sample) : nullptr;
            };
            from[i] = sample_of(inputs[i]);
            to[i] = sample_of(outputs[i]);
        }
        run_once(call, place.device, from, to);
    }
    place.finish();
}

}  // namespace

xla::Error* function_handler(xla::CallFrame* frame) {
    return handle(frame, [&](std::int64_t id) { run(*frame, registry().at(id), /*is_gpu=*/false); });
}

xla::Error* gpu_function_handler(xla::CallFrame* frame) {
    return handle(frame, [&](std::int64_t id) { run(*frame, registry().at(id), /*is_gpu=*/true); });
}

xla::Error* captured_function_handler(xla::CallFrame* frame) {
    return handle(
        frame, [&](std::int64_t id) { run(*frame, registry().at(id), /*is_gpu=*/true); },
        xla::kCommandBufferCompatible);
}

void bind_xla_functions(nb::module_& m) {
    m.def("make_xla_function", &make_call, nb::arg("function"), nb::arg("api"), nb::arg("subject"),
          nb::arg("arguments"), nb::arg("key") = "",
          "A Python function with the shapes and values of one traced call of JAX: the number that stands for it. An "
          "argument is (name, value), or (name, dtype, shape, is an input, is an output). Functions of one `key` and "
          "these shapes are one.");
}

}  // namespace weft::bindings
