// THE builtin table: every function that kernels can call by `wp.<name>`, one entry per overload (entry.h). It has a
// file for each group (groups.h), and an index by names that is made at the first look-up. All functions are
// thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builtins/entry.h"

namespace weft::builtins {

// One group of the reference, one file each.
struct Group {
    const char* name;  // "Scalar math"
    std::span<const Entry> entries;
    bool kernels_only = false;  // meaningless on the host: effects between threads
};
std::span<const Group> groups();

// All overloads of a name, in table order; empty if there is none.
std::vector<const Entry*> overloads(std::string_view name);
// Whether a name has a meaning only in kernels: it is part of the language, or of a group for kernels.
bool is_for_kernels(std::string_view name);
// Every name once, sorted: for suggestions in messages and for the `warp` module.
const std::vector<std::string>& names();

}  // namespace weft::builtins
