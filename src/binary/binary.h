// The joint between the wings: what the compiler wing makes and the runtime wing runs. Plain data; the disk cache,
// ahead-of-time files and embedding all carry exactly this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "binary/target.h"
#include "types/effects.h"

namespace weft {

// 256-bit content hash, as 64 hexadecimal digits in text.
struct Digest {
    std::array<std::uint8_t, 32> bytes{};
    std::string hex() const;
    bool operator==(const Digest&) const = default;
    auto operator<=>(const Digest&) const = default;
};

// Something to say about an operation of the kernel. A Binary names operations by their number in the kernel's IR, in
// program order, and never by line: the same code may come from the cache for a kernel that stands elsewhere now, and
// program/ finds the lines in the IR at hand.
struct Remark {
    std::int32_t operation = 0;
    std::string text;
    bool operator==(const Remark&) const = default;
};

// Of code for a CPU.
struct CpuEntry {
    std::int32_t lanes = 1;
    // How many slices of the first axis at either end of a chunk are dearer: there, neighbouring chunks are met.
    std::int32_t boundary = 0;
    double cost = 0.0;            // estimated nanoseconds of one thread, for the grain size of launches
    bool has_atomics = false;     // that other launches may use the memory of
    bool finds_objects = false;   // by their ids: meshes, grids, volumes
    bool ordered = false;         // what it leaves in memory depends on the order in which atomics arrive
    bool has_long_loops = false;  // one thread may run for long: launches can be interrupted in the midst of it
    // Whether launches over one grid may run piece by piece with others; then the numbers of the array parameters of
    // which each thread reads and writes elements of its own (transform::thread_private_elements).
    bool can_fuse = false;
    std::vector<std::int32_t> own_arrays;
    double cost_exclusive = 0.0;  // the same where LaunchContext::exclusive; 0 where that makes no difference

    bool operator==(const CpuEntry&) const = default;
};

// Of code for a CUDA device.
struct CudaEntry {
    std::int64_t argument_bytes = 0;
    bool arguments_in_memory = false;  // the block does not fit the parameters of a kernel: they have its address
    bool ordered = false;              // what it leaves in memory depends on the order in which atomics arrive
    bool reports = false;              // it writes faults or prints: launches give it a CudaReports
    bool prints = false;               // with room for what it prints
    std::int32_t logs = 0;             // how many logs a thread keeps (CudaLaunch::logs)
    std::int32_t most_threads = 0;     // of a block; 0: as many as the device allows
    std::int32_t together = 1;         // how many elements a thread takes where CudaLaunch::together
    std::vector<std::string> formats;  // of what it prints and raises; their numbers count from 1

    bool operator==(const CudaEntry&) const = default;
};

struct KernelEntry {
    std::string name;
    std::string symbol;
    std::int32_t tid_rank = 0;
    std::vector<Remark> remarks;      // why it was not vectorised, where it was not
    std::vector<std::int32_t> sites;  // debug builds: the operation that each check belongs to
    // Numbers of the parameters of whose arrays this code takes different indices to be different elements. A launch
    // that passes others needs the binary compiled without that.
    std::vector<std::int32_t> uncontended_parameters;
    std::vector<ParameterEffects> effects;   // by parameter; of an adjoint: those of the kernel that it belongs to
    std::variant<CpuEntry, CudaEntry> code;  // what only its device knows of

    const CpuEntry& cpu() const { return std::get<CpuEntry>(code); }
    CpuEntry& cpu() { return std::get<CpuEntry>(code); }
    const CudaEntry& cuda() const { return std::get<CudaEntry>(code); }
    // Threads that run as one, side by side in SIMD registers.
    int lanes() const {
        const CpuEntry* of_cpu = std::get_if<CpuEntry>(&code);
        return of_cpu ? of_cpu->lanes : 1;
    }
};

inline constexpr const char* kNativeSymbol = "weft_native";
inline std::string native_symbol(std::size_t number) { return "weft_native_" + std::to_string(number); }

struct Binary {
    Target target;
    std::vector<std::byte> code;  // relocatable object file (cpu), PTX text with a NUL behind it (cuda)
    // Of a GPU's code also what NVIDIA's compiler makes of it for the target's processor, where that was asked for:
    // GPUs that it is not for have the PTX. Else empty.
    std::vector<std::byte> machine_code;
    // Object files of functions in C++ (@wp.func_native): each defines `kNativeSymbol`, and the code calls number k by
    // native_symbol(k).
    std::vector<std::vector<std::byte>> natives;
    std::vector<KernelEntry> kernels;
    Digest key;  // what it was compiled from (jit/disk_cache.h)
};

// Bytes with a version, lengths and a checksum over everything; deserialize throws UsageError on any damage.
std::vector<std::byte> serialize(const Binary& binary);
Binary deserialize(const std::vector<std::byte>& bytes);

}  // namespace weft
