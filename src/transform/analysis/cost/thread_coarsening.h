// Thread coarsening: how many elements a thread of a GPU takes at once (codegen/cuda/thread_coarsening.cpp).
//
// Each operation is then emitted for all elements in turn, so that their loads are issued before the first one is
// awaited. A kernel may begin with a test that guards the rest. If an element fails it, all start again one by one.
//
// Atomics that combine contributions within a block (transform/plan.h) are allowed. Then a thread goes on until all
// elements are done, so that few blocks remain whose sums have to be added.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/ir.h"

namespace weft::transform {

struct Coarsening {
    int elements = 1;  // 1: it gains nothing
    // The tests that all elements of a thread must pass, by operation: the arm that holds the rest.
    std::unordered_map<const ir::Operation*, const ir::Region*> guarded;
    bool combines = false;  // some atomics are combined within a block; nothing is guarded
};
// `is_combined`: of atomics, whether they are combined within a block.
Coarsening find_coarsening(const ir::Function& kernel, const std::function<bool(const ir::Operation&)>& is_combined);

}  // namespace weft::transform
