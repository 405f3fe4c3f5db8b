// The signature of a kernel: its name, its parameters, and their places in an argument block. The same for a kernel
// that is compiled in this process and for one from a bundle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/kernel/transformed.h"
#include "types/layout.h"

namespace weft::program {

struct KernelSignature {
    // One name for each type.
    KernelSignature(std::string name, std::vector<Type> types, std::vector<std::string> parameter_names);

    std::string name;         // for messages
    std::vector<Type> types;  // of the parameters
    std::vector<std::string> parameter_names;
    ArgumentLayout layout;
    std::vector<BlockArray> arrays;
    std::vector<std::pair<std::int64_t, std::int64_t>> numbers;  // bytes of parameters that are no arrays: offset, size
    bool has_structs = false;                                    // some parameter is a struct, or an array of them

    // Whether a parameter is an array whose elements have a derivative.
    bool is_smooth_array(std::size_t parameter) const;
    // The names of the arrays, in their order: "body.velocity".
    std::vector<std::string> array_names() const;
};

}  // namespace weft::program
