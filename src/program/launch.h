// Launches: of a kernel, of its adjoint, and in forward mode. The caller has brought the arguments into the form that
// machine code takes, a block of bytes laid out as Kernel::layout() says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "program/atomic_result_buffers.h"
#include "program/implicit_parameters.h"
#include "program/kernel.h"
#include "program/nan_check.h"
#include "program/run.h"

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

// Runs it, or code that does the same sooner with these arguments (grid_order.h). Where wp.config.verify_fp asks for
// that, `check` has the arrays that the kernel writes as they were; null otherwise.
void launch(Kernel& kernel, const CompiledKernel& compiled, runtime::Device& device, const std::byte* block,
            const Grid& grid, const NanCheck* check = nullptr);

// Code of such a launch whose threads run in the order of a hash grid, for a PreparedLaunch; null where it would never
// do so. Arrays need not be there yet.
std::shared_ptr<const CompiledKernel> code_in_grid_order(Kernel& kernel, const CompiledKernel& compiled,
                                                         runtime::Device& device, const std::byte* block,
                                                         const Grid& grid);

// The same with what its atomics give kept in `returned`, for the adjoint; they are as open_atomic_results() gave
// them. Returns the code that ran.
const CompiledKernel& launch_keeping_atomic_results(Kernel& kernel, runtime::Device& device,
                                                    std::span<const std::int64_t> dims, const std::byte* block,
                                                    std::span<runtime::Array> returned,
                                                    const NanCheck* check = nullptr);

// A launch of something that is derived from a kernel.
struct DerivedLaunch {
    Derivation derivation;
    std::span<const std::int64_t> dims;
    // The arguments, arrays with their contents from before the launch that this one belongs to, and with the gradients
    // to work on; the same with contents from after that launch; and the tangents, laid out like the arguments.
    const std::byte* before;
    const std::byte* after;
    const std::byte* tangents = nullptr;
    std::span<runtime::Array> returned;  // what atomics of that launch gave
    // With Derivation::numbers: their gradients, laid out like the arguments, to which the launch adds.
    std::byte* number_gradients = nullptr;
    runtime::Device* device;

    bool of_adjoint() const { return !derivation.gradients.empty(); }
};
// Returns the code that ran. Throws UsageError where it needs what atomics returned and there is nothing.
const CompiledKernel& launch_derived(Kernel& kernel, const DerivedLaunch& what, const NanCheck* check = nullptr);

// Whether that needs what only the launch itself gives.
bool needs_launch(Kernel& kernel, const DerivedLaunch& what);

}  // namespace weft::program
