// One launch on a weft::Tape: its original arguments, the values that its adjoint reads, and its atomic results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "embed/access.h"
#include "program/tape/tape_entry.h"

namespace weft {

class Recorded final : public program::TapeEntry {
public:
    // Throws UsageError if an argument has a gradient and the file has no adjoint of the kernel.
    Recorded(std::shared_ptr<const Access::KernelImplementation> kernel, std::span<const std::int64_t> dim,
             std::span<const Argument> arguments);

    // Runs the launch. Precondition: it is on the tape.
    void launch(std::span<const Argument> arguments);

    void record(program::TapeMemory& memory) override;
    void backward(const Backward& backward) override;
    std::vector<Group> written() const override;
    void for_each_array(const Visit& visit) const override;
    bool is_launch() const override { return true; }
    std::string text() const override { return "<launch of " + kernel_->name + ">"; }
    std::vector<Use> uses() const override;
    std::string use_text(const Use& use) const override;
    const void* kind() const override { return kernel_.get(); }

private:
    // An array of the block, by itself or in a struct, with the arrays that its elements refer to.
    struct RecordedArray {
        std::shared_ptr<const program::Variable> of;  // null for none
        program::SavedPrimalPtr before, after;
        std::vector<program::Variable> within;
        std::vector<program::SavedPrimalPtr> within_before;
    };

    transform::Contents contents(std::size_t place) const;
    const ParameterEffects& effects(std::size_t place) const;
    bool gives_gradients_late() const;
    void check_within() const;
    std::vector<std::byte> with_implicit_parameters(const program::CompiledKernel& adjoint,
                                                    const std::vector<std::byte>& before,
                                                    std::vector<std::byte> after) const;
    void run(const std::vector<std::byte>& before, const std::vector<std::byte>& after);

    std::shared_ptr<const Access::KernelImplementation> kernel_;
    runtime::Device& device_;
    std::vector<std::int64_t> dim_;
    std::vector<std::byte> block_;
    std::vector<RecordedArray> arrays_;  // in the order of CompiledKernel::arrays
    std::vector<runtime::Array> returned_;
    bool has_gradients_ = false;
};

}  // namespace weft
