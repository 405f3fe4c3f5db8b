#include "bindings/interop/xla_call.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bindings/arrays/array_object.h"
#include "bindings/interop/one_adjoint.h"
#include "bindings/interop/xla_frame.h"
#include "bindings/interop/xla_function.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "bindings/python/lock.h"
#include "bindings/values/types.h"
#include "ir/walk.h"
#include "jit/hash.h"
#include "program/host/host.h"
#include "program/launch/launch.h"
#include "program/launch/strategies.h"
#include "program/tape/launch_needs.h"
#include "runtime/array.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using runtime::Array;

// An array parameter, and the buffers of the call that stand for it.
struct CallArray {
    std::size_t parameter;
    Type element;
    std::vector<std::int64_t> shape;
    bool is_input, is_output;
    std::int64_t size_bytes = 0;
    int rank = 0;  // of its buffers without a batch: its own dimensions and those of its elements
};

// The code of a call for a device.
struct CallCode {
    const program::CompiledKernel* compiled;
    std::shared_ptr<const program::CompiledKernel> strategic;  // of a PreparedLaunch
    program::Grid grid;
    // By array: outputs that the kernel reads, or may leave unwritten in part.
    std::vector<bool> is_zeroed;
};

// One kernel with the shapes and numbers of one traced call.
struct Call {
    nb::object kernel_object;
    PyKernel* kernel;
    Digest code;  // of the kernel when it was traced
    // The count of redefined functions at the last check that `code` still holds; under the GIL
    mutable std::uint64_t redefinitions;
    Dimensions dims;
    std::vector<std::byte> block;  // the arguments, arrays without addresses
    std::vector<std::byte> shown;  // with made-up addresses, for questions about the launch
    std::vector<CallArray> arrays;
    CallCode on_host;
    // By GPU, and whether some address is no multiple of kAligned; made when XLA first runs the call there.
    mutable std::mutex mutex;
    mutable std::map<std::pair<const runtime::Device*, bool>, std::unique_ptr<const CallCode>> on_gpus;
};

// The widest accesses of GPUs.
constexpr std::uintptr_t kAligned = 16;

