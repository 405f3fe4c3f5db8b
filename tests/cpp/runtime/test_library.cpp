// The library's code for the levels of processors: every function is there for each, and the best one is chosen.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "devlib/spatial/layout.h"
#include "runtime/cpu/library.h"
#include "runtime/cpu/symbols.h"

namespace weft::runtime {
namespace {

TEST(Library, has_every_function_for_each_level) {
    std::set<std::string> names;
    std::set<void*> addresses;
    ASSERT_FALSE(library_rows().empty());
    for (const LibraryRow& row : library_rows()) {
        EXPECT_TRUE(std::string(row.name).starts_with("weft_lib_")) << row.name;
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        for (std::size_t level = 0; level < library_levels().size(); ++level) {
            ASSERT_NE(row.addresses[level], nullptr) << row.name;
            EXPECT_TRUE(addresses.insert(row.addresses[level]).second) << row.name;
        }
    }
}

TEST(Library, is_what_compiled_kernels_find_by_name) {
    const int best = best_library_level();
    ASSERT_LT(best, static_cast<int>(library_levels().size()));
    for (const LibraryRow& row : library_rows()) {
        EXPECT_EQ(find_symbol(row.name), row.addresses[best]);
        EXPECT_EQ(find_library_function(row.name, 0), row.addresses[0]);
    }
    EXPECT_EQ(find_symbol("weft_lib_nothing"), nullptr);
}

TEST(Library, runs_at_every_level_of_this_processor_and_leaves_lanes_that_are_off) {
    using Function = void(std::int32_t*, const std::uint64_t*, const float*, const float*, const float*,
                          const std::int32_t*, std::uint64_t, std::int32_t);
    const devlib::MeshDescriptor<float> empty;
    for (int level = 0; level <= best_library_level(); ++level) {
        auto* const nearest =
            reinterpret_cast<Function*>(find_library_function("weft_lib_mesh_ray_nearest_f32", level));
        ASSERT_NE(nearest, nullptr);
        const std::uint64_t mesh[2] = {reinterpret_cast<std::uint64_t>(&empty), 1};
        const float start[6] = {}, direction[6] = {1, 1, 0, 0, 0, 0}, limit[2] = {1, 1};
        const std::int32_t root[2] = {-1, -1};
        std::int32_t face[2] = {7, 7};
        nearest(face, mesh, start, direction, limit, root, 1, 2);
        EXPECT_EQ(face[0], -1);
        EXPECT_EQ(face[1], 7);
    }
}

}  // namespace
}  // namespace weft::runtime
