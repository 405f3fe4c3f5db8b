#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>

#include "support/float_environment.h"

namespace weft {
namespace {

// Computed at run time, with the mode that holds there: compilers know nothing of modes, and drop `volatile` of
// parameters.
float half_of(float x) {
    volatile float given = x;
    volatile float half = given * 0.5F;
    return half;
}
double third(double x) {
    volatile double given = x;
    volatile double result = given / 3.0;
    return result;
}

TEST(DefaultFloats, round_to_nearest_and_give_back_what_they_found) {
    const double nearest = third(1.0);
    std::fesetround(FE_UPWARD);
    EXPECT_GT(third(1.0), nearest);
    {
        const DefaultFloats floats;
        EXPECT_EQ(third(1.0), nearest);
    }
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(DefaultFloats, keep_subnormal_numbers) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    EXPECT_EQ(half_of(FLT_MIN), 0.0F);
    {
        const DefaultFloats floats;
        EXPECT_EQ(half_of(FLT_MIN), FLT_MIN / 2);
    }
    EXPECT_EQ(half_of(FLT_MIN), 0.0F);
    _mm_setcsr(before);
    EXPECT_EQ(half_of(FLT_MIN), FLT_MIN / 2);
}
#endif

}  // namespace
}  // namespace weft
