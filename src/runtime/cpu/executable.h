// A Binary made runnable on the CPU: linked by JITLink into this process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "binary/binary.h"
#include "binary/cpu_abi.h"

namespace weft::runtime {

class Executable {
public:
    explicit Executable(Binary binary);
    ~Executable();
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const Binary& binary() const { return binary_; }
    // Throws InternalError where there is no such kernel.
    const KernelEntry& kernel(std::string_view name) const;
    KernelEntryPoint entry(std::string_view name) const;

private:
    void link_native(const std::vector<std::byte>& object, std::unordered_map<std::string, void*>& natives);

    Binary binary_;
    struct Linked;
    std::unique_ptr<Linked> linked_;
};

}  // namespace weft::runtime
