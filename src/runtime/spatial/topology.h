// The structure of a tree: wide nodes over boxes, without geometry. tree.h adds the boxes.
//
// The builder goes from the top down. A node begins as one range of items; its largest range is split in two until
// there are kWidth ranges, or all are leaves. The method decides how a range is split:
//
//   sah     binned surface area heuristic: the cheapest of 16 planes for each axis. The best trees.
//   linear  items are sorted along a Morton curve of 63 bits and split where the highest bit changes. The fastest.
//   median  halves along the longest axis.
//
// Large ranges are split by all threads together; ranges of some thousand items become subtrees, each built by one
// thread. The tree does not depend on the number of threads. A tree is never deeper than kMostLevels: near that, ranges
// are halved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "devlib/spatial/layout.h"
#include "devlib/spatial/refit.h"
#include "runtime/spatial/build_item.h"
#include "runtime/spatial/tree_buffer.h"

namespace weft::runtime::spatial {

struct TreeLeaf {
    std::int32_t begin;  // in Topology::order
    std::int32_t count;
};

struct TreeNode {
    std::int32_t child[devlib::kWidth];  // as in devlib::Node
    std::int32_t parent;
    std::int32_t slot;
    std::int32_t count;
};

// A node of the tree with empty boxes.
template <typename T>
devlib::Node<T> without_boxes(const TreeNode& from) {
    devlib::Node<T> node;
    node.parent = from.parent, node.slot = from.slot, node.count = from.count;
    for (int slot = 0; slot < devlib::kWidth; ++slot) {
        node.child[slot] = slot < from.count ? from.child[slot] : -1;
        devlib::set_empty(node.bounds, slot);
    }
    return node;
}

// Nodes [begin, end) that one thread can fill by itself. Their leaves are contiguous too.
struct SubtreeRange {
    std::int32_t node_begin, node_end;
};

struct Topology {
    std::vector<TreeNode> nodes;
    std::vector<TreeLeaf> leaves;
    std::vector<std::int32_t> order;  // numbers of items
    std::vector<SubtreeRange> parts;  // the nodes after the top nodes
    std::int32_t top_count = 0;       // number of nodes above all parts, which come first
    std::vector<std::int32_t> groups, group_roots;
};

// Consumes `items`. Their groups are used if `has_groups`.
template <typename T>
Topology build_topology(TreeBuffer<BuildItem<T>> items, const TreeOptions& options, bool has_groups);

}  // namespace weft::runtime::spatial
