#include "program/launch/late_fault.h"

#include <utility>
#include <vector>

#include "program/launch/fault.h"
#include "runtime/verify.h"

namespace weft::program {
namespace {

class LaunchFault final : public runtime::LateFault {
public:
    LaunchFault(std::shared_ptr<const CompiledKernel> kernel, const std::byte* block)
        : kernel_(std::move(kernel)), block_(block, block + kernel_->layout.size_bytes) {}

    void throw_fault() override {
        const Fault found = std::exchange(fault, {});
        program::throw_fault(*kernel_, found, block_.data());
    }

private:
    std::shared_ptr<const CompiledKernel> kernel_;
    std::vector<std::byte> block_;
};

}  // namespace

std::shared_ptr<runtime::LateFault> late_fault(const CompiledKernel& kernel, const runtime::Stream& stream,
                                               const std::byte* block) {
    if (kernel.description.sites.empty() || kernel.waits_for_faults || !stream.keeps_faults() ||
        runtime::verifies_cuda())
        return nullptr;
    return std::make_shared<LaunchFault>(kernel.kept(), block);
}

}  // namespace weft::program
