// The facts that launches need about the memory of their arguments, compared byte by byte.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "program/kernel/launch_layout.h"

namespace weft::program {
namespace {

constexpr int kBytes = 512;
std::byte memory[kBytes];

// A kernel that takes arrays by themselves and in structs, in structs of structs too; and the arguments of a launch.
class Launched {
public:
    Launched(const std::vector<Type>& types, const std::vector<bool>& written) {
        std::vector<ParameterEffects> effects;
        for (const bool writes : written) effects.push_back({.writes = writes});
        kernel = KernelFacts(types, std::move(effects));
        block.resize(static_cast<std::size_t>(kernel.layout.size_bytes));
    }
    ArrayView& view(std::size_t i) { return *reinterpret_cast<ArrayView*>(block.data() + kernel.arrays[i].offset); }
    bool writes(std::size_t i) const {
        return kernel.effects[static_cast<std::size_t>(kernel.arrays[i].parameter)].writes;
    }

    KernelFacts kernel;
    std::vector<std::byte> block;
};

Type floats() { return Type::array(f32_type(), 1); }

Type pair_of(const std::string& name, Type first, Type second) {
    return Type::structure(name, name, {{"first", first, 0}, {"second", second, 0}});
}

ArrayView view_of(int begin, int count, int stride) {
    ArrayView view;
    view.data = memory + begin;
    view.shape[0] = count;
    view.strides[0] = stride;
    return view;
}

// Extents decide: the gaps of a strided array count as shown.
Extent whole(const ArrayView& view) { return extent(view, KernelFacts({floats()}, {{}}).arrays.front()); }

bool share(const Extent& a, const Extent& b) {
    for (const std::byte* at = a.begin; at < a.end; ++at)
        if (at >= b.begin && at < b.end) return true;
    return false;
}

ArrayView random_view(std::mt19937& random, int room) {
    const int count = std::uniform_int_distribution(0, 3)(random);
    const int stride = 4 * std::uniform_int_distribution(-2, 2)(random);
    const int begin = std::uniform_int_distribution(8, room / 4 - 8)(random) * 4;
    if (count == 0 && begin % 8 == 0) return {};
    return view_of(begin, count, stride);
}

TEST(LaunchLayout, places_of_arrays_are_those_in_structs_too) {
    const Type inner = pair_of("Inner", floats(), i32_type());
    const Launched launched({i32_type(), floats(), pair_of("Outer", inner, floats()), floats()}, {});
    ASSERT_EQ(launched.kernel.arrays.size(), 4U);
    const std::vector<int> parameters = {1, 2, 2, 3};
    for (std::size_t i = 0; i < 4; ++i) {
        const BlockArray& place = launched.kernel.arrays[i];
        EXPECT_EQ(place.parameter, parameters[i]);
        EXPECT_EQ(place.type, floats());
        EXPECT_GE(place.offset, launched.kernel.layout.offsets[static_cast<std::size_t>(place.parameter)]);
        if (i == 0) continue;
        EXPECT_GE(place.offset, launched.kernel.arrays[i - 1].offset + std::int64_t{sizeof(ArrayView)});
    }
}

TEST(LaunchLayout, arrays_share_memory_where_some_pair_with_a_written_one_does) {
    std::mt19937 random(7);
    const Type inner = pair_of("Inner", floats(), i32_type());
    const Type kinds[] = {floats(), pair_of("Two", floats(), floats()), pair_of("Deep", inner, floats())};
    int met = 0, with_many = 0;
    constexpr int kLaunches = 20000;
    for (int launch = 0; launch < kLaunches; ++launch) {
        std::vector<Type> types;
        std::vector<bool> written;
        const int count = std::uniform_int_distribution(1, launch % 2 ? 4 : 14)(random);
        for (int i = 0; i < count; ++i) {
            types.push_back(kinds[std::uniform_int_distribution(0, 2)(random)]);
            written.push_back(std::bernoulli_distribution(0.3)(random));
        }
        Launched launched(types, written);
        const std::size_t arrays = launched.kernel.arrays.size();
        for (std::size_t i = 0; i < arrays; ++i) launched.view(i) = random_view(random, kBytes);
        bool expected = false;
        for (std::size_t a = 0; a < arrays; ++a)
            for (std::size_t b = 0; b < a; ++b)
                expected |= (launched.writes(a) || launched.writes(b)) &&
                            share(whole(launched.view(a)), whole(launched.view(b)));
        ASSERT_EQ(!launch_layout(launched.kernel, launched.block.data()).noalias, expected) << "launch " << launch;
        met += expected;
        with_many += arrays > 16;
    }
    EXPECT_GT(met, kLaunches / 5);
    EXPECT_LT(met, kLaunches * 4 / 5);
    EXPECT_GT(with_many, kLaunches / 10);
}

TEST(LaunchLayout, gradients_share_memory_with_nothing) {
    std::mt19937 random(8);
    const Type kinds[] = {floats(), pair_of("Two", floats(), floats())};
    int met = 0;
    constexpr int kLaunches = 20000;
    for (int launch = 0; launch < kLaunches; ++launch) {
        std::vector<Type> types;
        std::vector<bool> written;
        const int count = std::uniform_int_distribution(1, launch % 2 ? 2 : 9)(random);
        for (int i = 0; i < count; ++i) {
            types.push_back(kinds[std::uniform_int_distribution(0, 1)(random)]);
            written.push_back(std::bernoulli_distribution(0.2)(random));
        }
        Launched launched(types, written);
        std::vector<std::pair<Extent, bool>> touched;  // and whether that changes it
        bool expected = false;
        for (std::size_t i = 0; i < launched.kernel.arrays.size(); ++i) {
            ArrayView& view = launched.view(i) = random_view(random, kBytes);
            touched.emplace_back(whole(view), launched.writes(i));
            if (!std::bernoulli_distribution(0.4)(random)) continue;
            const int begin = std::uniform_int_distribution(8, kBytes / 4 - 8)(random) * 4;
            view.grad = memory + begin;
            ArrayView gradient = view;
            gradient.data = view.grad;
            touched.emplace_back(whole(gradient), true);
            expected |= view.shape[0] > 1 && view.strides[0] == 0;  // shows one element several times
        }
        for (std::size_t a = 0; a < touched.size(); ++a)
            for (std::size_t b = 0; b < a; ++b)
                expected |= (touched[a].second || touched[b].second) && share(touched[a].first, touched[b].first);
        ASSERT_EQ(!launch_layout(launched.kernel, launched.block.data(), /*with_gradients=*/true).noalias, expected)
            << "launch " << launch;
        met += expected;
    }
    EXPECT_GT(met, kLaunches / 5);
    EXPECT_LT(met, kLaunches * 4 / 5);
}

// Memory that an adjoint gets besides the arguments (copies, arrays as they are after the launch) is apart.
TEST(LaunchLayout, extras_behind_the_arguments_are_not_looked_at) {
    Launched launched({floats(), floats()}, {true});
    launched.view(0) = launched.view(1) = view_of(64, 4, 4);
    EXPECT_TRUE(launch_layout(launched.kernel, launched.block.data()).noalias);
    EXPECT_TRUE(launch_layout(launched.kernel, launched.block.data(), /*with_gradients=*/true).noalias);
    launched.kernel.effects.push_back({});
    EXPECT_FALSE(launch_layout(launched.kernel, launched.block.data()).noalias);
}

}  // namespace
}  // namespace weft::program
