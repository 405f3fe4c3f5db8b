// The start of a backward pass: a loss, given gradients, or gradients that exist already. Errors are UsageErrors of
// Tape.backward().
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "program/tape/tape.h"

namespace weft::program {

// A loss must be one element with a gradient.
void check_loss(const Variable& loss);

// A gradient to start from must have dtype and shape of its array, which has a gradient or may have one.
void check_gradient(const Variable& of, const runtime::Array& gradient);

// The arrays on the tape that show the same elements as this one, which has just got a gradient, and have none. They
// must share its gradient. Throws if one shows a part of the memory in another way.
std::vector<const Variable*> standing_for(const Variable& of, const Tape& tape);

// The loss if the caller names none. Null if gradients exist already, if an entry with an unknown backward pass may
// bring some, and for an empty tape.
const Variable* implied_loss(const Tape& tape);

// The entry that may read a gradient directly from the caller's memory, and the argument: the last entry that uses the
// array, if it only overwrites the whole of it. `others`: the further gradients that were given.
struct Reader {
    std::size_t entry, argument;
};
std::optional<Reader> reader_of(const Variable& of, const runtime::Array& gradient,
                                std::span<const Variable* const> others, const Tape& tape);

// The same for an array whose gradient lies in the caller's memory, which must not change, and that only `entry` uses.
// If the entry may not read the gradient there, the array gets a copy as its gradient.
std::optional<SuppliedGradient> supply_or_copy(Variable& of, const TapeEntry& entry);

}  // namespace weft::program