// By a digest of their meaning: equal calls are one, and executables that JAX took from a cache of another process find
// theirs. Executables outlive their Python objects, so calls are kept for ever.
class Registry {
public:
    void add(std::int64_t id, std::unique_ptr<const Call> call) {
        const std::lock_guard lock(mutex_);
        calls_.try_emplace(id, std::move(call));
    }
    const Call& at(std::int64_t id) {
        const std::lock_guard lock(mutex_);
        const auto found = calls_.find(id);
        if (found == calls_.end()) {
            throw UsageError("jax_kernel()",
                             "JAX runs a compiled program whose kernel is not known in this process. help: trace it "
                             "here first (call the function under jax.jit), or clear the compilation cache of JAX");
        }
        return *found->second;
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::int64_t, std::unique_ptr<const Call>> calls_;
};
Registry& registry() {
    static auto& registry = *new Registry;
    return registry;
}

// ---- making calls ----

// To be called with the lock of Python.
std::shared_ptr<const program::LaunchNeeds> needs_of(const Call& call, const CallCode& code, runtime::Device& device,
                                                     const std::byte* shown) {
    const std::vector<std::uint8_t> kinds(call.kernel->parameters().size(), program::kIsArray);
    return program::launch_needs(call.kernel->core(), device, *code.compiled, call.dims.span(), shown, kinds);
}

// The same. `shown`: the arguments with made-up addresses.
CallCode make_code(const Call& call, runtime::Device& device, const std::byte* shown) {
    CallCode code;
    program::Kernel& core = call.kernel->core();
    code.compiled = &core.choose(core.variant_of(device, call.dims.span(), shown), shown);
    code.grid = program::make_grid(call.dims.span(), code.compiled->description.tid_rank, call.kernel->key);
    code.strategic = program::code_of_strategy(core, *code.compiled, device, shown, code.grid);
    const auto needs = needs_of(call, code, device, shown);
    for (const CallArray& array : call.arrays) {
        const ArrayView& view = program::view_at(shown, call.kernel->parameters()[array.parameter].offset);
        code.is_zeroed.push_back(array.is_output && !array.is_input &&
                                 !program::overwrites(*needs, array.parameter, view, code.grid));
    }
    return code;
}

std::int64_t digest_of(const Call& call) {
    std::string text;
    const auto add = [&](const void* bytes, std::size_t size) { text.append(static_cast<const char*>(bytes), size); };
    add(&call.code, sizeof call.code);
    add(call.dims.extents, call.dims.count * sizeof *call.dims.extents);
    add(call.block.data(), call.block.size());
    for (const CallArray& array : call.arrays) text += array.is_input ? array.is_output ? 'b' : 'i' : 'o';
    const Digest digest = jit::hash_bytes(text);
    std::int64_t id;
    static_assert(sizeof digest >= sizeof id);
    std::memcpy(&id, &digest, sizeof id);
    return id;
}

// Both lists are by parameter: `arrays` has (shape, is an input, is an output) for arrays, `values` has the other
// arguments.
std::int64_t make_call(nb::object kernel_object, nb::handle dim, nb::list values, nb::list arrays) {
    auto call = std::make_unique<Call>();
    call->kernel_object = kernel_object;
    call->kernel = kernel_pointer(kernel_object);
    PyKernel& kernel = *call->kernel;
    const std::vector<ParameterPlan>& parameters = kernel.parameters();
    call->block.resize(static_cast<std::size_t>(kernel.block_bytes()));
    std::vector<Array> holders;
    runtime::Device& device = runtime::host_device();
    // Made-up addresses, far apart: they show the compiler that arrays do not overlap, and are never followed.
    std::vector<std::byte> shown(call->block.size());
    std::uintptr_t address = std::uintptr_t{1} << 20;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ParameterPlan& parameter = parameters[i];
        if (parameter.filler != ParameterPlan::Filler::array) {
            pack_argument(kernel, parameter, i, nb::handle(values[i]).ptr(), device, call->block.data(), holders);
            continue;
        }
        const auto description = nb::cast<nb::tuple>(arrays[i]);
        CallArray array{i, parameter.element, nb::cast<std::vector<std::int64_t>>(description[0]),
                        nb::cast<bool>(description[1]), nb::cast<bool>(description[2])};
        Array shape;
        shape.dtype = parameter.element;
        shape.ndim = parameter.ndim;
        std::ranges::copy(array.shape, shape.view.shape);
        runtime::set_contiguous_strides(shape);
        array.size_bytes = shape.size_bytes();
        std::int64_t inner[2];
        array.rank = parameter.ndim + inner_shape(parameter.element, inner);
        ArrayView& view = program::view_at(call->block.data(), parameter.offset);
        view = shape.view;
        call->arrays.push_back(std::move(array));
    }
    if (!holders.empty())
        throw UsageError("jax_kernel()", "structs with arrays cannot be arguments of a call of JAX",
                         ErrorCategory::type);
    shown = call->block;
    for (const CallArray& array : call->arrays) {
        if (array.size_bytes == 0) continue;
        program::view_at(shown.data(), parameters[array.parameter].offset).data = reinterpret_cast<void*>(address);
        address += static_cast<std::uintptr_t>(array.size_bytes + 4096) / 4096 * 4096;
    }
    call->dims = launch_dimensions(kernel, dim.ptr(), call->block.data());
    program::Kernel& core = kernel.core();
    call->on_host = make_code(*call, device, shown.data());
    const auto needs = needs_of(*call, call->on_host, device, shown.data());
    for (const CallArray& array : call->arrays) {
        const bool writes = needs->writes[array.parameter];
        if (writes && !array.is_output) {
            throw UsageError("jax_kernel()",
                             "kernel '" + kernel.key + "' writes to its argument '" + parameters[array.parameter].name +
                                 "', which is an input: arrays of JAX do not change. help: make it an output, or name "
                                 "it in in_out_argnames",
                             ErrorCategory::value);
        }
    }
    call->code = core.hash();
    call->redefinitions = frontend::function_redefinitions();
    call->shown = std::move(shown);
    const std::int64_t id = digest_of(*call);
    registry().add(id, std::move(call));
    return id;
}

// Throws if the call has no adjoint. JAX asks while it traces the gradient, so that the error comes before the program
// runs.
void require_adjoint(std::int64_t id) {
    const Call& call = registry().at(id);
    PyKernel& kernel = *call.kernel;
    std::vector<std::uint8_t> kinds(kernel.parameters().size(), program::kIsArray);
    for (const CallArray& array : call.arrays)
        if (info(array.element.scalar()).is_float()) kinds[array.parameter] |= program::kHasGradient;
    if (program::launch_needs(kernel.core(), runtime::host_device(), *call.on_host.compiled, call.dims.span(),
                              call.shown.data(), kinds)
            ->is_left_out)
        throw_without_gradient(kernel, "jax_kernel()");
}

