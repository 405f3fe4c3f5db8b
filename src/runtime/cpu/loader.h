// Links a Binary into this process with JITLink, for the CPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/cpu/kernel.h"

namespace weft::runtime {

class CpuExecutable final : public Executable {
public:
    explicit CpuExecutable(Binary binary);
    ~CpuExecutable() override;

    const CpuKernel& kernel(std::string_view name) const override;

private:
    void link_native(const std::vector<std::byte>& object, std::unordered_map<std::string, void*>& natives);

    struct Linked;
    std::unique_ptr<Linked> linked_;
};

}  // namespace weft::runtime
