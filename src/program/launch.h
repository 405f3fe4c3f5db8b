// Running a compiled kernel over a grid. The caller packs the argument block (CompiledKernel::layout); this room checks
// what can be checked without knowing where the values came from, picks the variant, runs, and reports faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "program/module.h"
#include "runtime/array.h"

namespace weft::program {

// What launches follow, from an executable and what its kernel `name` takes.
CompiledKernel prepare(std::shared_ptr<runtime::Executable> executable, std::string_view name,
                       std::vector<Type> parameter_types, std::vector<ir::ParameterEffects> effects);

// The extents of a launch, fitted to the coordinates that the kernel asks of tid().
struct Grid {
    std::int64_t dim[kMaxDims] = {1, 1, 1, 1};
    std::int64_t count = 0;  // threads in all; 0 where any extent is 0
};

// Fits `dims` (1 to 4 extents) to machine code for launches of `tid_rank` dimensions: missing trailing axes have extent
// 1, and a kernel that does not ask for coordinates counts all threads. Throws UsageError for negative extents, for
// more axes than the code takes (but extents of 1), for products past 2^63, and for an extent that an int32 coordinate
// cannot count.
Grid make_grid(std::span<const std::int64_t> dims, int tid_rank, std::string_view kernel_name);

// The rank of such a launch (transform::fit_to_launch()).
inline int launch_rank(std::span<const std::int64_t> dims) {
    std::size_t rank = dims.size();
    while (rank > 1 && dims[rank - 1] == 1) --rank;
    return static_cast<int>(rank);
}

// True where some array parameter that must be dense for this code is not.
bool needs_strided(const CompiledKernel& kernel, const std::byte* block);

// The arrays of an argument block in order, those in structs too.
std::vector<ArrayPlace> array_places(const ArgumentLayout& layout, std::span<const Type> types);

// Whether some array of the block has no memory: it is None, or empty.
inline bool has_null(std::span<const ArrayPlace> arrays, const std::byte* block) {
    for (const ArrayPlace& place : arrays) {
        const auto& view = *reinterpret_cast<const ArrayView*>(block + place.offset);
        if (!view.data) return true;
    }
    return false;
}

// The memory that one array argument touches, for overlap checks.
struct Extent {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
};
Extent extent(const ArrayView& view, Type array);

// True where some array shows one element at several indices, as one that is broadcast does, and this code takes its
// elements to be different (KernelEntry::own_parameters).
bool repeats_elements(const CompiledKernel& kernel, const std::byte* block);

// True where an array that the kernel writes shares memory with another array argument.
bool has_overlap(const CompiledKernel& kernel, const std::byte* block);

// Of an adjoint: the same, or a gradient shares memory with another array or gradient.
bool has_gradient_overlap(const CompiledKernel& adjoint, const std::byte* block);

// The block of an adjoint has room for CompiledKernel::extras behind the arguments. Those from after the launch are the
// arrays of the block `after`, what atomics gave is in `records`. Copies first show what they are copies of, so that
// needs_strided() may look at them; then they are made, arrays that overlap in one piece. What is returned holds them.
void point_extras(const CompiledKernel& adjoint, std::byte* block, const std::byte* after,
                  std::span<const ArrayView> records);
std::vector<runtime::BufferPtr> make_copies(const CompiledKernel& adjoint, std::byte* block, runtime::Device& device);

// Runs it; prints end up in runtime/print.h's buffer. `interrupted` as in runtime/cpu/pool.h; returns false where it
// answered true. Throws UsageError (category index, runtime ...) where a debug check failed. `not_finite` is told who
// first wrote what is not finite, where the kernel notes that (CompileOptions::finite).
bool run(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, bool (*interrupted)() = nullptr,
         Fault* not_finite = nullptr);

// The same by an entry that stands before the kernel's, with arguments of its own.
bool run_entry(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, const std::byte* block,
               const Grid& grid, bool (*interrupted)(), Fault* not_finite = nullptr);

}  // namespace weft::program