// The same for forward mode, of the kernel or of its adjoint: throws CompileError if there is none.
void require_tangent(std::int64_t id, bool of_adjoint) {
    const Call& call = registry().at(id);
    program::Kernel& core = call.kernel->core();
    program::Derivation derivation;
    derivation.tangents.resize(call.kernel->parameters().size());
    if (of_adjoint) derivation.gradients.resize(derivation.tangents.size(), transform::Gradient::none);
    for (const CallArray& array : call.arrays) {
        if (!info(array.element.scalar()).is_float()) continue;
        derivation.tangents[array.parameter] = true;
        if (of_adjoint) derivation.gradients[array.parameter] = transform::Gradient::used;
    }
    core.facts(core.derived_variant_of(runtime::host_device(), call.dims.span(), call.shown.data()), {}, derivation);
}

// Throws if functions that the kernel calls were redefined: the forward call ran the old code. To be called with the
// lock of Python.
void require_unchanged(const Call& call) {
    const std::uint64_t redefinitions = frontend::function_redefinitions();
    if (call.redefinitions == redefinitions) return;
    if (call.kernel->core().hash() != call.code) {
        throw UsageError("jax_kernel()", "a function that kernel '" + call.kernel->key +
                                             "' calls has been redefined since JAX traced it, and its gradient would "
                                             "be that of the new one. help: trace it again (jax.clear_caches())");
    }
    call.redefinitions = redefinitions;
}

// ---- running them ----

// Made at the first call. Takes the lock of Python for that, so the caller must not hold the call's own.
const CallCode& code_on(const Call& call, runtime::Device& device, bool is_misaligned) {
    if (device.is_host_memory) return call.on_host;
    const std::pair<const runtime::Device*, bool> key(&device, is_misaligned);
    {
        const std::lock_guard lock(call.mutex);
        if (const auto known = call.on_gpus.find(key); known != call.on_gpus.end()) return *known->second;
    }
    const PythonLock python;
    require_unchanged(call);
    std::vector<std::byte> shown = call.shown;
    for (const CallArray& array : call.arrays) {
        ArrayView& view = program::view_at(shown.data(), call.kernel->parameters()[array.parameter].offset);
        if (is_misaligned && view.data)
            view.data = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(view.data) +
                                                static_cast<std::uintptr_t>(info(array.element.scalar()).bytes()));
    }
    auto made = std::make_unique<const CallCode>(make_code(call, device, shown.data()));
    const std::lock_guard lock(call.mutex);
    return *call.on_gpus.try_emplace(key, std::move(made)).first->second;
}

void run_forward(const xla::CallFrame& frame, const Call& call, bool is_gpu) {
    CallPlace on(frame, is_gpu);
    if (frame.stage == xla::kInitialize) {  // before a capture, in which nothing is compiled
        code_on(call, on.device, /*is_misaligned=*/false).compiled->loaded->prepare(on.device);
        return;
    }
    struct ForwardBuffers {
        std::int64_t offset;
        const CallArray* array;
        const xla::Buffer *input, *output;
    };
    std::vector<ForwardBuffers> all_buffers;
    all_buffers.reserve(call.arrays.size());
    Batch batch;
    std::int64_t inputs = 0, outputs = 0;
    const std::vector<ParameterPlan>& parameters = call.kernel->parameters();
    for (const CallArray& array : call.arrays) {
        ForwardBuffers buffers{parameters[array.parameter].offset, &array, nullptr, nullptr};
        if (array.is_input) batch.add(*(buffers.input = &item(frame.arguments, inputs++)), array.rank);
        if (array.is_output) batch.add(*(buffers.output = &item(frame.results, outputs++)), array.rank);
        if (!is_gpu && buffers.output && !(buffers.input && buffers.input->data == buffers.output->data))
            expect_first_write(*buffers.output, array.rank, array.size_bytes);
        all_buffers.push_back(buffers);
    }
    program::Block block(call.block.size());
    std::memcpy(block.data(), call.block.data(), call.block.size());
    std::optional<runtime::WithoutRecording> without;
    if (!is_gpu) without.emplace();  // XLA needs the results now
    for (std::int64_t i = 0, count = batch.count(); i < count; ++i) {
        std::uintptr_t bits = 0;
        for (const auto& [offset, array, input, output] : all_buffers) {
            bits |= reinterpret_cast<std::uintptr_t>(
                batch.sample(output ? *output : *input, array->rank, array->size_bytes, i));
        }
        const CallCode& code = code_on(call, on.device, bits % kAligned != 0);
        for (std::size_t at = 0; at < all_buffers.size(); ++at) {
            const auto& [offset, array, input, output] = all_buffers[at];
            const auto sample = [&](const xla::Buffer& of) {
                return batch.sample(of, array->rank, array->size_bytes, i);
            };
            std::byte* const data = sample(output ? *output : *input);
            const std::int64_t size = array->size_bytes;
            if (input && output && data != sample(*input)) copy_within(on.device, data, sample(*input), size);
            if (code.is_zeroed[at]) clear_within(on.device, data, size);
            program::view_at(block.data(), offset).data = size > 0 ? data : nullptr;
        }
        const program::PreparedLaunch launch(*code.compiled, code.strategic.get(), on.device, block.data(), code.grid);
        runtime::Stream& stream = is_gpu ? runtime::current_stream(on.device) : runtime::host_device().default_stream();
        program::run(launch.kernel(), stream, launch.block(), code.grid);
    }
    on.finish();
}

