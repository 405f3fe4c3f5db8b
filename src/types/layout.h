// The ABI between launches and compiled kernels: the layout of arguments in memory. program/ writes the blocks and
// codegen/ reads them; no other room may assume these layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "types/type.h"
#include "weft/array_view.h"

namespace weft {

// The record that a debug build of a kernel writes if a check fails. The first failing thread wins (`claimed` is set by
// compare-and-swap); the launch turns the record into a Python exception.
struct Fault {
    std::int32_t claimed = 0;
    std::int32_t kind = 0;          // FaultKind
    std::int64_t thread[kMaxDims];  // coordinates of the thread
    std::int64_t index = 0;         // the offending index (bounds), else 0
    std::int64_t size = 0;          // the size of that dimension (bounds)
    std::int32_t axis = 0;          // which dimension
    std::int32_t site = 0;          // number of the check: an index into KernelEntry::sites
    char message[232];              // raised: the text (runtime::set_message)
};
enum class FaultKind : std::int32_t {
    none,
    bounds,
    division,
    assertion,
    null_array,
    requirement,
    not_finite,
    raised,
    no_object,  // `index` is the id, `size` the ObjectKind that was asked for
    race,       // `index` is the address, `axis` the site of the other access, `message` its thread's coordinates
    unwritten,  // `index` is the address
};

// The kinds of accesses that kernels record with codegen::Options::notes_accesses.
enum class AccessKind : std::int32_t {
    read,
    write,    // is about to take place
    written,  // has taken place
    atomic,
};
// Memory that was never written holds this if accesses are noted: a NaN in float32 and, twice, in float64.
inline constexpr std::uint32_t kUnwritten = 0xfffbc3d5;

// Offsets of the parameters in the argument block: each at the next multiple of its alignment, in order.
struct ArgumentLayout {
    std::vector<std::int64_t> offsets;
    std::int64_t size_bytes = 0;
};
ArgumentLayout argument_layout(std::span<const Type> parameters);

}  // namespace weft
