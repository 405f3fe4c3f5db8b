#pragma once
// The versions of PTX and the architectures in which there is what a module uses. A driver refuses the others.
#include <string>
#include <string_view>

#include "ptx/module.h"

namespace weft::emulator::ptx {

struct Requirement {
    int version = 0;       // 10 · major + minor
    int architecture = 0;  // 80 for sm_80
};

// `operands` is the number of operands, with the result.
Requirement requirement_of(std::string_view opcode, size_t operands, int version);
// Those of special registers, such as "%clusterid.x".
Requirement requirement_of_special(std::string_view name);
// The first PTX version with this .target; 0 if it is not known.
int version_of_target(int architecture);
// The PTX version that a driver for this version of CUDA (12080 is 12.8) takes.
int version_of_driver(int cuda);
// Instructions that are in the targets of one architecture alone ("sm_90a").
bool needs_specific_target(std::string_view opcode);

// Throws Error at the first thing that the version or the target of the module does not have.
void check_requirements(const Module& module);

// "8.7" of 87.
std::string version_text(int version);

}  // namespace weft::emulator::ptx
