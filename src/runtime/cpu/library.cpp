#include "runtime/cpu/library.h"

#include <algorithm>

#include "support/error.h"

namespace weft::runtime {

namespace {

bool is_here(std::string_view level) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (level == "v2") return __builtin_cpu_supports("x86-64-v2");
    if (level == "v3") return __builtin_cpu_supports("x86-64-v3");
    if (level == "v4") return __builtin_cpu_supports("x86-64-v4");
#endif
    return level == "base";
}

int find_best_level() {
    const std::span levels = library_levels();
    int best = -1;
    for (int level = 0; level < static_cast<int>(levels.size()); ++level)
        if (is_here(levels[level])) best = level;
    WEFT_CHECK(best >= 0, "the device library has no code for this processor");
    return best;
}

}  // namespace

int best_library_level() {
    static const int best = find_best_level();
    return best;
}

void* find_library_function(std::string_view name, int level) {
    for (const LibraryRow& row : library_rows())
        if (name == row.name) return row.addresses[level];
    return nullptr;
}

void* find_library_function(std::string_view name) { return find_library_function(name, best_library_level()); }

}  // namespace weft::runtime
