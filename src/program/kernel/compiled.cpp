// From a transformed kernel to code that runs: the key, then the disk cache or the compiler, then the linker.
//
// Threads that ask for one key at once do the work once: the first puts a promise into a map and the others wait for
// it. A finished kernel leaves the map; its lifetime is the caller's decision.
#include "program/kernel/compiled.h"

#include <pthread.h>

#include <chrono>
#include <future>
#include <map>

#include "ir/walk.h"
#include "jit/disk_cache.h"
#include "jit/texts.h"
#include "program/kernel/volume_writes.h"
#include "support/error.h"
#include "support/float_environment.h"

namespace weft::program {

namespace {

using Clock = std::chrono::steady_clock;
using Compiled = std::shared_ptr<const CompiledKernel>;

void dump_code(const std::string& kernel, const ir::Module& module, const jit::Options& options) {
    constexpr std::pair<std::string_view, jit::Listing> kStages[] = {
        {"llvm", jit::Listing::llvm}, {"optimized", jit::Listing::optimized_llvm}, {"asm", jit::Listing::assembly}};
    for (const auto& [stage, listing] : kStages)
        if (is_dumped(stage)) dump(stage, kernel, jit::listing(module, options, listing));
}

double since_ms(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// From the disk cache if it is there and links; compiled otherwise.
std::shared_ptr<const runtime::Executable> executable_for(const TransformedKernel& transformed,
                                                          const jit::Options& options, const Digest& key,
                                                          const CompileOptions& chosen, CompiledKernel::Cache& use) {
    const auto compile_now = [&] {
        Binary binary = jit::compile(*transformed.module, options, key);
        binary.kernels.front().effects = transformed.effects;
        return binary;
    };
    use = CompiledKernel::Cache::unused;
    if (!chosen.cache || jit::takes_texts(options.target)) return runtime::load(compile_now());
    jit::DiskCache cache(jit::cache_folder(chosen.cache_folder));
    if (std::optional<Binary> binary = cache.load(key)) {
        use = CompiledKernel::Cache::found;
        return runtime::load(std::move(*binary));
    }
    Binary binary = compile_now();
    use = cache.store(binary) ? CompiledKernel::Cache::stored : CompiledKernel::Cache::refused;
    return runtime::load(std::move(binary));
}

std::shared_ptr<CompiledKernel> build_now(const TransformedKernel& transformed, const CompileOptions& options,
                                          const jit::Options& jit, const Digest& key) {
    const std::string& name = transformed.module->functions.front()->name;
    auto use = CompiledKernel::Cache::unused;
    auto executable = executable_for(transformed, jit, key, options, use);
    auto compiled = std::make_shared<CompiledKernel>(prepare(std::move(executable), name, transformed));
    compiled->cache = use;
    compiled->waits_for_faults = options.debug || options.null_arrays;
    static_cast<LaunchProperties&>(*compiled) = options.launches();
    if (options.private_gradients)
        for (const transform::Scattered& scattered : transformed.scattered)
            compiled->private_gradients.push_back(
                {transformed.layout.offsets[static_cast<std::size_t>(scattered.parameter)],
                 transformed.parameter_types[static_cast<std::size_t>(scattered.parameter)]});
    return compiled;
}

// ---- the same key from several threads ----

struct InFlight {
    std::mutex mutex;
    std::map<Digest, std::shared_future<Compiled>> kernels;
};

// A child of fork() starts with an empty map, as the threads that would fulfil the old promises are not in it.
InFlight*& in_flight() {
    static InFlight* state = new InFlight;
    static const int registered = pthread_atfork(nullptr, nullptr, [] { in_flight() = new InFlight; });
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
    return state;
}

template <typename Build>
Compiled build_once(const Digest& key, const Build& build) {
    InFlight& state = *in_flight();
    std::promise<Compiled> promise;
    {
        std::unique_lock lock(state.mutex);
        if (const auto found = state.kernels.find(key); found != state.kernels.end()) {
            const std::shared_future<Compiled> theirs = found->second;
            lock.unlock();
            return theirs.get();  // or the error of that thread
        }
        state.kernels.emplace(key, promise.get_future().share());
    }
    const auto leave = [&] {
        const std::lock_guard lock(state.mutex);
        state.kernels.erase(key);
    };
    try {
        Compiled compiled = build();
        promise.set_value(compiled);
        leave();
        return compiled;
    } catch (...) {
        promise.set_exception(std::current_exception());
        leave();
        throw;
    }
}

// The kernel with the lines of `transformed` and these properties. The code may have been made for a kernel on other
// lines, and the key does not contain properties of launches.
Compiled as_asked(Compiled compiled, const TransformedKernel& transformed, const LaunchProperties& launches) {
    const KernelEntry& entry = compiled->description;
    const bool is_asked = static_cast<const LaunchProperties&>(*compiled) == launches;
    if (entry.remarks.empty() && entry.sites.empty() && is_asked) return compiled;
    auto own = std::make_shared<CompiledKernel>(*compiled);
    static_cast<LaunchProperties&>(*own) = launches;
    own->remarks.clear();
    const std::vector<const ir::Operation*> operations =
        ir::numbered_operations(*transformed.module->functions.front());
    for (const Remark& remark : entry.remarks) {
        const Span span = operations.at(static_cast<std::size_t>(remark.operation))->span;
        own->remarks.push_back(span ? span.location() + ": " + remark.text : remark.text);
    }
    if (!entry.sites.empty()) own->module = transformed.module;
    return own;
}

}  // namespace

CompiledKernel prepare(std::shared_ptr<const runtime::Executable> executable, std::string_view name,
                       KernelFacts facts) {
    CompiledKernel kernel{std::move(facts)};
    kernel.loaded = &executable->kernel(name);
    kernel.description = kernel.loaded->description();
    kernel.tid_rank = kernel.description.tid_rank;
    kernel.uncontended_parameters.assign(kernel.description.uncontended_parameters.begin(),
                                         kernel.description.uncontended_parameters.end());
    if (writes_volumes(kernel)) {
        const auto storing = volume_writing_kernel(executable, *kernel.loaded, kernel);
        kernel.loaded = storing.get();
        executable = {storing, executable.get()};
    }
    kernel.executable = std::move(executable);
    return kernel;
}

Compiled build(const TransformedKernel& transformed, const CompileOptions& options) {
    const Clock::time_point start = Clock::now();
    const DefaultFloats floats;
    const ir::Module& module = *transformed.module;
    const jit::Options jit = options.code();
    const Digest key = jit::cache_key(module, jit);
    Compiled compiled = build_once(key, [&] {
        dump_code(module.functions.front()->name, module, jit);
        auto fresh = build_now(transformed, options, jit, key);
        fresh->compile_ms = transformed.passes_ms + since_ms(start);
        return Compiled(std::move(fresh));
    });
    return as_asked(std::move(compiled), transformed, options.launches());
}

Compiled compile(std::unique_ptr<ir::Module> module, const CompileOptions& options) {
    return build(transform_kernel(std::move(module), options.passes()), options);
}

}  // namespace weft::program
