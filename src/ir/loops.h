// Static facts about the trip counts of loops.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace weft::ir {

// The trip count of a for with a constant range, which a guard may end earlier; empty for any other loop.
std::optional<std::int64_t> known_trips(const Operation& loop);

}  // namespace weft::ir
