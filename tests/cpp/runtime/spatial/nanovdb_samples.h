// Grids made by NanoVDB itself (Debian: libnanovdb-dev), with which our reading and writing of them is compared.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wclass-memaccess"
#define NANOVDB_USE_ZIP
#define NANOVDB_USE_BLOSC
#include <nanovdb/NanoVDB.h>
#include <nanovdb/util/GridBuilder.h>
#include <nanovdb/util/IO.h>
#include <nanovdb/util/Primitives.h>
#pragma GCC diagnostic pop

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "devlib/spatial/volume.h"
#include "runtime/array.h"
#include "runtime/bytes.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::nanovdb::samples {

namespace theirs = ::nanovdb;

// A value that tells where it stands.
template <typename T>
T value_at(int i, int j, int k) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(i * 1000 + j * 100 + k);
    else if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(std::sin(0.3 * i) + 0.1 * j - 0.05 * k);
    else {
        T result;
        for (int n = 0; n < T::SIZE; ++n) result[n] = static_cast<typename T::ValueType>(i + 10 * j + 100 * k + n);
        return result;
    }
}

// Two thirds of a box around the origin, and a few voxels far away.
inline const std::vector<theirs::Coord>& voxels() {
    static const std::vector<theirs::Coord> all = [] {
        std::vector<theirs::Coord> result;
        for (int i = -3; i < 14; ++i)
            for (int j = 0; j < 10; ++j)
                for (int k = -9; k < 9; ++k)
                    if ((i + j + k) % 3 != 0) result.emplace_back(i, j, k);
        for (const auto& far :
             {theirs::Coord(5000, -3, 7), theirs::Coord(-4096, 4095, -4097), theirs::Coord(131, 7, 8)})
            result.push_back(far);
        return result;
    }();
    return all;
}

template <typename T, typename Stored = T>
theirs::GridHandle<> sample(const std::string& name, T background) {
    theirs::GridBuilder<T, Stored> builder(background);
    auto accessor = builder.getAccessor();
    for (const theirs::Coord& at : voxels()) accessor.setValue(at, value_at<T>(at[0], at[1], at[2]));
    return builder.getHandle(0.5, theirs::Vec3d(1, 2, 3), name);
}

// Places around the voxels, in other leaves, nodes and tiles, and at the ends of the numbers.
inline std::vector<theirs::Coord> places(int count) {
    std::mt19937 random(5);
    const auto below = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    std::vector<theirs::Coord> result{
        {INT32_MAX, INT32_MAX, INT32_MAX}, {INT32_MIN, INT32_MIN, INT32_MIN}, {INT32_MIN, 0, INT32_MAX}};
    for (int n = 0; n < count; ++n) {
        const theirs::Coord from = n % 7 == 0 ? voxels()[voxels().size() - 1 - n % 3] : theirs::Coord(0);
        const int reach = n % 5 == 0 ? 5000 : n % 5 == 1 ? 150 : 16;
        result.push_back(from + theirs::Coord(below(-reach, reach), below(-reach, reach), below(-reach, reach)));
    }
    return result;
}

// The bytes of a grid in memory of their own, whose ends a sanitizer knows.
inline Array bytes_of(const void* data, std::uint64_t size) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(size)};
    const Array result = empty(Type::scalar(Scalar::u8), shape, host_device());
    std::memcpy(host_data(result), data, size);
    return result;
}
inline Array bytes_of(const theirs::GridHandle<>& grid) { return bytes_of(grid.data(), grid.size()); }
inline std::span<std::byte> span_of(const Array& array) {
    return {host_data(array), static_cast<std::size_t>(array.size())};
}

// The numbers of a value.
template <typename T>
auto numbers_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        return std::vector<T>{value};
    else {
        std::vector<typename T::ValueType> result;
        for (int n = 0; n < T::SIZE; ++n) result.push_back(value[n]);
        return result;
    }
}

}  // namespace weft::runtime::nanovdb::samples
