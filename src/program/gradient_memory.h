// The memory of gradients, as long as only backward passes know it: then what they leave zero is known to be zero, and
// is not cleared again.
//
// That ends for ever where anybody else may learn of the memory: gradient_of() gives the array of a gradient out, and
// show_gradient() is for those who give out its address (variable.h). A launch that is recorded and its adjoint do
// neither; the adjoint tells of its writes here.
#pragma once

#include <vector>

#include "program/variable.h"

namespace weft::program {

// Writes to gradients at the same time, which end with this object. Keeps their memory alive.
class GradientWrites {
public:
    explicit GradientWrites(std::size_t expected = 1) { all_.reserve(expected); }
    ~GradientWrites();
    GradientWrites(const GradientWrites&) = delete;
    GradientWrites& operator=(const GradientWrites&) = delete;

    // The gradient, which there is, may be written from now on. `clears`: all of it will be zero when the writes are
    // done, and none of the others meets it.
    void begin(const Variable& of, bool clears);
    // They have not failed.
    void done() { is_done_ = true; }

private:
    struct Write {
        runtime::BufferPtr memory;
        runtime::ByteRange bytes = {};
        bool is_told = false, clears = false;
    };
    std::vector<Write> all_;
    bool is_done_ = false;
};

// Whether the gradient, which there is, is known to be zero; and whether it has something else than zeros, which reads
// it where that is not known.
bool is_known_zero(const Variable& of);
bool has_numbers(const Variable& of);

// Sets the gradient, which there is, to zero. Counts a write, where there is something to do.
void clear_gradient(const Variable& of);

// For tests: what is known to be zero is read, and an InternalError thrown where it is not.
void check_known_zeros(bool on);

}  // namespace weft::program
