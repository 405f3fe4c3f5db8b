// One launch on a weft::Tape: program::RecordedLaunch with the arrays of a C++ program.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "embed/access.h"
#include "program/tape/recorded_launch.h"

namespace weft {

// The arguments of a launch that a tape records.
struct GivenArguments {
    // Throws UsageError if there is no such grid, or an argument does not fit its parameter.
    GivenArguments(const Access::KernelImplementation& kernel, std::span<const std::int64_t> dim,
                   std::span<const Argument> arguments);

    runtime::Device& device;
    std::span<const std::int64_t> dim;
    std::vector<std::byte> block;
    std::vector<std::shared_ptr<const program::Variable>> arrays;  // of the block, in order; null for none
};

// Keeps its kernel and its arrays alive.
class Recorded final : public program::RecordedLaunch {
public:
    // Throws UsageError if an argument has a gradient and the file has no adjoint of the kernel.
    Recorded(std::shared_ptr<const Access::KernelImplementation> kernel, const GivenArguments& given);

    void backward(const Backward& backward) override;

private:
    std::vector<runtime::BufferPtr> show_nested(std::byte* before, std::byte* after) const override;
    void find_nested();

    std::shared_ptr<const Access::KernelImplementation> kernel_;
    std::vector<std::shared_ptr<const program::Variable>> kept_;
    std::vector<std::vector<program::Variable>> within_;  // arrays that elements refer to
};

}  // namespace weft
