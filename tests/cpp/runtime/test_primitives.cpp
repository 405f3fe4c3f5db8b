// Sums, scans, sorts, runs and products against plain loops: what the sanitizers look at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "runtime/primitives/matmul.h"
#include "runtime/primitives/primitives.h"

namespace weft::runtime {
namespace {

template <typename T>
Array array_of(Type dtype, const std::vector<T>& values, Shape shape = {}) {
    if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
    Array array = empty(dtype, shape, device("cpu"));
    std::copy(values.begin(), values.end(), static_cast<T*>(array.view.data));
    return array;
}

template <typename T>
std::vector<T> values_of(const Array& array) {
    Array packed = contiguous(array);
    auto* first = static_cast<const T*>(packed.view.data);
    return {first, first + packed.size() * array.dtype.components()};
}

std::vector<float> random_floats(std::size_t count) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

TEST(Primitives, sums_of_all_and_along_axes) {
    std::vector<float> values = random_floats(3 * 5000);
    Array array = array_of(f32_type(), values, {3, 5000});
    EXPECT_NEAR(sum(array, -1)[0].real, std::accumulate(values.begin(), values.end(), 0.0), 1e-9);
    std::vector<Total> rows = sum(array, 1), columns = sum(array, 0);
    ASSERT_EQ(rows.size(), 3u);
    ASSERT_EQ(columns.size(), 5000u);
    EXPECT_NEAR(rows[1].real, std::accumulate(values.begin() + 5000, values.begin() + 10000, 0.0), 1e-9);
    EXPECT_NEAR(columns[7].real, double(values[7]) + values[5007] + values[10007], 1e-12);
    EXPECT_NEAR(inner(array, array, -1)[0].real, std::inner_product(values.begin(), values.end(), values.begin(), 0.0),
                1e-2);
}

TEST(Primitives, scans_in_place) {
    std::vector<std::int32_t> values(50'000);
    std::iota(values.begin(), values.end(), -100);
    Array array = array_of(i32_type(), values);
    scan(array, array, true);
    std::partial_sum(values.begin(), values.end(), values.begin());
    EXPECT_EQ(values_of<std::int32_t>(array), values);
}

TEST(Primitives, sorts_are_stable_and_put_nan_last) {
    std::vector<float> values = random_floats(100'000);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = std::round(values[i]);
    values[10] = std::nanf("");
    values[20] = -0.0f;
    std::vector<std::int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    Array keys = array_of(f32_type(), values), places = array_of(i32_type(), order);
    sort_pairs(keys, places, static_cast<std::int64_t>(values.size()));
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return std::isnan(values[b]) ? !std::isnan(values[a]) : values[a] < values[b];
    });
    EXPECT_EQ(values_of<std::int32_t>(places), order);
}

TEST(Primitives, runs) {
    Array values = array_of(i32_type(), std::vector<std::int32_t>{4, 4, 4, 2, 7, 7});
    Array found = zeros(i32_type(), Shape{6}, device("cpu")), lengths = zeros(i32_type(), Shape{6}, device("cpu"));
    EXPECT_EQ(encode_runs(values, 6, found, lengths), 3);
    EXPECT_EQ(values_of<std::int32_t>(found), (std::vector<std::int32_t>{4, 2, 7, 0, 0, 0}));
    EXPECT_EQ(values_of<std::int32_t>(lengths), (std::vector<std::int32_t>{3, 1, 2, 0, 0, 0}));
}

TEST(Primitives, products_of_strided_matrices) {
    constexpr std::int64_t kRows = 150, kInner = 130, kColumns = 170;
    std::vector<float> values = random_floats(kInner * kRows), others = random_floats(kInner * kColumns);
    const int turned[] = {1, 0};
    Array a = transpose(array_of(f32_type(), values, {kInner, kRows}), turned);
    Array b = array_of(f32_type(), others, {kInner, kColumns});
    Array d = empty(f32_type(), Shape{kRows, kColumns}, device("cpu"));
    matmul(a, b, nullptr, d, 2.0, 0.0);
    std::vector<float> result = values_of<float>(d);
    for (std::int64_t i = 0; i < kRows; i += 7) {
        for (std::int64_t j = 0; j < kColumns; j += 5) {
            double expected = 0.0;
            for (std::int64_t k = 0; k < kInner; ++k)
                expected += 2.0 * values[k * kRows + i] * others[k * kColumns + j];
            EXPECT_NEAR(result[i * kColumns + j], expected, 1e-3);
        }
    }
}

}  // namespace
}  // namespace weft::runtime
