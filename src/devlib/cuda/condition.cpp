// Conditions of graphs. The driver defines the function, and recognizes it by its name.
#include "devlib/cuda/condition.h"

namespace weft::devlib {

extern "C" {

void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

[[clang::device_kernel]] void weft_set_condition(ConditionPlan plan) {
    const bool holds = *plan.condition != 0;
    if (plan.if_true) cudaGraphSetConditional(plan.if_true, holds);
    if (plan.if_false) cudaGraphSetConditional(plan.if_false, !holds);
}

}  // extern "C"

}  // namespace weft::devlib
