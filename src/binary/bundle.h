// Kernels compiled ahead of time: the file that wp.compile_aot_module() writes and include/weft/program.h loads. It
// holds what a launch has to know of a kernel besides its Binary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "types/type.h"

namespace weft {

struct BundledParameter {
    std::string name;
    Type type;
};

struct BundledKernel {
    std::string name;
    std::vector<BundledParameter> parameters;
    Binary dense;    // for arrays with packed rows that do not overlap
    Binary general;  // for all others
};

struct Bundle {
    std::string name;  // of the module
    std::string triple;
    std::string processor;              // as LLVM calls it
    std::vector<std::string> features;  // of the processor, that the code may use
    std::vector<BundledKernel> kernels;
};

// As serialize(const Binary&): deserialize_bundle throws UsageError on any damage.
std::vector<std::byte> serialize(const Bundle& bundle);
Bundle deserialize_bundle(const std::vector<std::byte>& bytes);

}  // namespace weft
