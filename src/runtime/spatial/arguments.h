// Checks of the arrays of BVHs and meshes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "devlib/spatial/layout.h"
#include "runtime/array.h"
#include "runtime/spatial/tree.h"

namespace weft::runtime::spatial {

// One dimension, contiguous, vec3f or vec3d, on a CPU. Throws UsageError in the name of `api`.
void require_points(const Array& array, std::string_view name, std::string_view api);
// Also requires the length, type and device of another array.
void require_like(const Array& array, std::string_view name, const Array& other, std::string_view other_name,
                  std::string_view api);
// One dimension, contiguous, int32.
void require_integers(const Array& array, std::string_view name, const Array& other, std::string_view other_name,
                      std::string_view api);
// A group number for each of `count` items; empty if there are no groups.
std::vector<std::int32_t> read_groups(const std::optional<Array>& groups, std::int64_t count, const Array& other,
                                      std::string_view other_name, std::string_view api);

// An array in the host's memory, in the form that the builders read.
template <typename T>
Points<T> points_of(const Array& array) {
    return {static_cast<const std::byte*>(array.view.data), array.view.strides[0]};
}
devlib::ArrayFields fields_of(const Array& array);
devlib::ArrayFields fields_of(const ArrayView& view);

}  // namespace weft::runtime::spatial
