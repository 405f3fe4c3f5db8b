#pragma once
// A module ready to run: instructions with their registers, addresses of variables, and calls between functions.
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lanes/lanes.h"
#include "memory/address_space.h"
#include "ptx/module.h"

namespace weft::emulator {

// Generic addresses: those of devices and of the host have 47 bits; the windows of other spaces have higher addresses.
constexpr uint64_t kSharedWindow = uint64_t(1) << 48, kLocalWindow = uint64_t(2) << 48,
                   kParamWindow = uint64_t(3) << 48, kCodeWindow = uint64_t(4) << 48,
                   kWindowMask = ~((uint64_t(1) << 48) - 1);

// Operations that Warp implements itself.
enum class Control : uint8_t {
    Branch,         // immediate: the target
    BranchIndexed,  // source 0; lists[extra…] with count targets: width is not used
    Call,           // extra: index into sites
    Return,
    Exit,
    Barrier,  // source 0: number, source 1: threads or constant 0 for all
    Arrive,
    BarrierReduce,  // operation in flags: 0 popc, 1 and, 2 or; source 2: the predicate
    Converge,       // runs once the lanes of the mask in source[3] have arrived
    System,         // a function of the device's system; extra: index into sites
    Trap,
    Breakpoint,
    Yield,  // other lanes and warps run first
};

enum class SystemCall : uint8_t { Printf, Assert, Malloc, Free, SetCondition };

struct CallSite {
    int callee = -1;  // index of a function; -1: the address in `target`
    RegisterCode target = 0;
    SystemCall system = SystemCall::Printf;
    // offsets in the caller's local memory
    std::vector<uint32_t> arguments, sizes;
    uint32_t result = 0, result_size = 0;
};

struct CodeFunction {
    const ptx::Function* source = nullptr;
    std::vector<Instruction> instructions;
    std::vector<std::byte> constants;
    std::vector<uint32_t> lists;  // registers of vectors, targets of indexed branches
    std::vector<CallSite> sites;
    uint32_t frame_size = 0;    // bytes of registers
    uint32_t local_size = 0;    // bytes of local memory per thread, including parameters of calls
    uint32_t local_stored = 0;  // the part of it for .local variables
    std::vector<uint32_t> parameter_offsets, parameter_sizes;
    uint32_t return_offset = 0, return_size = 0;
    uint32_t parameter_bytes = 0;  // of an entry
    uint32_t shared_size = 0;      // of an entry, without the dynamic part
    uint32_t shared_align = 1;

    std::byte* constant_base() const {
        const auto address = reinterpret_cast<uintptr_t>(constants.data());
        return reinterpret_cast<std::byte*>((address + 63) / 64 * 64);
    }
};

struct Program {
    ptx::Module module;
    int device = 0;
    std::vector<CodeFunction> functions;  // of the module, with the same indices
    std::unordered_map<std::string, int> function_index;
    std::unordered_map<std::string, Allocation*> variables;
    std::unordered_map<std::string, uint32_t> shared;  // offsets

    Program() = default;
    Program(const Program&) = delete;
    ~Program();
};

// Parses a module, allocates its variables and decodes it. Throws ptx::Error; bad_alloc if the device has no memory for
// the variables.
std::unique_ptr<Program> load_program(std::string text, int device);

}  // namespace weft::emulator
