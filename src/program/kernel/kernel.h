// A kernel as launches know it: its source, its parameters, its options, and the machine code for each way in which it
// has been launched.
//
// Three steps lead to code. The Variant (options and grid) decides how the passes transform the kernel. The passes give
// its parameters and the arrays that it writes. The LaunchLayout, how the arrays of this launch lie in memory, then
// decides the code. So nothing is compiled that no launch needs.
//
// Not thread-safe: the caller has a lock (of Python, the GIL). It is given up while code is made, so another thread may
// ask meanwhile. Results stay valid as long as the kernel lives.
//
// The stages of a kernel, by class:
//
//     frontend   bindings::PyKernel      the object that @wp.kernel makes: source, options, overloads
//     program    Kernel                  one combination of parameter types: its options, its specializations
//                Specialization          its code for one Variant and one Derivation, by LaunchLayout
//                KernelCode              the IR of one analysis, and all that has been made of it
//                KernelFacts             effects, layout and parameters, known once the passes have run
//                TransformedKernel       KernelFacts and the IR behind the passes
//     transform  KernelPlan              results of the analyses that code generation reads
//     binary     KernelEntry             a kernel in a Binary: its arguments, its effects
//                BundledKernel           a kernel in a file for programs in C++
//     runtime    LoadedKernel            a KernelEntry whose code is loaded: the interface that launches use
//                CpuKernel, CudaKernel   LoadedKernel of one kind of device
//     program    CompiledKernel          KernelFacts with the Executable and its LoadedKernel
//     embed      Kernel::Implementation  a BundledKernel that a program in C++ has loaded
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program/kernel/code.h"
#include "program/kernel/launch_layout.h"
#include "program/kernel/options.h"
#include "program/kernel/signature.h"
#include "sema/environment.h"
#include "sema/sema.h"

namespace weft::program {

struct LaunchNeeds;

class Kernel {
public:
    // `types` are the parameters'; `name` is for messages. Instances of a generic kernel are kernels of their own,
    // whose source leaves the types open. `blocks`: of several lanes, on the CPU.
    Kernel(std::string name, std::shared_ptr<const sema::FunctionSource> source, std::vector<Type> types,
           KernelOptions options, sema::Blocks blocks = {});

    const KernelSignature& signature() const { return signature_; }
    const std::string& name() const { return signature_.name; }
    const std::vector<Type>& types() const { return signature_.types; }
    const std::string& parameter_name(std::size_t i) const { return signature_.parameter_names[i]; }
    const ArgumentLayout& layout() const { return signature_.layout; }
    const std::vector<BlockArray>& arrays() const { return signature_.arrays; }
    const KernelOptions& options() const { return options_; }
    // How many names wp.tid() is unpacked to; 0 before there is code.
    int tid_names() const { return tid_names_; }
    // Whether it has constants from names that may get other values. changed_name() is one that has changed since the
    // kernel was analysed, as text, once.
    bool has_watches() const { return !watches_.empty(); }
    std::string changed_name();
    // True at the first call only: launch_names.h.
    bool is_first_with_few_dimensions() { return !std::exchange(had_few_dimensions_, true); }

    // configured() has the wishes of wp.config and the kernel's options; variant_of() adds those of a launch with this
    // grid and block.
    Variant configured(const runtime::Device& device = runtime::host_device()) const;
    Variant variant_of(const runtime::Device& device, std::span<const std::int64_t> dims, const std::byte* block) const;
    // The same for code of a derivative, and for facts of the kernel: they serve rows of any length.
    Variant derived_variant_of(const runtime::Device& device, std::span<const std::int64_t> dims,
                               const std::byte* block) const;
    int optimization_level(Variant variant) const;

    // All throw CompileError if the kernel has a mistake or no derivative. A derivative of a kernel declared with
    // enable_backward=False throws UsageError.
    KernelCode& code(bool debug);
    const KernelFacts& facts(Variant variant, LaunchLayout launch_layout = {}, const Derivation& derivation = {});
    const CompiledKernel& compiled(Variant variant, LaunchLayout launch_layout = {}, const Derivation& derivation = {});
    // The code for a launch with this block.
    const CompiledKernel& choose(Variant variant, const std::byte* block);
    // `target`: replaces that of the variant's device, which need not exist.
    CompileOptions compile_options(Variant variant, LaunchLayout launch_layout, const Derivation& derivation,
                                   const Target* target = nullptr);

    // A digest of the kernel and the options that decide the machine code: equal for kernels that do the same.
    Digest hash();
    // The devices that have code of the kernel itself, as Variant::gpu.
    std::vector<int> compiled_for() const;
    bool knows_hash() const { return code_[0] || code_[1]; }
    // Whether the latest code was made for another kernel of the same `def`.
    bool was_shared() const { return was_shared_; }

    // Needs of its launches that tapes have computed (launch_needs.h).
    std::vector<std::shared_ptr<const LaunchNeeds>>& known_needs() { return known_needs_; }

    // Changes options; forget() is for functions that were defined anew. Everything is made again at its next use.
    // Results given out before stay valid.
    void set_options(const KernelOptions& changed);
    void forget();

private:
    // One derivation in one variant, by LaunchLayout::index().
    struct Specialization {
        explicit Specialization(int gpu) : gpu(gpu) {}

        int gpu;  // Variant::gpu
        std::array<std::shared_ptr<const KernelFacts>, LaunchLayout::kCount> facts;
        std::array<std::shared_ptr<const CompiledKernel>, LaunchLayout::kCount> compiled;
    };
    sema::Options sema_options(bool debug) const;
    Specialization& plain(Variant variant) {
        const std::size_t index = variant.index();
        for (const auto& [at, found] : plain_)
            if (at == index) return *found;
        return specialization(variant, {});
    }
    Specialization& specialization(Variant variant, const Derivation& derivation);
    const KernelFacts& new_facts(Specialization& into, Variant variant, LaunchLayout launch_layout,
                                 const Derivation& derivation);
    const CompiledKernel& newly_compiled(Specialization& into, Variant variant, LaunchLayout launch_layout,
                                         const Derivation& derivation);

    KernelSignature signature_;
    std::shared_ptr<const sema::FunctionSource> source_;
    int tid_names_ = 0;
    bool had_few_dimensions_ = false;
    std::vector<std::shared_ptr<sema::NameWatch>> watches_;
    KernelOptions options_;

    std::array<std::shared_ptr<KernelCode>, 2> code_;  // by `debug`
    // By Variant::index(), the bytes that loops may keep, and the derivation.
    using Key = std::tuple<std::size_t, std::int64_t, Derivation>;
    std::map<Key, std::unique_ptr<Specialization>> specializations_;
    // The specializations of the kernel itself, by Variant::index(): few, so that a linear search is quick.
    std::vector<std::pair<std::size_t, Specialization*>> plain_;
    std::vector<std::shared_ptr<const LaunchNeeds>> known_needs_;
    // From before forget(): launches and recorded launches may still use them.
    std::vector<std::shared_ptr<KernelCode>> retired_code_;
    std::vector<std::unique_ptr<Specialization>> retired_;
    bool was_shared_ = false;
    const sema::Blocks blocks_;
};

}  // namespace weft::program
