// Trees (tree.h) in the memory of a device with geometry of its own. They are built on the host and refitted on the
// device.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "devlib/spatial/layout.h"
#include "runtime/array.h"
#include "runtime/spatial/device_geometry.h"

namespace weft::runtime::spatial {

// Memory of a device with these bytes of the host's.
BufferPtr upload(Device& device, const void* from, std::int64_t size_bytes);

template <typename T, template <typename> typename Block>
class DeviceTree {
public:
    // Copies a tree of the host's. `corners` is that of a TriangleTree; empty for boxes.
    DeviceTree(Device& device, const devlib::Tree<T>& from, std::int64_t blocks, std::span<const std::int32_t> corners);
    // With memory of its own for all that a refit changes.
    DeviceTree(const DeviceTree& of);
    DeviceTree& operator=(const DeviceTree&) = delete;

    // As the host's trees do, with the items' present numbers: points, or both corners of boxes. `described` are
    // descriptors of this tree on the device; null for none.
    void refit(const void* first, const void* second, std::array<devlib::Tree<T>*, 2> described);

    // Its addresses are the device's.
    const devlib::Tree<T>& tree() const { return tree_; }

private:
    void show();

    Device& device_;
    std::int64_t blocks_count_ = 0;
    BufferPtr nodes_, blocks_, moments_;
    BufferPtr corners_, groups_, group_roots_, places_, by_level_;  // never written again
    std::vector<std::int64_t> level_ends_;
    devlib::Tree<T> tree_;
};

}  // namespace weft::runtime::spatial
