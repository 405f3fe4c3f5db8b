// The groups of the table, in the order of the reference. A new group is a file, a line here and one in registry.cpp.
#pragma once

#include "builtins/entry.h"

namespace weft::builtins {

std::span<const Entry> scalar_entries();
std::span<const Entry> vector_entries();
std::span<const Entry> matrix_entries();
std::span<const Entry> decomposition_entries();
std::span<const Entry> quaternion_entries();
std::span<const Entry> transform_entries();
std::span<const Entry> spatial_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> random_entries();
std::span<const Entry> noise_entries();
std::span<const Entry> geometry_entries();
std::span<const Entry> bvh_entries();
std::span<const Entry> mesh_entries();
std::span<const Entry> hash_grid_entries();
std::span<const Entry> volume_entries();
std::span<const Entry> texture_entries();
std::span<const Entry> atomic_entries();
std::span<const Entry> tile_entries();
std::span<const Entry> utility_entries();
std::span<const Entry> operator_entries();

}  // namespace weft::builtins
