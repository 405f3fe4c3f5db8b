// The result of the compiler, which the runtime runs. Plain data: the disk cache, files compiled ahead of time and
// embedding all carry exactly this.
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

// A message about an operation of the kernel. A Binary names operations by their number in the kernel's IR, in program
// order, and never by line. The cache may give the same code to a kernel that stands elsewhere now; program/ finds the
// lines in the IR at hand.
struct Remark {
    std::int32_t operation = 0;
    std::string text;
    bool operator==(const Remark&) const = default;
};

// The facts of code for a CPU.
struct CpuEntry {
    std::int32_t lanes = 1;
    // The slices of the first axis at either end of a chunk that cost more, because neighbouring chunks update the same
    // elements (from transform::Halo).
    std::int32_t boundary = 0;
    double cost = 0.0;            // nanoseconds of one thread, an estimate for the grain size of launches
    bool has_atomics = false;     // on memory that other launches may use
    bool finds_objects = false;   // by their ids: meshes, grids, volumes
    bool ordered = false;         // its results depend on the order in which atomics arrive
    bool has_long_loops = false;  // one thread may run for long: launches can be interrupted inside it
    // Whether launches over one grid may be fused with others. If so, `own_arrays` are the array parameters of which
    // each thread reads and writes elements of its own (transform::thread_private_elements).
    bool can_fuse = false;
    std::vector<std::int32_t> own_arrays;
    double cost_exclusive = 0.0;  // `cost` under LaunchContext::exclusive; 0 if that makes no difference

    bool operator==(const CpuEntry&) const = default;
};

// An array of which each block may have a copy in shared memory, if it is small at the launch (CudaLaunch): the places
// of its descriptor's fields in the block of arguments.
struct CudaSharedCopy {
    std::int64_t data = 0, shape = 0, strides = 0;
    std::int32_t ndim = 0;
    std::int32_t element_bytes = 0;

    bool operator==(const CudaSharedCopy&) const = default;
};

// The facts of code for a CUDA device.
struct CudaEntry {
    std::int64_t argument_bytes = 0;
    bool arguments_in_memory = false;  // the block is too large for kernel parameters: the kernel gets its address
    bool ordered = false;              // its results depend on the order in which atomics arrive
    bool reports = false;              // it writes faults or prints: launches give it a CudaReports
    bool prints = false;               // its CudaReports needs room for printed words
    bool asks_blocks = false;          // for the number of their threads: its adjoint needs the same blocks
    bool whole_blocks = false;         // it calls C++ of the user's, in which threads of a block may meet
    std::int32_t logs = 0;             // logs that a thread keeps (CudaLaunch::logs)
    std::int32_t most_threads = 0;     // of a block; 0: the device's limit
    std::int32_t together = 1;         // elements of a thread under CudaLaunch::together
    bool finds_objects = false;        // looks up meshes, trees, grids or volumes: launches give it CudaLaunch::objects
    std::vector<std::string> formats;  // texts that it prints and raises; their numbers count from 1
    // Blocks combine contributions of their threads: the fewer blocks, the fewer atomics.
    bool combines = false;
    std::vector<CudaSharedCopy> shared_copies;

    bool operator==(const CudaEntry&) const = default;
};

struct KernelEntry {
    std::string name;
    std::string symbol;
    std::int32_t tid_rank = 0;
    std::vector<Remark> remarks;      // the reasons why it was not vectorised, if it was not
    std::vector<std::int32_t> sites;  // debug builds: the operation that each check belongs to
    // Parameters in whose arrays this code takes different indices to be different elements. A launch that passes other
    // arrays needs the binary compiled without that.
    std::vector<std::int32_t> uncontended_parameters;
    std::vector<ParameterEffects> effects;   // by parameter; of an adjoint: those of the kernel that it belongs to
    std::variant<CpuEntry, CudaEntry> code;  // facts that depend on the device

    const CpuEntry& cpu() const { return std::get<CpuEntry>(code); }
    CpuEntry& cpu() { return std::get<CpuEntry>(code); }
    const CudaEntry& cuda() const { return std::get<CudaEntry>(code); }
    bool finds_objects() const {
        // Each launch asks this: std::visit would take several nanoseconds.
        const auto* const of_cpu = std::get_if<CpuEntry>(&code);
        return of_cpu ? of_cpu->finds_objects : cuda().finds_objects;
    }
    // Threads that run side by side in SIMD registers.
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
    // The output of NVIDIA's compiler for the target's processor, if it was asked for; else empty. Other GPUs get the
    // PTX.
    std::vector<std::byte> machine_code;
    // Object files of functions in C++ (@wp.func_native): each defines `kNativeSymbol`, and the code calls number k by
    // native_symbol(k).
    std::vector<std::vector<std::byte>> natives;
    std::vector<KernelEntry> kernels;
    Digest key;  // hash of everything that it was compiled from (jit/disk_cache.h)
};

// Bytes with a version, lengths and a checksum over all of it. deserialize() throws UsageError on any damage.
std::vector<std::byte> serialize(const Binary& binary);
Binary deserialize(const std::vector<std::byte>& bytes);

}  // namespace weft
