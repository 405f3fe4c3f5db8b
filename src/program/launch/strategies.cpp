#include "program/launch/strategies.h"

#include <cstring>

namespace weft::program {

void PreparedLaunch::begin(const CompiledKernel& strategic, runtime::Device& device, const Grid& grid) {
    const CompiledKernel& plain = *kernel_;
    launch_ = strategy_of(plain)->begin(plain, device, block_, grid, /*has_host=*/false);
    if (!launch_) return;
    larger_.resize(static_cast<std::size_t>(strategic.layout.size_bytes));
    std::memcpy(larger_.data(), block_, static_cast<std::size_t>(plain.layout.size_bytes));
    if (!launch_->fill_implicit_parameters(strategic, larger_.data())) return;
    kernel_ = &strategic;
    block_ = larger_.data();
}

}  // namespace weft::program
