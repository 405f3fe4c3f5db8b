// Kernels as machine code: from the disk cache if it has them, compiled otherwise.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "jit/jit.h"
#include "program/host/settings.h"
#include "program/kernel/options.h"
#include "program/kernel/transformed.h"
#include "runtime/executable.h"

namespace weft::program {

// One kernel ready to run.
struct CompiledKernel : KernelFacts, LaunchProperties, std::enable_shared_from_this<CompiledKernel> {
    CompiledKernel() = default;
    explicit CompiledKernel(KernelFacts facts) : KernelFacts(std::move(facts)) {}

    std::shared_ptr<const runtime::Executable> executable;
    const runtime::LoadedKernel* loaded = nullptr;  // owned by the executable
    KernelEntry description;
    std::vector<std::string> remarks;          // of the description, with the kernel's present lines
    std::shared_ptr<const ir::Module> module;  // of code with checks: the source of a fault's lines and names
    std::vector<runtime::PrivateGradient> private_gradients;
    double compile_ms = 0.0;
    bool waits_for_faults = false;  // of launches on every device: in debug mode, and if an array is None
    // A kernel to keep: this one if it is owned, else a copy.
    std::shared_ptr<const CompiledKernel> kept() const {
        std::shared_ptr<const CompiledKernel> owned = weak_from_this().lock();
        return owned ? owned : std::make_shared<const CompiledKernel>(*this);
    }
    // Whether launches run their threads in order, for the same results in every run.
    bool keeps_order() const { return loaded->is_ordered() && is_deterministic(deterministic); }
    // The options of its launches that are the same for all of them. The private gradients are those of this object.
    runtime::LaunchOptions launch_options() const {
        return {.serial = serial,
                .keeps_order = keeps_order(),
                .private_gradients = private_gradients,
                .cluster = cluster,
                .programmatic = programmatic};
    }
    enum class Cache { unused, found, stored, refused } cache = Cache::unused;  // refused: its folder cannot be written
};

// The runtime's view of the kernel `name` of an executable, with its facts.
CompiledKernel prepare(std::shared_ptr<const runtime::Executable> executable, std::string_view name, KernelFacts facts);

// A transformed kernel through codegen and the cache; `options.passes()` are those of its passes.
std::shared_ptr<const CompiledKernel> build(const TransformedKernel& transformed, const CompileOptions& options);

// Both steps, for an analysed module (the kernel first).
std::shared_ptr<const CompiledKernel> compile(std::unique_ptr<ir::Module> module, const CompileOptions& options = {});

}  // namespace weft::program
