// Functions of the device library that are compiled when Weft is built (src/devlib/spatial), once for each level of
// processors. cmake/devlib_levels.cmake writes the table.
#pragma once

#include <span>
#include <string_view>

namespace weft::runtime {

// At least the number of levels of any kind of processor.
inline constexpr int kMostLevels = 4;

struct LibraryRow {
    const char* name;              // "weft_lib_..."
    void* addresses[kMostLevels];  // of the code for each level; lower levels first
};

// The compiled levels, lowest first, as compilers call them ("v3" is x86-64-v3).
std::span<const char* const> library_levels();
std::span<const LibraryRow> library_rows();

// Index of the highest level that this processor can run.
int best_library_level();
// The address of a function, for that level or a given one; null if there is no such function.
void* find_library_function(std::string_view name);
void* find_library_function(std::string_view name, int level);

}  // namespace weft::runtime
