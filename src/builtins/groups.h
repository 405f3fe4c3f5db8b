// The groups of the table, in the order of the reference. A new group is a file, a line here and one in registry.cpp.
#pragma once

#include "builtins/registry.h"

namespace weft::builtins {

std::span<const Entry> operator_entries();

}  // namespace weft::builtins
