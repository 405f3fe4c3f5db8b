// Arrays against a plain model: every element looked up by its indices.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "runtime/array_copies.h"
#include "runtime/cpu/block_cache.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

using Dims = std::vector<std::int64_t>;

Device& cpu() { return device("cpu"); }

Array counting(Type dtype, const Dims& shape) {
    Array array = empty(dtype, shape, cpu());
    auto* bytes = static_cast<unsigned char*>(array.view.data);
    for (std::int64_t i = 0; i < array.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 3);
    return array;
}

// The bytes of all elements in C order, fetched one index at a time.
std::vector<std::string> elements(const Array& array) {
    std::vector<std::string> result;
    Dims index(static_cast<std::size_t>(array.ndim), 0);
    for (std::int64_t n = 0; n < array.size(); ++n) {
        auto* at = static_cast<const char*>(array.view.data);
        for (int i = 0; i < array.ndim; ++i) at += index[i] * array.view.strides[i];
        result.emplace_back(at, static_cast<std::size_t>(array.dtype.size_bytes()));
        for (int i = array.ndim - 1; i >= 0; --i) {
            if (++index[i] < array.view.shape[i]) break;
            index[i] = 0;
        }
    }
    return result;
}

TEST(Array, empty_is_aligned_and_contiguous) {
    for (std::int64_t n : {1, 3, 100, 1000, 70000, 3000000}) {
        Array array = empty(f32_type(), Dims{n}, cpu());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.view.data) % kArrayAlignment, 0u);
        EXPECT_TRUE(array.is_contiguous());
        EXPECT_EQ(array.size(), n);
    }
}

TEST(Array, zeros_clears_recycled_memory) {
    for (std::int64_t n : {5, 1000, 300000, 5000000}) {
        {
            fill(empty(f32_type(), Dims{n}, cpu()), "abcd");
        }
        Array array = zeros(f32_type(), Dims{n}, cpu());
        auto* values = static_cast<const float*>(array.view.data);
        EXPECT_TRUE(std::all_of(values, values + n, [](float v) { return v == 0.0f; })) << n;
    }
}

TEST(Array, empty_dimension_gives_no_memory) {
    Array array = empty(f32_type(), Dims{4, 0, 3}, cpu());
    EXPECT_EQ(array.size(), 0);
    EXPECT_EQ(array.view.data, nullptr);
    EXPECT_EQ(array.extent().first, array.extent().second);
    copy(array, clone(array));
    zero(array);
}

TEST(Array, impossible_shapes_are_errors) {
    EXPECT_THROW(empty(f32_type(), Dims{-1}, cpu()), UsageError);
    EXPECT_THROW(empty(f32_type(), Dims{1, 1, 1, 1, 1}, cpu()), UsageError);
    EXPECT_THROW(empty(f32_type(), Dims{}, cpu()), UsageError);
    EXPECT_THROW(empty(f32_type(), Dims{std::int64_t{1} << 62, 4}, cpu()), UsageError);
    EXPECT_THROW(empty(f32_type(), Dims{std::int64_t{1} << 60}, cpu()), UsageError);
}

TEST(Array, slice_and_pick_share_memory) {
    Array array = counting(i32_type(), {6, 5});
    Array part = slice(array, 0, 4, 2, -3);  // rows 4 and 1
    EXPECT_EQ(elements(pick(part, 0, 1)), elements(pick(array, 0, 1)));
    EXPECT_EQ(elements(pick(part, 0, 0)), elements(pick(array, 0, 4)));
    EXPECT_EQ(part.buffer, array.buffer);
    EXPECT_FALSE(part.is_contiguous());
}

TEST(Array, slice_moves_the_gradient) {
    Array array = counting(f32_type(), {6});
    Array gradient = counting(f32_type(), {6});
    array.view.grad = gradient.view.data;
    Array part = slice(array, 0, 2, 2, 2);
    EXPECT_EQ(part.view.grad, static_cast<char*>(gradient.view.data) + 8);
}

TEST(Array, reshape_infers_one_dimension) {
    Array array = counting(i32_type(), {4, 6});
    EXPECT_EQ(elements(reshape(array, Dims{3, -1})), elements(array));
    EXPECT_EQ(reshape(array, Dims{3, -1}).view.shape[1], 8);
    EXPECT_THROW(reshape(array, Dims{5, -1}), UsageError);
    EXPECT_THROW(reshape(array, Dims{-1, -1}), UsageError);
    EXPECT_THROW(reshape(array, Dims{23}), UsageError);
    EXPECT_THROW(reshape(transpose(array, std::vector{1, 0}), Dims{24}), UsageError);
}

TEST(Array, transpose_rejects_repeated_axes) {
    Array array = counting(i32_type(), {2, 3, 4});
    EXPECT_THROW(transpose(array, std::vector{0, 1, 1}), UsageError);
    EXPECT_THROW(transpose(array, std::vector{0, 1}), UsageError);
    EXPECT_EQ(transpose(array, std::vector{2, 0, 1}).view.shape[0], 4);
}

TEST(Array, reinterpret_keeps_the_outer_shape) {
    Array array = counting(f32_type(), {4, 3});
    Array vectors = reinterpret(array, Type::vector(Scalar::f32, 3));
    EXPECT_EQ(vectors.ndim, 1);
    EXPECT_EQ(vectors.view.shape[0], 4);
    Array again = reinterpret(vectors, f32_type());
    EXPECT_EQ(again.ndim, 2);
    EXPECT_EQ(elements(again), elements(array));
    EXPECT_EQ(reinterpret(array, i32_type()).ndim, 2);
    EXPECT_THROW(reinterpret(array, Type::vector(Scalar::f32, 4)), UsageError);
    EXPECT_THROW(reinterpret(array, Type::scalar(Scalar::f64)), UsageError);
    EXPECT_THROW(reinterpret(slice(array, 1, 0, 2, 2), Type::vector(Scalar::f32, 2)), UsageError);
}

