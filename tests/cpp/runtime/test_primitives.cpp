// Sums, scans, sorts, runs and products against plain loops, for the sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "runtime/array_copies.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/primitives.h"

namespace weft::runtime {
namespace {

Primitives& primitives() { return host_device().primitives(); }

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
    EXPECT_NEAR(primitives().sum(array, -1)[0].real, std::accumulate(values.begin(), values.end(), 0.0), 1e-9);
    std::vector<Total> rows = primitives().sum(array, 1), columns = primitives().sum(array, 0);
    ASSERT_EQ(rows.size(), 3u);
    ASSERT_EQ(columns.size(), 5000u);
    EXPECT_NEAR(rows[1].real, std::accumulate(values.begin() + 5000, values.begin() + 10000, 0.0), 1e-9);
    EXPECT_NEAR(columns[7].real, double(values[7]) + values[5007] + values[10007], 1e-12);
    EXPECT_NEAR(primitives().inner(array, array, -1)[0].real,
                std::inner_product(values.begin(), values.end(), values.begin(), 0.0), 1e-2);
}

TEST(Primitives, scans_in_place) {
    std::vector<std::int32_t> values(50'000);
    std::iota(values.begin(), values.end(), -100);
    Array array = array_of(i32_type(), values);
    primitives().scan(array, array, true);
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
    primitives().sort_pairs(keys, places, static_cast<std::int64_t>(values.size()), 0, 32);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return std::isnan(values[b]) ? !std::isnan(values[a]) : values[a] < values[b];
    });
    EXPECT_EQ(values_of<std::int32_t>(places), order);
}

TEST(Primitives, runs) {
    Array values = array_of(i32_type(), std::vector<std::int32_t>{4, 4, 4, 2, 7, 7});
    Array found = zeros(i32_type(), Shape{6}, device("cpu")), lengths = zeros(i32_type(), Shape{6}, device("cpu"));
    EXPECT_EQ(primitives().encode_runs(values, 6, found, lengths), 3);
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
    primitives().matmul(a, b, nullptr, d, 2.0, 0.0, MatmulPrecision::exact);
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

// Large enough to be cut into blocks, for as many threads as there may be, in the middle of a larger array.
TEST(Primitives, blocks_of_a_product_stay_in_their_rows_and_columns) {
    struct Sizes {
        std::int64_t rows, inner, columns;
    };
    const int threads = cpu_threads();
    for (const auto& [rows, inner, columns] : {Sizes{700, 70, 90}, {90, 70, 700}, {300, 90, 300}, {97, 1000, 101}}) {
        const std::vector<float> a = random_floats(static_cast<std::size_t>(rows * inner));
        const std::vector<float> b = random_floats(static_cast<std::size_t>(inner * columns));
        std::vector<std::vector<float>> results;
        for (const int count : {1, 2, 3, 4, 8}) {
            set_cpu_threads(count);
            constexpr float kUntouched = -7777.0f;
            const std::int64_t height = 2 * rows, width = 2 * columns;
            Array around = array_of(
                f32_type(), std::vector<float>(static_cast<std::size_t>(height * width), kUntouched), {height, width});
            const Array middle = slice(slice(around, 0, rows / 2, rows, 1), 1, columns / 2, columns, 1);
            primitives().matmul(array_of(f32_type(), a, {rows, inner}), array_of(f32_type(), b, {inner, columns}),
                                nullptr, middle, 1.0, 0.0, MatmulPrecision::exact);
            const std::vector<float> all = values_of<float>(around);
            results.emplace_back();
            for (std::int64_t i = 0; i < height; ++i) {
                for (std::int64_t j = 0; j < width; ++j) {
                    const float found = all[static_cast<std::size_t>(i * width + j)];
                    const bool is_inside =
                        i >= rows / 2 && i < rows / 2 + rows && j >= columns / 2 && j < columns / 2 + columns;
                    if (is_inside)
                        results.back().push_back(found);
                    else
                        ASSERT_EQ(found, kUntouched) << i << ' ' << j << " by " << count << " threads";
                }
            }
        }
        set_cpu_threads(threads);
        for (std::int64_t i = 0; i < rows; i += 11) {
            for (std::int64_t j = 0; j < columns; j += 7) {
                double expected = 0.0;
                for (std::int64_t k = 0; k < inner; ++k)
                    expected += static_cast<double>(a[static_cast<std::size_t>(i * inner + k)]) *
                                b[static_cast<std::size_t>(k * columns + j)];
                for (const std::vector<float>& result : results)
                    EXPECT_NEAR(result[static_cast<std::size_t>(i * columns + j)], expected, 1e-3) << i << ' ' << j;
            }
        }
    }
}

TEST(Primitives, adds_along_any_strides) {
    std::vector<float> a = random_floats(6), b = random_floats(12);
    Array into = array_of(f32_type(), a, {2, 3}), wide = array_of(f32_type(), b, {3, 4});
    const int turned[] = {1, 0};
    Array what = slice(transpose(wide, turned), 0, 3, 2, -2);  // columns 3 and 1
    primitives().add(into, what);
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 3; ++j)
            EXPECT_EQ(values_of<float>(into)[i * 3 + j], a[i * 3 + j] + b[j * 4 + 3 - 2 * i]);
}

