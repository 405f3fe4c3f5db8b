// An array of a program, with its gradient. A tape keeps pointers to these: the program may give the array a gradient,
// or another one, after it was recorded.
#pragma once

#include "runtime/array.h"

namespace weft::program {

struct Variable {
    runtime::Array array;         // view.grad: the first element of the gradient, which has the strides of the array
    runtime::BufferPtr gradient;  // the gradient's memory, or null
    bool requires_grad = false;
    bool retain_grad = false;  // launches that overwrite the array leave its gradient as it is
};

// The array of its gradient, which must exist, to be read before the next write to it.
inline runtime::Array gradient_to_read(const Variable& of) {
    runtime::Array gradient = of.array;
    gradient.view.data = gradient.size() > 0 ? of.array.view.grad : nullptr;
    gradient.view.grad = nullptr;
    gradient.buffer = of.gradient;
    return gradient;
}

// To be called before the address of its gradient, if it has one, escapes to other code: its contents are no longer
// known (gradient_memory.h).
inline void mark_gradient_escaped(const Variable& of) {
    if (of.gradient) of.gradient->zeros.forget();
}

// The array of its gradient, which must exist, for any use.
inline runtime::Array gradient_of(const Variable& of) {
    mark_gradient_escaped(of);
    return gradient_to_read(of);
}

// Gives it a gradient of zeros unless it has one: with the same strides, gaps included.
void make_gradient(Variable& of);

}  // namespace weft::program
