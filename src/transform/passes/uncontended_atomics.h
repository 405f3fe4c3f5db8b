// Atomics of elements that one thread alone updates become a load and a store (uncontended_atomics.cpp).
#pragma once

#include "ir/builder.h"
#include "ir/ir.h"

namespace weft::transform {

// The value of the element after the atomic, if it was `old` before.
ir::Value* atomic_leaves(ir::Builder& b, const ir::Operation& atomic, ir::Value* old);

// Splits the atomics of local arrays.
void split_local_atomics(ir::Function& function);

// Splits the atomics of uncontended elements (analysis/uncontended.h), or only those of elements that the kernel also
// reads. True if there was any. Function::uncontended_parameters gets their arrays.
enum class Uncontended { all, read_too };
bool split_uncontended_atomics(ir::Function& kernel, bool noalias, Uncontended which);

}  // namespace weft::transform
