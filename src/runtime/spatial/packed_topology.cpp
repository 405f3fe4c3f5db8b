#include "runtime/spatial/packed_topology.h"

#include <algorithm>
#include <vector>

namespace weft::runtime::spatial {

using devlib::kWidth;

namespace {

// Nodes in the order in which they are made, from the leaves up: the reverse of their numbers.
class Packer {
public:
    // Nodes over these children, and over these nodes, up to one. Returns it.
    std::int32_t pack(std::vector<std::int32_t> children) {
        do {
            std::vector<std::int32_t> above;
            for (std::size_t first = 0; first < children.size(); first += kWidth)
                above.push_back(add(std::span(children).subspan(first, std::min(children.size() - first, kMost))));
            children = std::move(above);
        } while (children.size() > 1);
        return children[0];
    }

    std::int32_t number_of(std::int32_t made) const { return static_cast<std::int32_t>(made_.size()) - 1 - made; }

    std::vector<TreeNode> finish() const {
        std::vector<TreeNode> nodes(made_.rbegin(), made_.rend());
        for (TreeNode& node : nodes) {
            if (node.parent >= 0) node.parent = number_of(node.parent);
            for (std::int32_t& child : std::span(node.child).first(static_cast<std::size_t>(node.count)))
                if (child >= 0) child = number_of(child);
        }
        return nodes;
    }

private:
    static constexpr std::size_t kMost = kWidth;

    std::int32_t add(std::span<const std::int32_t> children) {
        const auto made = static_cast<std::int32_t>(made_.size());
        TreeNode& node = made_.emplace_back();
        node.parent = -1, node.slot = 0, node.count = static_cast<std::int32_t>(children.size());
        for (std::size_t slot = 0; slot < children.size(); ++slot) {
            node.child[slot] = children[slot];
            if (children[slot] < 0) continue;
            TreeNode& child = made_[static_cast<std::size_t>(children[slot])];
            child.parent = made, child.slot = static_cast<std::int32_t>(slot);
        }
        return made;
    }

    std::vector<TreeNode> made_;
};

}  // namespace

Topology packed_topology(std::span<const std::int64_t> counts, int leaf_size) {
    Topology made;
    Packer packer;
    const std::int64_t size = std::clamp(leaf_size, 1, kWidth);
    std::int64_t begin = 0;
    std::vector<std::int32_t> roots;
    for (const std::int64_t count : counts) {
        std::vector<std::int32_t> leaves;
        for (std::int64_t first = 0; first < count; first += size) {
            leaves.push_back(-1 - static_cast<std::int32_t>(made.leaves.size()));
            made.leaves.push_back(
                {static_cast<std::int32_t>(begin + first), static_cast<std::int32_t>(std::min(size, count - first))});
        }
        roots.push_back(packer.pack(std::move(leaves)));
        begin += count;
    }
    if (roots.empty()) return made;
    if (roots.size() > 1) packer.pack(roots);
    for (const std::int32_t root : roots) made.group_roots.push_back(packer.number_of(root));
    made.nodes = packer.finish();
    return made;
}

}  // namespace weft::runtime::spatial
