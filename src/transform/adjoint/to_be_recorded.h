// Loads of what the kernel may have written itself: to be recorded (TBR), because in the backward pass memory has moved
// on.
//
// Such a kernel first runs once more as it is, up to its end, in the adjoint: on private copies of the arrays, which
// the launch provides. This pre-pass logs what each to-be-recorded load gave. From then on the kernel is one without
// to-be-recorded loads: where they stood, the values are read from the log, so that loops may be replayed in any order.
//
// before:  store %a[%i], %x                 pre-pass:  store %a.copy[%i], %x
//          %y = load %a[%j]                            %y = load %a.copy[%j]; store %log[%p], %y; %p2 = add %p, 1
//                                              after:  store %a[%i], %x
//                                                      %v = load %log[%p]; %y = loaded %a[%j], %v; %p2 = add %p, 1
//
// `loaded` gives the value, and has the derivative of the load. The position in the log is a local like any other.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

std::unordered_set<const ir::Operation*> to_be_recorded_loads(const ir::Function& kernel, bool noalias);

struct WithPrepass {
    std::unique_ptr<ir::Function> kernel;
    // The first operations of its body, which are the pre-pass: they have no part in the derivative.
    std::size_t prepass = 0;
};
WithPrepass add_prepass(const ir::Function& kernel, const std::unordered_set<const ir::Operation*>& to_be_recorded,
                        bool noalias);

}  // namespace weft::transform
