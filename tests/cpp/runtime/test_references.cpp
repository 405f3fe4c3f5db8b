#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"

namespace weft::runtime {
namespace {

BufferPtr block(std::int64_t size_bytes) { return allocate(size_bytes, device("cpu")); }

void point(const BufferPtr& holder, std::int64_t at, const void* address) {
    std::memcpy(static_cast<std::byte*>(holder->data) + at, &address, sizeof address);
}

TEST(References, an_address_anywhere_in_a_kept_buffer_finds_it) {
    BufferPtr holder = allocate_zeroed(64, device("cpu")), first = block(100), second = block(200);
    holder->references.add(first, *holder);
    holder->references.add(second, *holder);
    auto* begin = static_cast<std::byte*>(second->data);
    EXPECT_EQ(holder->references.find(begin), second);
    EXPECT_EQ(holder->references.find(begin + 199), second);
    EXPECT_NE(holder->references.find(begin + 200), second);
    EXPECT_EQ(holder->references.find(holder->data), nullptr);
    EXPECT_EQ(holder->references.find(nullptr), nullptr);
}

TEST(References, kept_buffers_live_as_long_as_the_holder) {
    BufferPtr holder = allocate_zeroed(64, device("cpu"));
    std::weak_ptr<Buffer> kept;
    {
        BufferPtr temporary = block(64);
        kept = temporary;
        holder->references.add(temporary, *holder);
        holder->references.add(temporary, *holder);
    }
    EXPECT_EQ(holder->references.size(), 1u);
    EXPECT_FALSE(kept.expired());
    holder.reset();
    EXPECT_TRUE(kept.expired());
}

TEST(References, a_holder_does_not_keep_itself_or_empty_memory) {
    BufferPtr holder = allocate_zeroed(64, device("cpu"));
    holder->references.add(holder, *holder);
    holder->references.add(block(0), *holder);
    holder->references.add(nullptr, *holder);
    EXPECT_EQ(holder->references.size(), 0u);
}

TEST(References, what_nothing_points_to_is_let_go) {
    BufferPtr holder = allocate_zeroed(64, device("cpu"));
    BufferPtr inner = block(128);
    point(holder, 8, static_cast<std::byte*>(inner->data) + 64);  // into the middle, as a slice does
    holder->references.add(inner, *holder);
    std::weak_ptr<Buffer> last;
    for (int i = 0; i < 5000; ++i) {
        BufferPtr next = block(32);
        last = next;
        point(holder, 40, next->data);
        holder->references.add(next, *holder);
    }
    EXPECT_LT(holder->references.size(), 600u);
    EXPECT_FALSE(last.expired());
    EXPECT_EQ(holder->references.find(inner->data), inner);
}

TEST(References, a_copy_points_to_what_its_source_points_to) {
    const std::int64_t shape[] = {4};
    Array from = zeros(u64_type(), shape, device("cpu")), to = zeros(u64_type(), shape, device("cpu"));
    BufferPtr kept = block(64);
    from.buffer->references.add(kept, *from.buffer);
    copy(to, from);
    EXPECT_EQ(to.buffer->references.find(kept->data), kept);
    EXPECT_EQ(clone(from).buffer->references.size(), 1u);
    EXPECT_EQ(zeros(u64_type(), shape, device("cpu")).buffer->references.size(), 0u);
}

// ---- memory that the host cannot read ----

Device& unreadable() {
    static const CpuMemory memory{[](std::int64_t size) { return std::aligned_alloc(64, (size + 63) / 64 * 64); },
                                  [](void* data, std::int64_t) { std::free(data); }, [] {}, [] {}};
    static Device& device = make_cpu_device("cpu:unreadable", &memory);
    return device;
}

TEST(References, an_edge_goes_with_what_the_host_stores_in_its_place) {
    const BufferPtr holder = allocate_zeroed(64, unreadable());
    BufferPtr inner = block(128), other = block(128);
    holder->references.add(inner, *holder, 8);
    std::weak_ptr<Buffer> before_last;
    for (int i = 0; i < 5000; ++i) {
        const BufferPtr next = block(32);
        if (i == 4998) before_last = next;
        holder->references.add(next, *holder, 40);
    }
    EXPECT_LT(holder->references.size(), 600u);
    EXPECT_EQ(holder->references.find(inner->data), inner);
    holder->references.forget(40, 48, *holder);
    EXPECT_TRUE(before_last.expired());
    EXPECT_EQ(holder->references.size(), 1u);
    holder->references.add(other, *holder);  // by a kernel, to any place
    holder->references.forget(8, 16, *holder);
    EXPECT_EQ(holder->references.find(inner->data), nullptr);
    EXPECT_EQ(holder->references.find(other->data), other);
    holder->references.forget(0, 64, *holder);
    EXPECT_EQ(holder->references.size(), 0u);
}

TEST(References, what_kernels_have_stored_stays) {
    const BufferPtr holder = allocate_zeroed(64, unreadable());
    std::weak_ptr<Buffer> first;
    for (int i = 0; i < 1000; ++i) {
        const BufferPtr next = block(32);
        if (i == 0) first = next;
        holder->references.add(next, *holder);
    }
    EXPECT_EQ(holder->references.size(), 1000u);
    EXPECT_FALSE(first.expired());
}

TEST(References, a_copy_inside_of_one_memory_keeps_what_its_source_kept) {
    const std::int64_t shape[] = {8};
    const Array array = zeros(u64_type(), shape, unreadable());
    const BufferPtr kept = block(64);
    array.buffer->references.add(kept, *array.buffer, 0);
    copy(slice(array, 0, 4, 1, 1), slice(array, 0, 0, 1, 1));
    array.buffer->references.forget(0, 8, *array.buffer);
    EXPECT_EQ(array.buffer->references.find(kept->data), kept);
}

TEST(References, an_array_that_is_cleared_points_to_nothing) {
    const std::int64_t shape[] = {8};
    Array array = zeros(u64_type(), shape, unreadable());
    array.buffer->references.add(block(64), *array.buffer, 0);
    zero(slice(array, 0, 1, 7, 1));
    EXPECT_EQ(array.buffer->references.size(), 1u);
    zero(array);
    EXPECT_EQ(array.buffer->references.size(), 0u);
}

}  // namespace
}  // namespace weft::runtime
