// Modules, kernels and launches.
#include <algorithm>
#include <cstring>

#include "driver/capture.h"
#include "driver/image.h"
#include "driver/limits.h"
#include "driver/state.h"
#include "driver/submit.h"
#include "driver/task.h"
#include "engine/execution.h"
#include "ptx/token.h"

namespace weft::emulator {

namespace {

// The driver's options: parallel arrays of numbers and pointers.
struct LogBuffer {
    char* text = nullptr;
    size_t size = 0;
    void** written = nullptr;  // receives the length

    void set(const std::string& message) const {
        if (!text || size == 0) return;
        const size_t length = std::min(size - 1, message.size());
        std::memcpy(text, message.data(), length);
        text[length] = 0;
        if (written) *reinterpret_cast<uintptr_t*>(written) = length + 1;
    }
};

LogBuffer error_log(unsigned int count, const CUjit_option* options, void** values) {
    LogBuffer log;
    for (unsigned int i = 0; i < count; ++i) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.text = static_cast<char*>(values[i]);
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            log.size = reinterpret_cast<uintptr_t>(values[i]);
            log.written = &values[i];
        }
    }
    return log;
}

void load(CUmodule* module, const void* image, const LogBuffer& log) {
    require(module && image);
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    Context& context = current_context();
    require_no_unsafe_capture();
    const char* text = static_cast<const char*>(image);
    // A fat binary. Its PTX could be used, but this is not supported.
    require(std::memcmp(text, "\x50\xed\x55\xba", 4) != 0, CUDA_ERROR_NO_BINARY_FOR_GPU);
    if (is_elf(text)) {
        std::string problem;
        bool is_damaged = false;
        text = text_of_image(image, state.architecture(), problem, is_damaged);
        if (!text) {
            log.set(problem);
            fail(is_damaged ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
    }
    auto made = std::make_unique<Module>();
    made->context = &context;
    try {
        made->program = load_program(text, context.device);
    } catch (const ptx::Error& error) {
        log.set(error.what());
        fail(CUDA_ERROR_INVALID_PTX);
    }
    CUresult refused;
    if (const std::string why = refusal_of_module(*made->program, refused); refused != CUDA_SUCCESS) {
        log.set(why);
        fail(refused);
    }
    for (const auto& [name, index] : made->program->function_index) {
        const CodeFunction& code = made->program->functions[size_t(index)];
        if (code.source->entry && code.source->defined)
            made->kernels[name] = {made.get(), &code, kStaticShared - std::min(code.shared_size, kStaticShared)};
    }
    for (const ptx::Function& function : made->program->module.functions) {
        for (const ptx::Statement& statement : function.statements) {
            made->waits |= statement.opcode == "griddepcontrol.wait";
            made->lets_others_begin |= statement.opcode == "griddepcontrol.launch_dependents";
        }
    }
    *module = made.get();
    context.modules[*module] = std::move(made);
}

std::vector<std::byte> parameters_of(const CodeFunction& code, void** parameters, void** extra) {
    std::vector<std::byte> bytes(code.parameter_bytes);
    if (extra) {
        const void* buffer = nullptr;
        size_t size = 0;
        // pairs of a number and a value, until 0
        for (size_t i = 0; extra[i]; i += 2) {
            if (reinterpret_cast<uintptr_t>(extra[i]) == 1) buffer = extra[i + 1];
            if (reinterpret_cast<uintptr_t>(extra[i]) == 2) size = *static_cast<const size_t*>(extra[i + 1]);
        }
        require(!parameters && (buffer || bytes.empty()) && size >= bytes.size());
        if (!bytes.empty()) std::memcpy(bytes.data(), buffer, bytes.size());
        return bytes;
    }
    require(parameters || code.parameter_offsets.empty());
    for (size_t i = 0; i < code.parameter_offsets.size(); ++i) {
        require(parameters[i]);
        std::memcpy(bytes.data() + code.parameter_offsets[i], parameters[i], code.parameter_sizes[i]);
    }
    return bytes;
}

// Everything that a launch needs each time it runs.
struct LaunchPlan {
    std::shared_ptr<Program> program;  // keeps the code alive if the module is unloaded
    const CodeFunction* kernel = nullptr;
    CUlaunchConfig config{};
    std::vector<std::byte> parameters;

    std::unique_ptr<Launch> launch(const Context& context) const {
        auto made = std::make_unique<Launch>();
        Launch& launch = *made;
        launch.program = program.get();
        launch.kernel = kernel;
        launch.grid[0] = config.gridDimX, launch.grid[1] = config.gridDimY, launch.grid[2] = config.gridDimZ;
        launch.threads[0] = config.blockDimX, launch.threads[1] = config.blockDimY;
        launch.threads[2] = config.blockDimZ;
        launch.dynamic_shared = config.sharedMemBytes;
        launch.parameters = parameters;
        launch.device = context.device;
        launch.number = AddressSpace::instance().next_launch();
        launch.seed = launch.number * uint64_t(0x9e3779b97f4a7c15);
        launch.most_instructions = State::instance().most_instructions();
        return made;
    }
};

// The pieces of one launch, which is created when it is its turn.
Pieces pieces_of(const std::shared_ptr<const LaunchPlan>& plan, Context& context) {
    struct Begun {
        std::unique_ptr<Launch> launch;
        Execution execution;
    };
    return [plan, &context, begun = std::shared_ptr<Begun>()](const Deadline& deadline) mutable {
        if (!begun) {
            std::unique_ptr<Launch> launch = plan->launch(context);
            Launch& made = *launch;
            begun.reset(new Begun{std::move(launch), Execution(made)});
        }
        if (begun->execution.go_on(deadline)) return Progress::Left;
        if (const std::optional<Report>& report = begun->execution.report()) note_fault(context, *report);
        return Progress::Done;
    };
}

// Other attributes than clusters and programmatic dependent launches are not there.
void check(const CUlaunchAttribute& attribute, const CUlaunchConfig& config, CUfunction function) {
    State& state = State::instance();
    const std::lock_guard lock(state.mutex);
    require(state.architecture() >= 90, CUDA_ERROR_NOT_SUPPORTED);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return;
    require(attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CUDA_ERROR_NOT_SUPPORTED);
    const auto [x, y, z] = attribute.value.clusterDim;
    require(x && y && z, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    require(config.gridDimX % x == 0 && config.gridDimY % y == 0 && config.gridDimZ % z == 0,
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
    require(uint64_t(x) * y * z <= (state.kernel(function)->large_clusters ? 16u : 8u),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
    state.largest_cluster = std::max(state.largest_cluster, x * y * z);
}

// Whether the launch may begin before the one in front of it has ended.
bool is_programmatic(const CUlaunchConfig& config) {
    bool found = false;
    for (unsigned i = 0; i < config.numAttrs; ++i)
        if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            found = config.attrs[i].value.programmaticStreamSerializationAllowed != 0;
    return found;
}

// A programmatic launch comes before the one in front if that lets it and its own code never waits, as it may on a GPU.
// One that waits comes after: its code before the wait is not told apart.
void launch(CUfunction function, const CUlaunchConfig& config, void** parameters, void** extra) {
    State& state = State::instance();
    auto plan = std::make_shared<LaunchPlan>();
    Context* context;
    bool begins_early = false, lets_others_begin = false;
    {
        const std::lock_guard lock(state.mutex);
        context = &current_context();
        const Kernel& kernel = *state.kernel(function);
        require(kernel.module->context == context, CUDA_ERROR_INVALID_HANDLE);
        require(state.stream(config.hStream)->context == context, CUDA_ERROR_INVALID_HANDLE);
        check_launch(kernel, config);
        plan->program = kernel.module->program;
        plan->kernel = kernel.code;
        plan->config = config;
        begins_early = is_programmatic(config) && !kernel.module->waits;
        lets_others_begin = kernel.module->lets_others_begin;
        plan->parameters = parameters_of(*kernel.code, parameters, extra);
    }
    Work work = [plan, context] { return pieces_of(plan, *context); };
    work.begins_early = begins_early;
    work.lets_others_begin = lets_others_begin;
    submit(config.hStream, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return entry([&] { load(module, image, {}); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
    return entry([&] {
        require(count == 0 || (options && values));
        load(module, image, error_log(count, options, values));
    });
}

// Waits for launches that use the module.
CUresult cuModuleUnload(CUmodule module) {
    return entry([&] {
        State& state = State::instance();
        const Context* context;
        {
            const std::lock_guard lock(state.mutex);
            current_context();
            require_no_unsafe_capture();
            context = state.module(module)->context;
        }
        Tasks::instance().finish_all(context);
        const std::lock_guard lock(state.mutex);
        Module* found = state.module(module);
        found->context->modules.erase(found);
    });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return locked([&](State& state) {
        require(function && name);
        current_context();
        require_no_unsafe_capture();  // the call may load the code
        std::map<std::string, Kernel>& kernels = state.module(module)->kernels;
        const auto found = kernels.find(name);
        require(found != kernels.end(), CUDA_ERROR_NOT_FOUND);
        *function = &found->second;
    });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    return locked([&](State& state) {
        require(name);
        current_context();
        const auto& variables = state.module(module)->program->variables;
        const auto found = variables.find(name);
        require(found != variables.end(), CUDA_ERROR_NOT_FOUND);
        if (address) *address = found->second->address;
        if (bytes) *bytes = found->second->size;
    });
}

// Links one text of PTX into one image; nothing else is supported.
CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* link) {
    return locked([&](State& state) {
        require(link && (count == 0 || (options && values)));
        current_context();
        auto made = std::make_unique<Link>();
        *link = made.get();
        state.links[*link] = std::move(made);
    });
}

CUresult cuLinkAddData_v2(CUlinkState link, CUjitInputType type, void* data, size_t size, const char*,
                          unsigned int count, CUjit_option* options, void** values) {
    return locked([&](State& state) {
        require(data && size > 0 && (count == 0 || (options && values)));
        Link& found = state.link(link);
        require(type == CU_JIT_INPUT_PTX && found.text.empty(), CUDA_ERROR_NOT_SUPPORTED);
        const std::string text(static_cast<const char*>(data), size);
        require(text.back() == 0, CUDA_ERROR_INVALID_PTX);
        found.text = text.c_str();
        require(!found.text.empty(), CUDA_ERROR_INVALID_PTX);
    });
}

// Errors in the text are reported when the image is loaded.
CUresult cuLinkComplete(CUlinkState link, void** image, size_t* size) {
    return locked([&](State& state) {
        require(image && size);
        Link& found = state.link(link);
        require(!found.text.empty() && found.image.empty());
        found.image = make_image(found.text, state.architecture());
        *image = found.image.data();
        *size = found.image.size();
    });
}

CUresult cuLinkDestroy(CUlinkState link) {
    return locked([&](State& state) {
        state.link(link);
        state.links.erase(link);
    });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return entry([&] {
        require(mode);
        *mode = CU_MODULE_EAGER_LOADING;
    });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    return locked([&](State& state) {
        require(module);
        *module = state.kernel(function)->module;
    });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    return locked([&](State& state) {
        require(value);
        const Kernel& kernel = *state.kernel(function);
        const Program& program = *kernel.module->program;
        switch (attribute) {
            case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
                *value = most_threads(kernel);
                break;
            case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
                *value = int(kernel.code->shared_size);
                break;
            case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
                *value = int(kernel.code->parameter_bytes);
                break;
            case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
                *value = int(kernel.code->local_stored);
                break;
            case CU_FUNC_ATTRIBUTE_NUM_REGS:
                *value = registers_of(kernel);
                break;
            case CU_FUNC_ATTRIBUTE_PTX_VERSION:
                *value = program.module.version;
                break;
            case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
                *value = state.architecture();
                break;
            case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
                *value = 0;
                break;
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                *value = int(kernel.dynamic_shared);
                break;
            case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                *value = -1;
                break;
            default:
                fail(CUDA_ERROR_INVALID_VALUE);
        }
    });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    return locked([&](State& state) {
        Kernel& kernel = *state.kernel(function);
        if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return;
        if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
            kernel.large_clusters = value != 0;
            return;
        }
        require(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        require(value >= 0 &&
                uint64_t(value) + kernel.code->shared_size <= uint64_t(architecture_limits().shared_of_block));
        kernel.dynamic_shared = uint32_t(value);
    });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t dynamic_shared) {
    return locked([&](State& state) {
        require(blocks && threads > 0 && threads <= 1024);
        *blocks = resident_blocks(*state.kernel(function), threads, dynamic_shared);
    });
}

// The largest block size, in whole warps, with the most resident threads of a multiprocessor.
CUresult cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t dynamic_shared, int limit) {
    return locked([&](State& state) {
        require(blocks && threads && limit >= 0);
        current_context();
        const Kernel& kernel = *state.kernel(function);
        int most = most_threads(kernel), best = 0, best_resident = 0;
        if (limit > 0) most = std::min(most, limit);
        for (int size = most >= 32 ? most / 32 * 32 : most; size > 0; size -= std::min(size, 32)) {
            const int resident =
                resident_blocks(kernel, size, shared_of_block ? shared_of_block(size) : dynamic_shared);
            if (resident * size <= best_resident * best) continue;
            best = size;
            best_resident = resident;
        }
        require(best > 0);
        *threads = best;
        *blocks = best_resident * 16;
    });
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void** parameters, void** extra) {
    return entry([&] {
        launch(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0}, parameters,
               extra);
    });
}

// Blocks of a cluster are executed like any others: a kernel without cluster instructions cannot observe it.
CUresult cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction function, const CUlaunchConfig* config) {
    return locked([&](State& state) {
        require(blocks && config);
        require(state.architecture() >= 90, CUDA_ERROR_NOT_SUPPORTED);
        *blocks = state.kernel(function)->large_clusters ? 16 : 8;
    });
}

CUresult cuProfilerStart() {
    return locked([&](State& state) {
        current_context();
        state.profiles = true;
    });
}

CUresult cuProfilerStop() {
    return locked([&](State& state) {
        current_context();
        state.profiles = false;
    });
}

unsigned weftEmulatedClusters() {
    const std::lock_guard lock(State::instance().mutex);
    return State::instance().largest_cluster;
}

int weftEmulatedProfiles() {
    const std::lock_guard lock(State::instance().mutex);
    return State::instance().profiles ? 1 : 0;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    return entry([&] {
        require(config);
        for (unsigned i = 0; i < config->numAttrs; ++i) check(config->attrs[i], *config, function);
        launch(function, *config, parameters, extra);
    });
}

}  // extern "C"

}  // namespace weft::emulator
