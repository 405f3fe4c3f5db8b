// What the kernel is launched with that tells a graph what an array says (condition.cpp).
#pragma once

#include <cstdint>

namespace weft::devlib {

struct ConditionPlan {
    const std::int32_t* condition;
    unsigned long long if_true, if_false;  // handles of conditions; 0: nobody asks
};

}  // namespace weft::devlib
