// Trees (tree.h) in the memory of a device with geometry of its own. The device builds packed trees
// (packed_topology.h); others are built on the host. The device refits all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "devlib/spatial/layout.h"
#include "runtime/array.h"
#include "runtime/bytes.h"
#include "runtime/spatial/device_geometry.h"
#include "runtime/spatial/topology.h"

namespace weft::runtime::spatial {

// Memory of a device with these bytes of the host's.
BufferPtr upload(Device& device, const void* from, std::int64_t size_bytes);

// Copies the box of a tree between descriptors on the device.
template <typename T>
void copy_box(Device& device, devlib::Tree<T>& to, const devlib::Tree<T>& from) {
    static_assert(offsetof(devlib::Tree<T>, upper) == offsetof(devlib::Tree<T>, lower) + sizeof from.lower);
    copy_bytes(device, &to.lower, &from.lower, sizeof from.lower + sizeof from.upper);
}

// The items of a packed tree, in the memory of its device.
struct DeviceItems {
    std::int64_t count = 0;
    const std::int32_t* indices = nullptr;  // three points of each triangle; null for boxes
};

template <typename T, template <typename> typename Block>
class DeviceTree {
public:
    // Copies a tree of the host's. `corners` is that of a TriangleTree; empty for boxes.
    DeviceTree(Device& device, const devlib::Tree<T>& from, std::int64_t blocks, std::span<const std::int32_t> corners);
    // A packed tree, to be filled by rebuild(). `groups` has the number of each item's group, on the host; empty if
    // there are none.
    DeviceTree(Device& device, const DeviceItems& items, std::span<const std::int32_t> groups, int leaf_size,
               bool with_moments);
    // With memory of its own for all that a refit changes.
    DeviceTree(const DeviceTree& of);
    DeviceTree& operator=(const DeviceTree&) = delete;

    // As the host's trees do, with the items' present numbers: points, or both corners of boxes. `described` are
    // descriptors of this tree on the device; null for none.
    void refit(const void* first, const void* second, std::array<devlib::Tree<T>*, 2> described);
    // Sorts the items of a packed tree anew, in the same memory.
    void rebuild(const void* first, const void* second, std::array<devlib::Tree<T>*, 2> described);
    bool is_packed() const { return is_packed_; }

    // Its addresses are the device's.
    const devlib::Tree<T>& tree() const { return tree_; }

private:
    // Uploads the nodes, and the order in which refits visit them.
    void set_nodes(std::span<const devlib::Node<T>> nodes);
    void update_descriptor();  // tree_ describes the present memory

    Device& device_;
    std::int64_t blocks_count_ = 0;
    BufferPtr nodes_, blocks_, moments_, corners_;
    BufferPtr groups_, group_roots_, item_groups_, places_, by_level_, leaf_ends_, runs_;  // never written again
    DeviceItems items_;
    bool is_packed_ = false;
    std::vector<std::int64_t> level_ends_;
    devlib::Tree<T> tree_;
};

}  // namespace weft::runtime::spatial
