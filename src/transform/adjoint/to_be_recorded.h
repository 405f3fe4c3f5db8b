// To-be-recorded (TBR) loads: the kernel may have written their elements itself, and memory has changed by the time of
// the backward pass.
//
// The adjoint of such a kernel first runs the kernel once more, on private copies of the arrays, which the launch
// provides. This pre-pass logs the result of each to-be-recorded load. The rest of the adjoint is made from a kernel
// that reads these values from the log. So loops may be replayed in any order.
//
//   before:  store %a[%i], %x                 pre-pass:  store %a.copy[%i], %x
//            %y = load %a[%j]                            %y = load %a.copy[%j]; store %log[%p], %y; %p2 = add %p, 1
//                                                after:  store %a[%i], %x
//                                                        %v = load %log[%p]; %y = loaded %a[%j], %v; %p2 = add %p, 1
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
    // The number of operations at the start of its body that are the pre-pass. They have no part in the derivative.
    std::size_t prepass = 0;
};
WithPrepass add_prepass(const ir::Function& kernel, const std::unordered_set<const ir::Operation*>& to_be_recorded,
                        bool noalias);

}  // namespace weft::transform