bool are_misaligned(const std::byte* block, const Call& call) {
    std::uintptr_t bits = 0;
    for (const CallArray& array : call.arrays) {
        const ArrayView& view = program::view_at(block, call.kernel->parameters()[array.parameter].offset);
        bits |= reinterpret_cast<std::uintptr_t>(view.data) | reinterpret_cast<std::uintptr_t>(view.grad);
    }
    return bits % kAligned != 0;
}

// Arguments: the inputs, then a gradient for each output. Results: the gradient of each input that can have one.
void run_adjoint(const xla::CallFrame& frame, const Call& call, bool is_gpu) {
    const PythonLock lock;  // the lock of kernels and their code
    leave_foreign_call();
    CallPlace on(frame, is_gpu);
    struct AdjointBuffers {
        const CallArray* array;
        const xla::Buffer *input = nullptr, *gradient = nullptr, *result = nullptr;
    };
    Batch batch;
    std::vector<AdjointBuffers> all_buffers;
    std::int64_t arguments = 0, results = 0;
    for (const CallArray& array : call.arrays) all_buffers.push_back({&array});
    for (AdjointBuffers& buffers : all_buffers) {
        if (!buffers.array->is_input) continue;
        batch.add(*(buffers.input = &item(frame.arguments, arguments++)), buffers.array->rank);
    }
    for (AdjointBuffers& buffers : all_buffers) {
        const bool is_smooth = info(buffers.array->element.scalar()).is_float();
        if (buffers.array->is_output && is_smooth)
            batch.add(*(buffers.gradient = &item(frame.arguments, arguments++)), buffers.array->rank);
        if (buffers.array->is_input && is_smooth) {
            batch.add(*(buffers.result = &item(frame.results, results++)), buffers.array->rank);
            if (!is_gpu) expect_first_write(*buffers.result, buffers.array->rank, buffers.array->size_bytes);
        }
    }
    PyKernel& kernel = *call.kernel;
    require_unchanged(call);
    const std::vector<ParameterPlan>& parameters = kernel.parameters();
    runtime::Device& device = on.device;
    for (std::int64_t i = 0, count = batch.count(); i < count; ++i) {
        std::vector<std::byte> block = call.block;
        std::vector<AdjointArray> arrays;
        arrays.reserve(all_buffers.size());
        for (const AdjointBuffers& buffers : all_buffers) {
            const CallArray& array = *buffers.array;
            const std::int64_t size = array.size_bytes;
            const auto sample = [&](const xla::Buffer& of) {
                return batch.sample(of, array.rank, array.size_bytes, i);
            };
            auto& [variable, is_output] = arrays.emplace_back();
            is_output = array.is_output && !array.is_input;
            variable.array.dtype = array.element;
            variable.array.ndim = parameters[array.parameter].ndim;
            variable.array.device = &device;
            ArrayView& view = variable.array.view = program::view_at(block.data(), parameters[array.parameter].offset);
            if (array.is_output) {
                variable.array.buffer = runtime::allocate(array.size_bytes, device);
            } else {
                variable.array.buffer = lent(device, sample(*buffers.input), size);
            }
            void* const memory = size > 0 ? variable.array.buffer->data : nullptr;
            view.data = memory;
            if (array.is_output && array.is_input && size > 0)
                copy_within(device, memory, sample(*buffers.input), size);
            if (!buffers.gradient && !buffers.result) continue;
            variable.requires_grad = true;
            if (is_output) {
                variable.gradient = lent(device, sample(*buffers.gradient), size);
            } else if (buffers.gradient) {  // the adjoint works on the gradient of overwritten arrays
                variable.gradient = runtime::allocate(array.size_bytes, device);
                if (size > 0) copy_within(device, variable.gradient->data, sample(*buffers.gradient), size);
            } else {
                variable.gradient = lent(device, sample(*buffers.result), size);
                if (size > 0) clear_within(device, sample(*buffers.result), size);
            }
            view.grad = size > 0 ? variable.gradient->data : nullptr;
        }
        const CallCode& code = code_on(call, device, are_misaligned(block.data(), call));
        run_one_adjoint(kernel, device, *code.compiled, code.grid, call.dims, block.data(), arrays, "jax_kernel()");
        for (std::size_t at = 0; at < all_buffers.size(); ++at) {
            const AdjointBuffers& buffers = all_buffers[at];
            if (!buffers.result || !buffers.gradient || buffers.array->size_bytes == 0) continue;
            copy_within(device, batch.sample(*buffers.result, buffers.array->rank, buffers.array->size_bytes, i),
                        arrays[at].variable.gradient->data, buffers.array->size_bytes);
        }
    }
    on.finish();
}

