#pragma once
// The limits of architectures, and the modules and launches that exceed them. NVIDIA's table "Technical Specifications
// per Compute Capability" has the numbers.
#include <string>

#include "driver/state.h"

namespace weft::emulator {

struct ArchitectureLimits {
    int shared_of_block = 49152;  // bytes, if a kernel asks for more than 48 KiB
    int shared_of_multiprocessor = 65536;
    int threads = 2048;  // of a multiprocessor
    int blocks = 32;     // of a multiprocessor
};
const ArchitectureLimits& architecture_limits();

constexpr int kRegistersOfBlock = 65536;        // and of a multiprocessor
constexpr uint32_t kStaticShared = 49152;       // bytes of a block that a kernel has without asking
constexpr uint64_t kLocalOfThread = 512 << 10;  // bytes

// Empty: the module is one for this driver and this device. Otherwise `result` is why not, and the text says it.
std::string refusal_of_module(const Program& program, CUresult& result);

// Registers of a thread (ptx/registers.h), counted once.
int registers_of(const Kernel& kernel);
// Registers that a block takes: units of 8 for a thread, and whole warps.
uint64_t registers_of_block(const Kernel& kernel, uint64_t threads);
// Blocks of a multiprocessor; 0 if it has no room for one.
int resident_blocks(const Kernel& kernel, int threads, size_t dynamic_shared);
// The most threads of a block: by the directives of the kernel, and by its registers.
int most_threads(const Kernel& kernel);

// Fails if the device cannot launch the kernel in this way. Notes the reason in words.
void check_launch(const Kernel& kernel, const CUlaunchConfig& config);

}  // namespace weft::emulator
