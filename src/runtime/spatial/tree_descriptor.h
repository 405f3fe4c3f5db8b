// The descriptor of a tree (devlib/spatial/layout.h), in the host's memory or a device's.
#pragma once

#include <cstdint>
#include <type_traits>

#include "devlib/spatial/layout.h"

namespace weft::runtime::spatial {

// Sets the addresses of a tree's parts. Block is devlib::BoxBlock or devlib::TriangleBlock; the blocks of the other
// kind stay null.
template <typename T, template <typename> typename Block>
void set_addresses(devlib::Tree<T>& tree, const devlib::Node<T>* nodes, const Block<T>* blocks,
                   const std::int32_t* groups, const std::int32_t* group_roots) {
    tree.nodes = nodes;
    if constexpr (std::is_same_v<Block<T>, devlib::BoxBlock<T>>)
        tree.boxes = blocks;
    else
        tree.triangles = blocks;
    tree.groups = groups;
    tree.group_roots = group_roots;
}

}  // namespace weft::runtime::spatial
