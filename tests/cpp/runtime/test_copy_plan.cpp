// Plans of copies of arrays without memory: making one touches no memory.
#include <gtest/gtest.h>

#include "runtime/array.h"
#include "runtime/copy_plan.h"

namespace weft::runtime {
namespace {

Array nowhere(std::uintptr_t address, const Shape& shape, const Shape* strides = nullptr) {
    return wrap(reinterpret_cast<void*>(address), f32_type(), shape, strides, host_device(), "test");
}

TEST(CopyPlan, arrays_without_gaps_are_one_line) {
    const CopyPlan plan = plan_copy(nowhere(0x1000, {3, 4, 5}), nowhere(0x8000, {3, 4, 5}));
    EXPECT_EQ(plan.to, reinterpret_cast<void*>(0x1000));
    EXPECT_EQ(plan.from, reinterpret_cast<void*>(0x8000));
    ASSERT_EQ(plan.ndim, 1);
    EXPECT_EQ(plan.axes[0].count, 60);
    EXPECT_EQ(plan.axes[0].to, 4);
    EXPECT_EQ(plan.axes[0].from, 4);
    EXPECT_EQ(plan.size_bytes(), 240);
}

TEST(CopyPlan, axes_are_in_the_order_of_the_destination) {
    const Shape columns{4, 12};
    const CopyPlan plan = plan_copy(nowhere(0x1000, {3, 4}, &columns), nowhere(0x8000, {3, 4}));
    ASSERT_EQ(plan.ndim, 2);
    EXPECT_EQ(plan.axes[0].count, 4);
    EXPECT_EQ(plan.axes[0].to, 12);
    EXPECT_EQ(plan.axes[0].from, 4);
    EXPECT_EQ(plan.axes[1].count, 3);
    EXPECT_EQ(plan.axes[1].to, 4);
    EXPECT_EQ(plan.axes[1].from, 16);
}

TEST(CopyPlan, rows_with_gaps_stay_apart) {
    const Shape rows{100, 4};
    const CopyPlan plan = plan_copy(nowhere(0x1000, {3, 4}, &rows), nowhere(0x8000, {3, 4}));
    ASSERT_EQ(plan.ndim, 2);
    EXPECT_EQ(plan.axes[0].count, 3);
    EXPECT_EQ(plan.axes[0].to, 100);
    EXPECT_EQ(plan.axes[0].from, 16);
}

TEST(CopyPlan, a_fill_reads_one_element) {
    const float element = 1.0f;
    const CopyPlan plan = plan_fill(nowhere(0x1000, {3, 4}), &element);
    ASSERT_EQ(plan.ndim, 1);
    EXPECT_EQ(plan.axes[0].count, 12);
    EXPECT_EQ(plan.axes[0].from, 0);
    EXPECT_EQ(plan.from, &element);
}

TEST(CopyPlan, one_element_is_a_line_of_one) {
    const CopyPlan plan = plan_copy(nowhere(0x1000, {1, 1}), nowhere(0x8000, {1, 1}));
    ASSERT_EQ(plan.ndim, 1);
    EXPECT_EQ(plan.size_bytes(), 4);
}

}  // namespace
}  // namespace weft::runtime