TEST(Primitives, adds_on_many_threads) {
    constexpr std::int64_t kCount = 1 << 20;
    Array into = array_of(f64_type(), std::vector<double>(kCount, 1.0)),
          what = empty(f64_type(), Shape{kCount}, device("cpu"));
    std::iota(static_cast<double*>(what.view.data), static_cast<double*>(what.view.data) + kCount, 0.0);
    primitives().add(into, what);
    std::vector<double> expected(kCount);
    std::iota(expected.begin(), expected.end(), 1.0);
    EXPECT_EQ(values_of<double>(into), expected);
}

TEST(Primitives, an_element_that_is_shown_often_gets_all_that_is_added) {
    Array into = array_of(f64_type(), std::vector<double>{10.0, 20.0});
    Array shown = into;
    shown.ndim = 2;
    constexpr std::int64_t kRows = 100'000;  // more than one thread would take
    shown.view.shape[0] = kRows;
    shown.view.shape[1] = 2;
    shown.view.strides[0] = 0;
    shown.view.strides[1] = 8;
    Array what = array_of(f64_type(), std::vector<double>(2 * kRows, 0.5), {kRows, 2});
    primitives().add(shown, what);
    EXPECT_EQ(values_of<double>(into), (std::vector<double>{10.0 + kRows / 2, 20.0 + kRows / 2}));
}

TEST(Primitives, adds_the_floats_of_structs_and_rounds_halves_once) {
    const Type type = Type::structure(
        "Body", "Body",
        {{"id", i32_type()}, {"weight", Type::scalar(Scalar::f16)}, {"at", Type::vector(Scalar::f64, 2)}});
    struct Body {
        std::int32_t id;
        std::uint16_t weight;
        double at[2];
    };
    ASSERT_EQ(type.size_bytes(), static_cast<std::int64_t>(sizeof(Body)));
    constexpr std::uint16_t kOne = 0x3c00, kStep = 0x1400;  // 1 and 2^-10, one unit in the last place of it
    Array into = array_of(type, std::vector<Body>{{7, kOne, {1.0, 2.0}}}),
          what = array_of(type, std::vector<Body>{{5, kStep, {0.25, -3.0}}});
    primitives().add(into, what);
    const Body found = *static_cast<const Body*>(into.view.data);
    EXPECT_EQ(found.id, 7);
    EXPECT_EQ(found.weight, 0x3c01);
    EXPECT_EQ(found.at[0], 1.25);
    EXPECT_EQ(found.at[1], -1.0);
}

}  // namespace
}  // namespace weft::runtime
