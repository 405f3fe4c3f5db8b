// Gradients of arrays with retain_grad. An entry that overwrites such an array consumes its gradient as any other; the
// backward pass keeps the gradient of the last contents, and puts it back at its end. It is no seed of the next pass.
#pragma once

#include <utility>
#include <vector>

#include "program/tape/tape.h"

namespace weft::program {

// Of one backward pass.
class RetainedGradients {
public:
    explicit RetainedGradients(const Tape& tape);

    bool any() const { return !arrays_.empty(); }
    // Sets them to zero before the pass: all of them, or those without a write since the pass that left them.
    void clear(bool all) const;
    // To be called before the pass goes back through the entry.
    void save(const TapeEntry& entry);
    // To be called after the pass.
    void restore();

private:
    std::vector<const Variable*> arrays_;
    std::vector<std::pair<runtime::Array, runtime::Array>> saved_;  // gradients and their copies, last contents first
};

}  // namespace weft::program
