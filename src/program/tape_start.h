// Where a tape starts from in its backward pass: a loss, given gradients, or gradients that are there already. What is
// wrong is a UsageError of Tape.backward().
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "program/tape.h"

namespace weft::program {

// A loss is one element with a gradient.
void check_loss(const Variable& loss);

// A gradient to start from has dtype and shape of its array, which has a gradient or may have one.
void check_gradient(const Variable& of, const runtime::Array& gradient);

// The arrays on the tape that stand for this one, which has just got a gradient: they show the same elements and have
// none. Theirs has to be the same. Throws where one shows a part of the memory in another way.
std::vector<const Variable*> standing_for(const Variable& of, const Tape& tape);

// What to start from where the caller says nothing. Null where gradients are there already, where an entry that nobody
// knows may bring some, and of a tape that has recorded nothing.
const Variable* implied_loss(const Tape& tape);

// The entry, by number, that may read a gradient from where the caller has it, and the argument: the last one that has
// to do with the array, if all it does is to overwrite the whole of it. `others`: what else has gradients given.
struct Reader {
    std::size_t entry, argument;
};
std::optional<Reader> reader_of(const Variable& of, const runtime::Array& gradient,
                                std::span<const Variable* const> others, const Tape& tape);

}  // namespace weft::program
