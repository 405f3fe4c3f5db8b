// A device whose memory is its own: its work, and the order of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/bytes.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/kernel.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

int open_count = 0, opened = 0, live = 0;

Device& late() {
    static const CpuMemory memory{[](std::int64_t size) {
                                      ++live;
                                      return std::aligned_alloc(64, (static_cast<std::size_t>(size) + 63) / 64 * 64);
                                  },
                                  [](void* data, std::int64_t) {
                                      --live;
                                      std::free(data);
                                  },
                                  [] {
                                      ++open_count;
                                      ++opened;
                                  },
                                  [] { --open_count; }};
    static Device& device = make_cpu_device("cpu:late", &memory);
    return device;
}

// The contents at this moment, without a wait.
float now(const Array& array) { return *static_cast<const float*>(array.view.data); }

std::vector<float> values(const Array& array) {
    const Array there = on_host(array);
    const auto* const data = reinterpret_cast<const float*>(host_data(there));
    return {data, data + there.size()};
}

const Shape kThree{3};

TEST(Device, work_is_done_when_somebody_waits_and_in_order) {
    const Array array = zeros(f32_type(), kThree, late());
    late().synchronize();
    const float one = 1.0f, two = 2.0f;
    fill(array, &one);
    fill(slice(array, 0, 1, 2, 1), &two);
    EXPECT_EQ(now(array), 0.0f);
    late().synchronize();
    EXPECT_EQ(now(array), 1.0f);
    EXPECT_EQ(values(array), (std::vector<float>{1.0f, 2.0f, 2.0f}));
    EXPECT_EQ(open_count, 0);
}

TEST(Device, memory_is_open_while_it_is_touched_only) {
    late().synchronize();  // the rest of earlier tests
    const int before = opened;
    const Array array = empty(f32_type(), kThree, late());
    EXPECT_EQ(opened, before);
    const float one = 1.0f;
    fill(array, &one);
    EXPECT_EQ(opened, before);
    late().synchronize();
    EXPECT_EQ(opened, before + 1);
    EXPECT_EQ(open_count, 0);
}

TEST(Device, copies_to_and_from_the_host_are_done_when_they_return) {
    Array here = zeros(f32_type(), kThree, host_device());
    const Array there = empty(f32_type(), kThree, late());
    const float three = 3.0f;
    fill(here, &three);
    copy(there, here);
    zero(here);  // the copy does not change
    EXPECT_EQ(values(there), (std::vector<float>{3.0f, 3.0f, 3.0f}));
    fill(there, &three);
    copy(here, there);
    EXPECT_EQ(now(here), 3.0f);
}

TEST(Device, bytes_are_read_and_written_after_the_work_before) {
    const Array array = zeros(f32_type(), kThree, late());
    const float five = 5.0f, six = 6.0f;
    fill(array, &five);
    float found = 0.0f;
    read_bytes(late(), &found, array.view.data, sizeof found);
    EXPECT_EQ(found, 5.0f);
    write_bytes(late(), array.view.data, &six, sizeof six);
    EXPECT_EQ(values(array), (std::vector<float>{6.0f, 5.0f, 5.0f}));
    EXPECT_THROW(host_data(array), InternalError);
}

TEST(Device, memory_is_freed_after_the_work_that_uses_it) {
    late().synchronize();  // the rest of earlier tests
    const int before = live;
    {
        const Array array = empty(f32_type(), kThree, late());
        zero(array);
        EXPECT_EQ(live, before + 1);
    }
    EXPECT_EQ(live, before + 1);
    late().synchronize();
    EXPECT_EQ(live, before);
}

TEST(Device, launches_wait_in_the_stream_with_their_arguments) {
    KernelEntry description{.name = "kernel", .symbol = "kernel", .tid_rank = 1};
    const CpuKernel kernel(description,
                           [](const void* arguments, const LaunchContext* context, std::int64_t, std::int64_t) {
                               **static_cast<float* const*>(arguments) += 1.0f;
                               if (context->fault) context->fault->claimed = 1;
                           });
    const Array array = zeros(f32_type(), kThree, late());
    void* argument = array.view.data;
    const std::span arguments(reinterpret_cast<const std::byte*>(&argument), sizeof argument);
    Grid grid;
    grid.count = 1;
    Fault fault;
    EXPECT_TRUE(kernel.launch(arguments, grid, {}, late().default_stream()));
    EXPECT_TRUE(kernel.launch(arguments, grid, {.fault = &fault}, late().default_stream()));
    argument = nullptr;
    EXPECT_EQ(fault.claimed, 0);
    late().default_stream().synchronize();
    EXPECT_EQ(fault.claimed, 1);
    EXPECT_EQ(values(array)[0], 2.0f);
}

TEST(Device, elements_are_written_by_the_host_through_a_copy) {
    const Array array = zeros(f32_type(), Shape{4}, late());
    const Array part = slice(array, 0, 1, 2, 2);
    HostWrite write(part, /*keeps=*/true);
    const float seven = 7.0f;
    std::memcpy(host_data(write.array()) + sizeof(float), &seven, sizeof seven);
    write.finish();
    HostElement element(part);
    const float eight = 8.0f;
    std::memcpy(element.data(), &eight, sizeof eight);
    element.store();
    EXPECT_EQ(values(array), (std::vector<float>{0.0f, 8.0f, 0.0f, 7.0f}));
}

TEST(Device, two_devices_of_one_name_are_an_error) {
    add_device(make_cpu_device("cpu:added"));
    EXPECT_EQ(device("cpu:added").alias, "cpu:added");
    static Device& another = make_cpu_device("cpu:added");  // devices live for ever
    EXPECT_THROW(add_device(another), InternalError);
}

}  // namespace
}  // namespace weft::runtime
