// The way from an analysed module to code that runs: the passes, the key, then the disk cache or the compiler, the
// linker.
//
// Threads that ask for one key at once do the work once: the first puts a promise into a map and the others wait for
// it. A finished kernel leaves the map; who keeps it is the caller's business.
#include "program/module.h"

#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <string_view>

#include "ir/walk.h"
#include "jit/cache.h"
#include "program/launch.h"
#include "support/error.h"
#include "transform/pipeline.h"
#include "transform/vectorize/combined.h"

namespace weft::program {

namespace {

using Clock = std::chrono::steady_clock;
using Compiled = std::shared_ptr<const CompiledKernel>;

// ---- WEFT_DUMP ----

// $WEFT_DUMP is a list of stages, with commas: "sema", the name of any pass of transform/pipeline.cpp, "llvm",
// "optimized", "asm", or "all". Each is printed to stderr when it is reached.
bool is_dumped(std::string_view stage) {
    const char* const list = std::getenv("WEFT_DUMP");
    if (list == nullptr || *list == '\0') return false;
    std::string_view rest = list;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        if (word == stage || word == "all") return true;
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return false;
}

void dump(std::string_view stage, const std::string& kernel, const std::string& text) {
    const std::string all = "---- " + std::string(stage) + " of kernel " + kernel + " ----\n" + text + "\n";
    std::fwrite(all.data(), 1, all.size(), stderr);
}

void dump_ir(std::string_view stage, const std::string& kernel, const ir::Module& module) {
    if (is_dumped(stage)) dump(stage, kernel, ir::print(module, /*names=*/true));
}

void dump_code(const std::string& kernel, const ir::Module& module, const jit::Options& options) {
    constexpr std::pair<std::string_view, jit::Listing> kStages[] = {
        {"llvm", jit::Listing::llvm}, {"optimized", jit::Listing::optimized_llvm}, {"asm", jit::Listing::assembly}};
    for (const auto& [stage, listing] : kStages)
        if (is_dumped(stage)) dump(stage, kernel, jit::listing(module, options, listing));
}

// ---- one kernel ----

jit::Options jit_options(const CompileOptions& options) {
    jit::Options result;
    result.codegen.debug = options.debug;
    result.codegen.fast_math = options.fast_math;
    result.codegen.line_info = options.line_info;
    result.codegen.lanes = options.finite || options.serial ? 1 : options.lanes;  // a fault names the thread of a lane only there
    result.codegen.short_rows = options.short_rows;
    result.codegen.dense = options.dense;
    result.codegen.noalias = options.noalias;
    result.codegen.null_arrays = options.null_arrays;
    result.codegen.exclusive = options.exclusive;
    result.optimization_level = options.optimization_level;
    result.native.compiler = options.host_compiler;
    if (options.cache) result.native.cache = jit::cache_folder(options.cache_folder);
    return result;
}

double since_ms(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// From the disk cache where it is there and links; compiled otherwise.
std::shared_ptr<runtime::Executable> executable_for(const ir::Module& module, const jit::Options& options,
                                                    const Digest& key, const CompileOptions& chosen,
                                                    CompiledKernel::Cache& use) {
    use = CompiledKernel::Cache::unused;
    if (!chosen.cache) return std::make_shared<runtime::Executable>(jit::compile(module, options, key));
    jit::Cache cache(jit::cache_folder(chosen.cache_folder));
    if (std::optional<Binary> binary = cache.load(key)) {
        use = CompiledKernel::Cache::found;
        return std::make_shared<runtime::Executable>(std::move(*binary));
    }
    Binary binary = jit::compile(module, options, key);
    use = cache.store(binary) ? CompiledKernel::Cache::stored : CompiledKernel::Cache::refused;
    return std::make_shared<runtime::Executable>(std::move(binary));
}

std::vector<ir::Extra> used_extras(const ir::Function& kernel) {
    std::vector<bool> used(static_cast<std::size_t>(kernel.value_count()), false);
    ir::for_each_operation(kernel.body, [&](const ir::Operation& operation) {
        for (const ir::Value* operand : operation.operands) used[static_cast<std::size_t>(operand->id)] = true;
    });
    std::vector<ir::Extra> extras = kernel.extras;
    const std::size_t own = kernel.parameters().size() - extras.size();
    for (std::size_t i = 0; i < extras.size(); ++i)
        if (!used[static_cast<std::size_t>(kernel.parameters()[own + i]->id)]) extras[i].of = -1;
    return extras;
}

std::shared_ptr<CompiledKernel> build(const ir::Module& module, std::vector<ir::ParameterEffects> effects,
                                      const CompileOptions& options, const Digest& key) {
    const ir::Function& function = *module.functions.front();
    const jit::Options jit = jit_options(options);
    dump_code(function.name, module, jit);

    auto use = CompiledKernel::Cache::unused;
    auto executable = executable_for(module, jit, key, options, use);
    std::vector<Type> types;
    for (const ir::Value* parameter : function.parameters()) types.push_back(parameter->type);
    auto compiled = std::make_shared<CompiledKernel>(
        prepare(std::move(executable), function.name, std::move(types), std::move(effects)));
    compiled->cache = use;
    compiled->extras = used_extras(function);
    return compiled;
}

// ---- the same key from several threads ----

struct InFlight {
    std::mutex mutex;
    std::map<Digest, std::shared_future<Compiled>> kernels;
};

// A child of fork() starts with an empty map: the threads that would fill the promises of the old one are not in it.
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
            return theirs.get();  // or the error that they ran into
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

// The kernel with the places of `module`, which may not be those of the kernel that the code was first made for.
Compiled with_places(Compiled compiled, std::unique_ptr<ir::Module> module) {
    const KernelEntry& entry = compiled->description;
    if (entry.remarks.empty() && entry.sites.empty()) return compiled;
    auto own = std::make_shared<CompiledKernel>(*compiled);
    const std::vector<const ir::Operation*> operations = ir::numbered_operations(*module->functions.front());
    for (const Remark& remark : entry.remarks) {
        const Span span = operations.at(static_cast<std::size_t>(remark.operation))->span;
        own->remarks.push_back(span ? span.place() + ": " + remark.text : remark.text);
    }
    if (!entry.sites.empty()) own->module = std::move(module);
    return own;
}

}  // namespace

namespace {

// What the kernel itself does to its parameters, also where the passes make it its adjoint.
struct Deeds {
    std::vector<ir::ParameterEffects> effects;
    std::vector<std::vector<int>> overwritten;
};

Deeds run_passes(ir::Module& module, const CompileOptions& options) {
    const std::string name = module.functions.front()->name;
    const bool dumps = std::getenv("WEFT_DUMP") != nullptr;
    dump_ir("sema", name, module);
    Deeds deeds;
    transform::PipelineOptions pipeline;
    pipeline.launch_rank = options.launch_rank;
    if (!options.gradients.empty())
        pipeline.adjoint = {options.gradients, options.noalias, options.trail_bytes, options.tangents.empty() ? 0 : 1};
    pipeline.record = options.record;
    pipeline.noalias = options.noalias;
    pipeline.distinct = options.distinct;
    pipeline.finite = options.finite;
    pipeline.checks_parts = options.debug;
    pipeline.shares = options.lanes <= 1 && !options.null_arrays;
    if (!options.tangents.empty()) pipeline.jvp = {options.tangents, pipeline.adjoint.has_value()};
    pipeline.after_pass = [&](std::string_view pass, const ir::Module& after) {
        if (pass == "simplify" && deeds.effects.empty())
            deeds = {ir::effects(*after.functions.front()), transform::overwritten(*after.functions.front())};
        if (dumps) dump_ir(pass, name, after);
    };
    transform::run_pipeline(module, pipeline);
    return deeds;
}

}  // namespace

AdjointReads adjoint_reads(std::unique_ptr<ir::Module> module, const CompileOptions& options) {
    run_passes(*module, options);
    const ir::Function& adjoint = *module->functions.front();
    AdjointReads reads{
        transform::contents_read(adjoint), {}, transform::scattered_gradients(adjoint), adjoint.tid_rank};
    bool any_used = false;
    const std::vector<ir::Extra> extras = used_extras(adjoint);
    const std::size_t own = adjoint.parameters().size() - extras.size();
    for (std::size_t i = 0; i < extras.size(); ++i) {
        if (!extras[i].is_recorded()) continue;
        reads.records.push_back(
            {adjoint.parameters()[own + i]->type.element(), extras[i].kind == ir::Extra::Kind::log});
        any_used |= extras[i].of >= 0;
    }
    if (!any_used) reads.records.clear();
    return reads;
}

std::shared_ptr<const CompiledKernel> compile(std::unique_ptr<ir::Module> module, const CompileOptions& options) {
    const Clock::time_point start = Clock::now();
    WEFT_CHECK(module != nullptr && !module->functions.empty() && module->functions.front()->is_kernel,
               "the first function of a module to compile must be its kernel");
    Deeds deeds = run_passes(*module, options);

    const Digest key = jit::cache_key(*module, jit_options(options));
    Compiled compiled = build_once(key, [&] {
        auto fresh = build(*module, std::move(deeds.effects), options, key);
        fresh->overwritten = std::move(deeds.overwritten);
        if (options.exclusive)
            for (const auto& scattered : transform::scattered_gradients(*module->functions.front()))
                fresh->own_gradients.push_back(scattered.parameter);
        fresh->serial = options.serial;
        fresh->compile_ms = since_ms(start);
        return Compiled(std::move(fresh));
    });
    return with_places(std::move(compiled), std::move(module));
}

}  // namespace weft::program
