// An array as a program holds it, with its gradient. A tape keeps pointers to these: the program may give an array its
// gradient, or another one, after it was recorded.
#pragma once

#include "runtime/array.h"

namespace weft::program {

struct Variable {
    runtime::Array array;         // view.grad: the first element of the gradient, which has the strides of the array
    runtime::BufferPtr gradient;  // the gradient's memory; null where there is none
    bool requires_grad = false;
    bool retain_grad = false;  // what overwrites the array leaves its gradient as it is
};

// The array of its gradient, which it has, to be read before anybody writes to it.
inline runtime::Array gradient_to_read(const Variable& of) {
    runtime::Array gradient = of.array;
    gradient.view.data = gradient.size() > 0 ? of.array.view.grad : nullptr;
    gradient.view.grad = nullptr;
    gradient.buffer = of.gradient;
    return gradient;
}

// For those who give out the address of its gradient, if it has one: what is there is not known any more
// (gradient_memory.h).
inline void show_gradient(const Variable& of) {
    if (of.gradient) of.gradient->zeros.forget();
}

// The array of its gradient, which it has, for those who may do anything with it.
inline runtime::Array gradient_of(const Variable& of) {
    show_gradient(of);
    return gradient_to_read(of);
}

// Gives it a gradient of zeros, where it has none: of the same strides, with gaps where the array has them.
void make_gradient(Variable& of);

}  // namespace weft::program
