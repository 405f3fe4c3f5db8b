#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "runtime/spatial/packed_topology.h"

namespace weft::runtime::spatial {

namespace {

// Calls visit(begin, end) for the leaves below a node, from the first slot on.
void visit_leaves(const Topology& tree, std::int32_t number, const std::function<void(TreeLeaf)>& visit) {
    const TreeNode& node = tree.nodes[static_cast<std::size_t>(number)];
    for (int slot = 0; slot < node.count; ++slot) {
        const std::int32_t child = node.child[slot];
        if (child < 0) {
            visit(tree.leaves[static_cast<std::size_t>(-1 - child)]);
            continue;
        }
        ASSERT_GT(child, number);
        ASSERT_EQ(tree.nodes[static_cast<std::size_t>(child)].parent, number);
        ASSERT_EQ(tree.nodes[static_cast<std::size_t>(child)].slot, slot);
        visit_leaves(tree, child, visit);
    }
}

TEST(PackedTopology, LeavesOfEachGroupAreItsItemsInOrder) {
    const std::vector<std::vector<std::int64_t>> all = {
        {1}, {8}, {9}, {64}, {65}, {513}, {1, 1}, {5, 8, 3}, {100, 1, 64}, std::vector<std::int64_t>(20, 7)};
    for (const std::vector<std::int64_t>& counts : all)
        for (const int size : {1, 3, 8, 20}) {
            const Topology tree = packed_topology(counts, size);
            ASSERT_EQ(tree.group_roots.size(), counts.size());
            EXPECT_EQ(tree.nodes[0].parent, -1);
            std::int32_t begin = 0;
            for (std::size_t group = 0; group < counts.size(); ++group) {
                const std::int32_t end = begin + static_cast<std::int32_t>(counts[group]);
                std::int32_t at = begin;
                visit_leaves(tree, tree.group_roots[group], [&](TreeLeaf leaf) {
                    EXPECT_EQ(leaf.begin, at);
                    EXPECT_GE(leaf.count, 1);
                    EXPECT_LE(leaf.count, size < 8 ? size : 8);
                    at += leaf.count;
                });
                EXPECT_EQ(at, end);
                begin = end;
            }
            std::multiset<std::int32_t> found;
            visit_leaves(tree, 0, [&](TreeLeaf leaf) { found.insert(leaf.begin); });
            EXPECT_EQ(found.size(), tree.leaves.size());
            EXPECT_EQ(std::set(found.begin(), found.end()).size(), tree.leaves.size());
        }
}

TEST(PackedTopology, NothingHasNoNodes) {
    const Topology tree = packed_topology({}, 8);
    EXPECT_TRUE(tree.nodes.empty());
    EXPECT_TRUE(tree.leaves.empty());
}

}  // namespace

}  // namespace weft::runtime::spatial
