// Launches of a kernel, of its adjoint, and in forward mode. The caller has packed the arguments for the machine code:
// a block of bytes laid out as Kernel::layout() says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "program/kernel/kernel.h"
#include "program/launch/atomic_result_buffers.h"
#include "program/launch/implicit_parameters.h"
#include "program/launch/nan_check.h"
#include "program/launch/run.h"

namespace weft::program {

// Bytes for the arguments of one launch: on the stack unless there are dozens of arrays.
class Block {
public:
    static constexpr std::size_t kInlineBytes = 2048;

    explicit Block(std::size_t size_bytes) {
        if (size_bytes > kInlineBytes) heap_.reset(new std::byte[size_bytes]);
    }
    std::byte* data() { return heap_ ? heap_.get() : inline_; }

private:
    alignas(64) std::byte inline_[kInlineBytes];
    std::unique_ptr<std::byte[]> heap_;
};

// Runs `compiled`, or equivalent code that is faster for these arguments (launch_strategy.h). Under
// wp.config.verify_fp, `check` has the former contents of the arrays that the kernel writes; null otherwise.
void launch(Kernel& kernel, const CompiledKernel& compiled, runtime::Device& device, const std::byte* block,
            const Grid& grid, const NanCheck* check = nullptr);

// The code of such a launch for the kernel's strategy, for a PreparedLaunch (strategies.h). Null if the kernel has
// none, or could never use it. The arrays need not exist yet.
std::shared_ptr<const CompiledKernel> code_of_strategy(Kernel& kernel, const CompiledKernel& compiled,
                                                       runtime::Device& device, const std::byte* block,
                                                       const Grid& grid);

// launch() with the results of its atomics kept in `returned` for the adjoint; these must come from
// open_atomic_results(). Returns the code that ran.
const CompiledKernel& launch_keeping_atomic_results(Kernel& kernel, runtime::Device& device,
                                                    std::span<const std::int64_t> dims, const std::byte* block,
                                                    std::span<runtime::Array> returned,
                                                    const NanCheck* check = nullptr);

// A launch of a derivative of a kernel.
struct DerivedLaunch {
    Derivation derivation;
    std::span<const std::int64_t> dims;
    // Argument blocks. `before`: contents of arrays from before the original launch, with the gradients to work on.
    // `after`: the contents from after it. `tangents`: laid out like the
    // arguments; null for a plain adjoint.
    const std::byte* before;
    const std::byte* after;
    const std::byte* tangents = nullptr;
    std::span<runtime::Array> returned;  // results of the original launch's atomics
    // With Derivation::numbers: gradients of the numbers, laid out like the arguments, to which the launch adds.
    std::byte* number_gradients = nullptr;
    runtime::Device* device;
    // Of the original launch (runtime::Grid), for kernels whose threads of a block may meet.
    std::int32_t block_dim = 0, max_blocks = 0;

    bool of_adjoint() const { return !derivation.gradients.empty(); }
};
// Returns the code that ran. Throws UsageError if it needs the results of atomics and `returned` is empty.
const CompiledKernel& launch_derived(Kernel& kernel, const DerivedLaunch& what, const NanCheck* check = nullptr);

// Whether the derivative needs the launch itself: results of its atomics, or contents from after it.
bool needs_launch(Kernel& kernel, const DerivedLaunch& what);

}  // namespace weft::program
