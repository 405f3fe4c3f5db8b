// Arguments of the kernel that gives an array's value to a graph's conditions (condition.cpp).
#pragma once

#include <cstdint>

namespace weft::devlib {

struct ConditionPlan {
    const std::int32_t* condition;
    unsigned long long if_true, if_false;  // handles of conditions; 0: unused
};

}  // namespace weft::devlib
