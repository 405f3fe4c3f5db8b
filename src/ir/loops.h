// What the text of a loop says about how often it runs.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace weft::ir {

// The iterations of a for whose range is constant, which a guard may end earlier; empty for any other loop.
std::optional<std::int64_t> known_trips(const Operation& loop);

}  // namespace weft::ir