// Random views of random arrays: permuted, sliced with positive and negative steps.
Array random_view(Array array, std::mt19937& random) {
    std::vector<int> axes(static_cast<std::size_t>(array.ndim));
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    array = transpose(array, axes);
    for (int i = 0; i < array.ndim; ++i) {
        std::int64_t n = array.view.shape[i];
        std::int64_t step = 1 + random() % 3;
        std::int64_t count = (n + step - 1) / step;
        array = random() % 2 ? slice(array, i, 0, count, step) : slice(array, i, n - 1, count, -step);
    }
    return array;
}

TEST(Array, copy_between_any_strides) {
    std::mt19937 random(1);
    const Type types[] = {Type::scalar(Scalar::u8),
                          Type::scalar(Scalar::f16),
                          f32_type(),
                          f64_type(),
                          Type::vector(Scalar::f32, 3),
                          Type::matrix(Scalar::f32, 3, 3),
                          Type::vector(Scalar::i8, 5)};
    for (int round = 0; round < 400; ++round) {
        Type dtype = types[random() % std::size(types)];
        Dims shape(1 + random() % kMaxDims);
        for (auto& n : shape) n = 1 + random() % 9;
        if (random() % 4 == 0) shape[random() % shape.size()] *= 40;
        Array source = random_view(counting(dtype, shape), random);
        Array destination = source;
        {
            // The same shape with strides of its own: a view of a larger array.
            Dims larger;
            for (std::int64_t n : source.shape()) larger.push_back(2 * n);
            destination = counting(dtype, larger);
            for (int i = 0; i < source.ndim; ++i) {
                bool backwards = random() % 2;
                destination = slice(destination, i, backwards ? 2 * source.view.shape[i] - 1 : 0, source.view.shape[i],
                                    backwards ? -2 : 1 + random() % 2);
            }
        }
        copy(destination, source);
        ASSERT_EQ(elements(destination), elements(source));
        ASSERT_EQ(elements(clone(source)), elements(source));
    }
}

TEST(Array, large_copies_run_in_parallel_and_agree) {
    Array source = counting(f32_type(), {1500, 1001});
    Array transposed = transpose(source, std::vector{1, 0});
    EXPECT_EQ(elements(clone(transposed)), elements(transposed));
    Array wide = counting(f32_type(), {3, 700001});
    Array every_second = slice(wide, 1, 0, 350001, 2);
    EXPECT_EQ(elements(clone(every_second)), elements(every_second));
}

TEST(Array, overlapping_copy_acts_as_through_a_temporary) {
    for (std::int64_t step : {1, 2}) {
        Array array = counting(i32_type(), {100});
        Array low = slice(array, 0, 0, 40, step);
        Array high = slice(array, 0, 3, 40, step);
        auto expected = elements(low);
        copy(high, low);
        EXPECT_EQ(elements(high), expected);
    }
    Array array = counting(i32_type(), {50});
    auto expected = elements(slice(array, 0, 49, 50, -1));
    copy(array, slice(array, 0, 49, 50, -1));
    EXPECT_EQ(elements(array), expected);
}

TEST(Array, fill_writes_only_the_view) {
    Array array = zeros(Type::vector(Scalar::f32, 3), Dims{7, 5}, cpu());
    const float value[3] = {1, 2, 3};
    Array part = slice(array, 1, 1, 2, 2);
    fill(part, value);
    const std::string bytes(reinterpret_cast<const char*>(value), sizeof value);
    for (const auto& element : elements(part)) EXPECT_EQ(element, bytes);
    for (const auto& element : elements(slice(array, 1, 0, 3, 2))) EXPECT_EQ(element, std::string(12, '\0'));
    zero(part);
    for (const auto& element : elements(array)) EXPECT_EQ(element, std::string(12, '\0'));
}

TEST(Array, copy_of_different_shapes_is_an_error) {
    EXPECT_THROW(copy(counting(f32_type(), {3}), counting(f32_type(), {4})), UsageError);
    EXPECT_THROW(copy(counting(f32_type(), {3}), counting(f64_type(), {3})), UsageError);
}

TEST(BlockCache, reuses_what_was_given_back) {
    trim_blocks();
    void* first = take_block(5000).data;
    give_block(first, 5000);
    EXPECT_GT(kept_block_bytes(), 0);
    EXPECT_EQ(take_block(4999).data, first);
    give_block(first, 4999);
    trim_blocks();
    EXPECT_EQ(kept_block_bytes(), 0);
}

TEST(BlockCache, every_class_holds_what_it_promises) {
    for (std::int64_t size = 1; size < (80 << 20); size += 1 + size / 7) {
        Block block = take_block(size);
        ASSERT_NE(block.data, nullptr);
        auto* bytes = static_cast<unsigned char*>(block.data);
        bytes[0] = bytes[size - 1] = 1;
        give_block(block.data, size);
    }
    trim_blocks();
}

TEST(Device, cuda_is_an_error_that_names_the_device) {
    try {
        device("cuda:0");
        FAIL();
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("'cuda:0'"), std::string::npos);
    }
    EXPECT_THROW(device("tpu"), UsageError);
}

}  // namespace
}  // namespace weft::runtime
