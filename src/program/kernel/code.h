// All that was made of one analysed kernel: its transformed forms and their machine code. Kernels that one `def` made
// more than once share it if they mean the same (reuse.h). So a gradient is always that of the program that ran, even
// if names that the kernel uses mean something else by now.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "program/kernel/compiled.h"
#include "program/kernel/options.h"

namespace weft::program {

class KernelCode {
public:
    explicit KernelCode(std::unique_ptr<ir::Module> analysed, bool asks_for_blocks = false)
        : analysed_(std::move(analysed)), asks_for_blocks_(asks_for_blocks) {}

    // As sema gives it, before any pass but those of tiles.
    const ir::Module& analysed() const { return *analysed_; }
    // transform::asks_for_blocks(): it has tiles, or block_dim().
    bool asks_for_blocks() const { return asks_for_blocks_; }
    // The coordinates that the kernel itself asks of tid().
    int tid_rank() const { return analysed_->functions.front()->tid_rank; }

    // Each is made at its first call. Facts and code are kept. The IR takes the most memory: only the latest one is
    // kept, until there is code. The caller holds the host's lock (host.h), which is given up meanwhile. Throws
    // CompileError.
    std::shared_ptr<const KernelFacts> facts(const PassOptions& options);
    std::shared_ptr<const TransformedKernel> transformed(const PassOptions& options);
    std::shared_ptr<const CompiledKernel> compiled(const CompileOptions& options);
    // Null if it has not been compiled.
    std::shared_ptr<const CompiledKernel> find(const CompileOptions& options) const;

private:
    const std::unique_ptr<const ir::Module> analysed_;
    std::shared_ptr<const KernelFacts> find_facts(const PassOptions& options) const;

    std::vector<std::pair<PassOptions, std::shared_ptr<const KernelFacts>>> facts_;
    std::pair<PassOptions, std::shared_ptr<const TransformedKernel>> latest_;
    std::vector<std::pair<CompileOptions, std::shared_ptr<const CompiledKernel>>> compiled_;
    const bool asks_for_blocks_;
};

}  // namespace weft::program
