// The implementation of the public classes of include/weft: their only access, for the files of this room.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/kernel/compiled.h"
#include "program/tape/differentiable_kernel.h"
#include "program/tape/variable.h"
#include "weft/program.h"

namespace weft {

struct Array::Implementation : program::Variable {};

// Code of a file for huge arrays: few programs have any, so that it is linked at the first launch with one.
class HugeKernel {
public:
    HugeKernel(Binary binary, program::KernelFacts facts) : binary_(std::move(binary)), facts_(std::move(facts)) {}

    const program::KernelFacts& facts() const { return facts_; }
    const program::CompiledKernel& code() const;

private:
    mutable std::mutex mutex_;
    mutable Binary binary_;  // until it is linked
    program::KernelFacts facts_;
    mutable std::optional<program::CompiledKernel> code_;
};

struct Kernel::Implementation final : program::DifferentiableKernel {
    Implementation(program::KernelSignature signature, std::vector<Parameter> parameters)
        : DifferentiableKernel(signature_), parameters(std::move(parameters)), signature_(std::move(signature)) {}

    std::vector<Parameter> parameters;
    // For arrays with packed rows that do not overlap; for all others; and for arrays of any kind of which one has more
    // than 2^31 - 1 elements along a dimension.
    program::CompiledKernel dense, general;
    std::optional<HugeKernel> huge;
    // Adjoints of all three, for gradients of all arrays of floats; empty if the file has none, with the reason.
    std::optional<program::CompiledKernel> dense_adjoint, general_adjoint;
    std::optional<HugeKernel> huge_adjoint;
    std::string no_adjoint;
    // Atomic results that the adjoints need, and forward code that saves them; empty if they need none.
    std::vector<program::KernelFacts::AtomicResult> returned;
    std::optional<program::CompiledKernel> dense_recording, general_recording;
    std::optional<HugeKernel> huge_recording;

    // To be called when all code is there.
    void find_needs();

    const std::string& name() const { return signature().name; }
    bool is_for_gpus() const { return dense.executable->binary().target.kind == Target::Kind::cuda; }
    // The device of a launch with these arguments. Throws UsageError if arrays are on different devices.
    runtime::Device& device(std::span<const Argument> arguments) const;
    // Throws UsageError in the name of `api` if the code is not for this device.
    void check_device(const runtime::Device& device, const char* api) const;
    // The arguments as the kernel reads them.
    std::vector<std::byte> block(std::span<const Argument> arguments) const;
    // With `kept`, which open_atomic_results() made, the launch saves its atomic results.
    void launch(std::span<const std::int64_t> dim, const std::vector<std::byte>& block,
                std::span<const Argument> arguments, std::span<runtime::Array> kept = {}) const;

    // The needs of a launch with gradients, whichever adjoint will run, and without.
    const program::LaunchNeeds& needs_with_gradients() const { return *with_gradients_; }
    const program::KernelFacts& facts(const Launch&) const override { return dense; }
    std::shared_ptr<const program::LaunchNeeds> needs(const Launch& launch, const program::KernelFacts& facts,
                                                      std::span<const std::uint8_t> arguments) const override;
    bool has_derivative(const Launch&, std::size_t, std::size_t) const override { return true; }
    void launch_adjoint(const program::DerivedLaunch& what, const program::NanCheck* check) const override;

private:
    // Throws UsageError if this code, for huge arrays, takes such an extent in `block` as an int32.
    void check_extents(const program::CompiledKernel& code, const std::byte* block, const char* api) const;

    program::KernelSignature signature_;
    std::shared_ptr<const program::LaunchNeeds> with_gradients_, without_gradients_;
};

struct Access {
    using KernelImplementation = Kernel::Implementation;
    static Type type(const Dtype& dtype);
    static Dtype dtype(Type type) { return Dtype(type.node()); }
    static Array array(runtime::Array array);
    static const runtime::Array* array(const Array& array) {
        return array.implementation_ ? &array.implementation_->array : nullptr;
    }
    static std::shared_ptr<program::Variable> variable(const Array& array) { return array.implementation_; }
    static const std::shared_ptr<const Kernel::Implementation>& implementation(const Kernel& kernel) {
        return kernel.implementation_;
    }
    static const auto& value(const Argument& argument) { return argument.value_; }
};

// Tells tapes of a write to the memory; null is ignored.
void count_write(const runtime::BufferPtr& buffer);
inline void count_write(const Array& array) {
    if (const runtime::Array* const written = Access::array(array)) count_write(written->buffer);
}

}  // namespace weft
