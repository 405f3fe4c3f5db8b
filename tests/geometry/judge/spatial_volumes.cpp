// Grids made and sampled by NanoVDB itself (Debian: libnanovdb-dev), as a library for test_judge_volumes.py.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wclass-memaccess"
#include <nanovdb/NanoVDB.h>
#include <nanovdb/util/GridBuilder.h>
#include <nanovdb/util/SampleFromVoxels.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace {

using namespace nanovdb;

template <typename T>
T value_of(const double* numbers) {
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<T>(numbers[0]);
    else {
        T value;
        for (int n = 0; n < T::SIZE; ++n) value[n] = static_cast<typename T::ValueType>(numbers[n]);
        return value;
    }
}

template <typename T>
int numbers_in() {
    if constexpr (std::is_arithmetic_v<T>)
        return 1;
    else
        return T::SIZE;
}

// Places of numbers R. `cubic` is left alone if values are vectors.
template <typename BuildT, typename R>
void sample(std::int64_t count, const void* bytes, const R* place, void* nearest, void* linear, void* cubic) {
    using T = typename BuildToValueMap<BuildT>::Type;
    const auto* grid = reinterpret_cast<const NanoGrid<BuildT>*>(bytes);
    const auto accessor = grid->getAccessor();
    const auto zero = createSampler<0, std::decay_t<decltype(accessor)>, false>(accessor);
    const auto one = createSampler<1, std::decay_t<decltype(accessor)>, false>(accessor);
    for (std::int64_t i = 0; i < count; ++i) {
        const Vec3<R> at(place[3 * i], place[3 * i + 1], place[3 * i + 2]);
        static_cast<T*>(nearest)[i] = zero(at);
        static_cast<T*>(linear)[i] = one(at);
        if constexpr (std::is_floating_point_v<T>) {
            const auto three = createSampler<3, std::decay_t<decltype(accessor)>, false>(accessor);
            static_cast<T*>(cubic)[i] = three(at);
        }
    }
}

// The bytes needed for a grid with values (count, components) at voxels (count, 3); written to `out` if they fit.
template <typename BuildT>
std::int64_t make(std::int64_t count, const std::int32_t* voxel, const double* value, const double* background,
                  void* out, std::int64_t room) {
    using T = typename BuildToValueMap<BuildT>::Type;
    const int components = numbers_in<T>();
    GridBuilder<T, BuildT> builder(value_of<T>(background));
    auto accessor = builder.getAccessor();
    for (std::int64_t i = 0; i < count; ++i)
        accessor.setValue(Coord(voxel[3 * i], voxel[3 * i + 1], voxel[3 * i + 2]), value_of<T>(value + components * i));
    const auto handle = builder.getHandle(0.5, Vec3d(1, 2, 3), "judge");
    const auto bytes = static_cast<std::int64_t>(handle.size());
    if (bytes <= room) std::memcpy(out, handle.data(), handle.size());
    return bytes;
}

}  // namespace

#define JUDGE_TYPE(name, BuildT)                                                                            \
    extern "C" std::int64_t make_##name(std::int64_t count, const std::int32_t* voxel, const double* value, \
                                        const double* background, void* out, std::int64_t room) {           \
        return make<BuildT>(count, voxel, value, background, out, room);                                    \
    }                                                                                                       \
    extern "C" void sample_##name(std::int64_t count, const void* grid, int is_double, const void* place,   \
                                  void* nearest, void* linear, void* cubic) {                               \
        if (is_double)                                                                                      \
            sample<BuildT>(count, grid, static_cast<const double*>(place), nearest, linear, cubic);         \
        else                                                                                                \
            sample<BuildT>(count, grid, static_cast<const float*>(place), nearest, linear, cubic);          \
    }
JUDGE_TYPE(float, float)
JUDGE_TYPE(double, double)
JUDGE_TYPE(vec3f, Vec3f)
JUDGE_TYPE(vec3d, Vec3d)
JUDGE_TYPE(fp8, Fp8)
JUDGE_TYPE(fpn, FpN)
