#include "driver/limits.h"

#include <algorithm>
#include <map>

#include "ptx/registers.h"
#include "ptx/requirements.h"
#include "ptx/token.h"

namespace weft::emulator {

namespace {

ArchitectureLimits limits_of(int architecture) {
    constexpr int kib = 1024;
    if (architecture < 75) return {48 * kib, 96 * kib, 2048, 32};
    if (architecture < 80) return {64 * kib, 64 * kib, 1024, 16};
    if (architecture == 80) return {163 * kib, 164 * kib, 2048, 32};
    if (architecture == 87) return {163 * kib, 164 * kib, 1536, 16};
    if (architecture < 89) return {99 * kib, 100 * kib, 1536, 16};
    if (architecture == 89) return {99 * kib, 100 * kib, 1536, 24};
    if (architecture < 110) return {227 * kib, 228 * kib, 2048, 32};
    if (architecture < 120) return {227 * kib, 228 * kib, 1536, 24};
    return {99 * kib, 100 * kib, 1536, 24};
}

// The most of a kernel and the functions that it calls, each with the frames above. `known`: of functions seen before.
// A function that calls itself adds nothing: its depth is not known.
uint64_t deepest_local(const Program& program, const CodeFunction& function,
                       std::map<const CodeFunction*, uint64_t>& known) {
    const auto [found, is_new] = known.try_emplace(&function, 0);
    if (!is_new) return found->second;
    uint64_t deepest = 0;
    for (const CallSite& site : function.sites)
        if (site.callee >= 0)
            deepest = std::max(deepest, deepest_local(program, program.functions[size_t(site.callee)], known));
    return found->second = function.local_size + deepest;
}

uint64_t constant_bytes(const Program& program) {
    uint64_t bytes = 0;
    for (const ptx::Variable& variable : program.module.variables) {
        if (variable.space != ptx::Space::Const || variable.external) continue;
        const uint64_t alignment = std::max<uint64_t>(variable.align, 1);
        bytes = (bytes + alignment - 1) / alignment * alignment + variable.size;
    }
    return bytes;
}

uint64_t local_bytes_of(const Kernel& kernel) {
    if (!kernel.local_bytes) {
        std::map<const CodeFunction*, uint64_t> known;
        kernel.local_bytes = deepest_local(*kernel.module->program, *kernel.code, known);
    }
    return *kernel.local_bytes;
}

// Notes why, for the caller of the driver.
void require_room(bool holds, const Kernel& kernel, const std::string& why) {
    if (holds) return;
    note_refusal("the kernel '" + kernel.code->source->name + "' " + why);
    fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

}  // namespace

const ArchitectureLimits& architecture_limits() {
    static const ArchitectureLimits limits = limits_of(State::architecture());
    return limits;
}

std::string refusal_of_module(const Program& program, CUresult& result) {
    constexpr uint64_t kConstants = 65536;
    const ptx::Module& module = program.module;
    const int architecture = State::architecture();
    const int newest = std::min(kPtxVersion, ptx::version_of_driver(State::version()));
    result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (module.version > newest)
        return "PTX version " + ptx::version_text(module.version) + " is newer than this driver's, " +
               ptx::version_text(newest);
    result = CUDA_ERROR_INVALID_PTX;
    if (module.architecture > architecture)
        return "the target " + module.target + " is newer than this device, sm_" + std::to_string(architecture);
    if (module.target.ends_with('a') && module.architecture != architecture)
        return "the target " + module.target + " is for that architecture alone, and this device is sm_" +
               std::to_string(architecture);
    try {
        check_requirements(module);
    } catch (const ptx::Error& error) {
        return error.what();
    }
    if (const uint64_t bytes = constant_bytes(program); bytes > kConstants)
        return "the module has " + std::to_string(bytes) + " bytes of constants; " + std::to_string(kConstants) +
               " is the most";
    for (const auto& [name, index] : program.function_index) {
        const CodeFunction& code = program.functions[size_t(index)];
        if (code.source->entry && code.shared_size > kStaticShared)
            return "the kernel '" + name + "' has " + std::to_string(code.shared_size) + " bytes of shared memory; " +
                   std::to_string(kStaticShared) + " is the most";
    }
    result = CUDA_SUCCESS;
    return "";
}

int registers_of(const Kernel& kernel) {
    if (!kernel.registers)
        kernel.registers = ptx::registers_of_entry(kernel.module->program->module, *kernel.code->source);
    return *kernel.registers;
}

uint64_t registers_of_block(const Kernel& kernel, uint64_t threads) {
    const auto of_thread = uint64_t(registers_of(kernel) + 7) / 8 * 8;
    return of_thread * ((threads + 31) / 32 * 32);
}

int resident_blocks(const Kernel& kernel, int threads, size_t dynamic_shared) {
    const ArchitectureLimits& limits = architecture_limits();
    const size_t shared = kernel.code->shared_size + dynamic_shared;
    int blocks = std::min(limits.blocks, limits.threads / ((threads + 31) / 32 * 32));
    if (shared) blocks = int(std::min<size_t>(size_t(blocks), size_t(limits.shared_of_multiprocessor) / shared));
    return int(std::min<uint64_t>(uint64_t(blocks), kRegistersOfBlock / registers_of_block(kernel, uint64_t(threads))));
}

int most_threads(const Kernel& kernel) {
    const ptx::Function& source = *kernel.code->source;
    uint64_t most = 1024;
    for (const uint32_t* limits : {source.max_threads, source.required_threads}) {
        if (limits[0]) most = std::min(most, uint64_t(limits[0]) * limits[1] * limits[2]);
    }
    const uint64_t fit = kRegistersOfBlock / registers_of_block(kernel, 32) * 32;
    return int(std::min(most, fit));
}

void check_launch(const Kernel& kernel, const CUlaunchConfig& config) {
    require(config.gridDimX && config.gridDimY && config.gridDimZ && config.blockDimX && config.blockDimY &&
            config.blockDimZ);
    require(config.gridDimX <= 2147483647u && config.gridDimY <= 65535 && config.gridDimZ <= 65535);
    require(config.blockDimX <= 1024 && config.blockDimY <= 1024 && config.blockDimZ <= 64);
    const uint64_t threads = uint64_t(config.blockDimX) * config.blockDimY * config.blockDimZ;
    require(threads <= 1024);
    const ptx::Function& source = *kernel.code->source;
    for (const uint32_t* limits : {source.max_threads, source.required_threads}) {
        const uint64_t most = uint64_t(limits[0]) * limits[1] * limits[2];
        require_room(
            !limits[0] || threads <= most, kernel,
            "is for blocks of " + std::to_string(most) + " threads at most, and this has " + std::to_string(threads));
    }
    const uint32_t* exactly = source.required_threads;
    require(!exactly[0] ||
            (exactly[0] == config.blockDimX && exactly[1] == config.blockDimY && exactly[2] == config.blockDimZ));
    require(config.sharedMemBytes <= kernel.dynamic_shared);
    // 255 registers are the most of a thread: smaller blocks always have room
    constexpr uint64_t kAlwaysRoom = 256;
    require_room(threads <= kAlwaysRoom || registers_of_block(kernel, threads) <= uint64_t(kRegistersOfBlock), kernel,
                 "needs about " + std::to_string(registers_of(kernel)) + " registers a thread, and a block has " +
                     std::to_string(kRegistersOfBlock) + ", too few for " + std::to_string(threads) + " threads");
    const uint64_t local = local_bytes_of(kernel);
    require_room(local <= kLocalOfThread, kernel,
                 "needs " + std::to_string(local) + " bytes of local memory a thread; " +
                     std::to_string(kLocalOfThread) + " is the most");
}

}  // namespace weft::emulator