template <bool kIsGpu, std::uint32_t kTraits = 0>
xla::Error* launch_handler(xla::CallFrame* frame) {
    return handle(frame, [&](std::int64_t id) { run_forward(*frame, registry().at(id), kIsGpu); }, kTraits);
}
template <bool kIsGpu>
xla::Error* adjoint_handler(xla::CallFrame* frame) {
    return handle(frame, [&](std::int64_t id) { run_adjoint(*frame, registry().at(id), kIsGpu); });
}

// Whether a graph may have the launch: its kernel cannot fail or print, which the host would have to look for.
bool is_capturable(std::int64_t id) {
    const Call& call = registry().at(id);
    if (!call.on_host.compiled->description.sites.empty()) return false;
    program::Kernel& core = call.kernel->core();
    bool reports = false;
    for (const auto& function : core.code(core.configured().debug).analysed().functions)
        ir::for_each_operation(function->body,
                               [&](const ir::Operation& operation) { reports |= ir::only_reports(operation.op); });
    return !reports;
}

nb::dict handlers(bool is_gpu) {
    nb::dict result;
    const auto add = [&](const char* name, xla::Handler* handler, bool has_code = false) {
        nb::dict stages;
        stages["execute"] = handler_capsule(handler);
        if (has_code) stages["initialize"] = handler_capsule(handler);
        result[name] = stages;
    };
    if (is_gpu) {
        add("weft_launch", &launch_handler<true>, true);
        add("weft_captured_launch", &launch_handler<true, xla::kCommandBufferCompatible>, true);
        add("weft_adjoint", &adjoint_handler<true>);
        add("weft_call", &gpu_function_handler);
        add("weft_captured_call", &captured_function_handler);
        return result;
    }
    add("weft_launch", &launch_handler<false>);
    add("weft_captured_launch", &launch_handler<false>);
    add("weft_adjoint", &adjoint_handler<false>);
    add("weft_call", &function_handler);
    add("weft_captured_call", &function_handler);
    return result;
}

}  // namespace

void bind_xla_calls(nb::module_& m) {
    m.def("make_xla_call", &make_call, nb::arg("kernel"), nb::arg("dim").none(), nb::arg("values"), nb::arg("arrays"),
          "A kernel with the shapes and numbers of one traced call of JAX: the number that stands for it. `values` and "
          "`arrays` have an "
          "item "
          "for each parameter: numbers, and (shape, is an input, is an output).");
    m.def("require_xla_adjoint", &require_adjoint, nb::arg("call"),
          "Raises a CompileError or a UsageError if the kernel of such a call has no gradient.");
    m.def("require_xla_tangent", &require_tangent, nb::arg("call"), nb::arg("of_adjoint"),
          "Raises a CompileError if the kernel of such a call, or its adjoint, has no forward mode.");
    m.def(
        "require_xla_unchanged", [](std::int64_t id) { require_unchanged(registry().at(id)); }, nb::arg("call"),
        "Raises UsageError where functions that the kernel of such a call calls have been redefined since.");
    m.def("is_xla_call_capturable", &is_capturable, nb::arg("call"),
          "Whether the launch of such a call may be a part of a graph of XLA: its kernel checks and prints nothing.");
    m.def("xla_handlers", &handlers, nb::arg("is_gpu"),
          "The functions that XLA calls on the CPU, or on GPUs: by name, then by stage, in capsules.");
}

}  // namespace weft::bindings
