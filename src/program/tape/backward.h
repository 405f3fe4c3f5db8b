// The backward pass of a tape: seeds become gradients, then the entries run backward in reverse order. One pass for
// Python (bindings/gradients) and for C++ programs (embed/).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "program/tape/tape.h"

namespace weft::program {

// A gradient to start from: of shape and dtype of its array, on any device.
struct Seed {
    Variable* of;
    runtime::Array gradient;
};

// The program that owns the tape.
class BackwardHost {
public:
    virtual ~BackwardHost() = default;
    // Gives an array without a gradient one of zeros.
    virtual void make_gradient(Variable& of);
    // Makes the gradient of `of` that of `to`, which shows the same elements.
    virtual void share_gradient(Variable& to, const Variable& of);
    // Called when all seeds are set. `loss` is the given or the implied one, or null. `seeds` are the loss and the
    // arrays with given gradients: their gradients may stop on the way (stopped_gradients.h).
    virtual void begin(const Variable* loss, std::span<const Variable* const> seeds) = 0;
    // Runs one entry backward, usually by tape.reverse().
    virtual void reverse(Tape& tape, std::size_t index, std::span<const SuppliedGradient> supplied);
    // Called at the end with the kernels of launches that the pass left out because of enable_backward=False, if any.
    virtual void tell_left_out(std::span<const std::string> kernels);
};

// Adds to the gradients of arrays that the entries read. The gradient of an array that an entry overwrites is consumed:
// it is zero afterwards, unless the array has retain_grad.
//
// The gradient of `loss`, one element, starts as 1. Each seed replaces the gradient of its array, and is unchanged
// afterwards, even if it lies in the gradients of the tape's arrays. An array without a gradient gets one. Without loss
// and seeds, the pass starts from the gradients that written arrays have; if all of them are zero, the array of one
// number that the last launch wrote is the loss. Throws UsageError if a loss or a seed does not fit its array, if there
// is nothing to start from, and if arrays were written outside the tape, so that recorded and present values would mix.
void backward(Tape& tape, BackwardHost& host, Variable* loss, std::span<const Seed> seeds);

// The same from the gradients that arrays have. begin() is not called.
void reverse_all(Tape& tape, BackwardHost& host);

}  // namespace weft::program
