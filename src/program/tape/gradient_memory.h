// The memory of gradients while only backward passes know it. Ranges that these leave zero are known to be zero, and
// are not cleared again.
//
// That ends for ever when other code may learn of the memory: gradient_of() gives the array of a gradient out, and
// mark_gradient_escaped() announces that its address escapes (variable.h). A recorded launch and its adjoint do
// neither; the adjoint reports its writes here.
#pragma once

#include <vector>

#include "program/tape/variable.h"

namespace weft::program {

// Writes to several gradients, which end with this object. Keeps their memory alive.
class GradientWrites {
public:
    explicit GradientWrites(std::size_t expected = 1) { all_.reserve(expected); }
    ~GradientWrites();
    GradientWrites(const GradientWrites&) = delete;
    GradientWrites& operator=(const GradientWrites&) = delete;

    // Announces writes to the gradient, which must exist. `clears`: all of it will be zero at the end of the writes,
    // and no other write of this object overlaps it.
    void begin(const Variable& of, bool clears);
    // The writes have succeeded.
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

// The gradient must exist. is_known_zero(): whether it is known to be zero. has_numbers(): whether it has an element
// other than zero; reads the memory if that is not known.
bool is_known_zero(const Variable& of);
bool has_numbers(const Variable& of);

// Sets the gradient, which must exist, to zero. Counts a write unless it was known to be zero.
void clear_gradient(const Variable& of);

// For tests: ranges that are known to be zero are read, and a number in them throws InternalError.
void check_known_zeros(bool on);

}  // namespace weft::program
