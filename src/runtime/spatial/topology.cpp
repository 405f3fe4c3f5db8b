// I. Wald, On fast Construction of SAH-based Bounding Volume Hierarchies (2007), for the bins; C. Lauterbach et al.,
// Fast BVH Construction on GPUs (2009), for the curve. We build wide nodes without a binary tree in between.
#include "runtime/spatial/topology.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>

#include "runtime/spatial/parallel.h"
#include "runtime/spatial/split.h"

namespace weft::runtime::spatial {

namespace {

using devlib::kWidth;

// A subtree that one thread builds, over at most Splitter::part_size() items.
struct Subtree {
    std::int32_t root;  // in the encoding of a node's child; numbers are relative to the part
    std::vector<TreeNode> nodes;
    std::vector<TreeLeaf> leaves;
};

// A child of a top node: a top node, or -1 minus the number of a part.
struct TopNode {
    std::vector<std::int32_t> children;
};

template <typename T>
class TopologyBuilder {
public:
    TopologyBuilder(TreeBuffer<BuildItem<T>> items, const TreeOptions& options)
        : splitter_(std::move(items), options), count_(splitter_.count()), leaf_size_(splitter_.leaf_size()) {}

    Topology build(bool has_groups) {
        Topology made;
        made.order.resize(static_cast<std::size_t>(count_));
        if (count_ == 0) return made;
        std::vector<std::int32_t> roots;
        if (has_groups) {
            std::vector<Range<T>> ranges = splitter_.group_ranges(made.groups);
            made.group_roots.resize(ranges.size());
            std::vector<std::int32_t> numbers(ranges.size());
            for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
            roots.resize(ranges.size());
            add_over_groups(ranges, numbers, roots);
        } else {
            add(splitter_.everything(), true);
        }
        build_parts(made.order);
        join(made);
        for (std::size_t i = 0; i < roots.size(); ++i) made.group_roots[i] = number_of(roots[i]);
        return made;
    }

private:
    struct Pending {
        Range<T> range;
        bool needs_node;  // also if a leaf would suffice
    };

    // Splits a range into the children of one node.
    int open(const Range<T>& range, Range<T> (&children)[kWidth]) {
        children[0] = range;
        int count = 1;
        while (count < kWidth) {
            int largest = -1;
            for (int i = 0; i < count; ++i)
                if (children[i].count() > leaf_size_ && (largest < 0 || children[i].weight > children[largest].weight))
                    largest = i;
            if (largest < 0) break;
            Range<T> first, second;
            splitter_.split(children[largest], first, second);
            children[largest] = first;
            children[count++] = second;
        }
        return count;
    }

    // Adds a range as a child of a top node.
    std::int32_t add(const Range<T>& range, bool needs_node) {
        if (range.count() <= splitter_.part_size()) {
            pending_.push_back({range, needs_node});
            return -static_cast<std::int32_t>(pending_.size());
        }
        const std::size_t number = tops_.size();
        tops_.emplace_back();
        Range<T> ranges[kWidth];
        const int count = open(range, ranges);
        for (int i = 0; i < count; ++i) {
            const std::int32_t child = add(ranges[i], false);
            tops_[number].children.push_back(child);
        }
        return static_cast<std::int32_t>(number);
    }

    // Adds nodes over the groups `numbers`, which are divided equally along the longest axis.
    std::int32_t add_over_groups(std::vector<Range<T>>& ranges, std::span<std::int32_t> numbers,
                                 std::vector<std::int32_t>& roots, int depth = 1) {
        const std::size_t number = tops_.size();
        tops_.emplace_back();
        const auto add_child = [&](std::int32_t child) { tops_[number].children.push_back(child); };
        if (numbers.size() > kWidth) {
            const int axis = splitter_.longest_axis(ranges, numbers);
            std::ranges::sort(numbers, {}, [&](std::int32_t g) {
                return std::pair(ranges[static_cast<std::size_t>(g)].bounds.centre(axis), g);
            });
        }
        const std::size_t pieces = std::min<std::size_t>(numbers.size(), kWidth);
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::size_t begin = numbers.size() * i / pieces, end = numbers.size() * (i + 1) / pieces;
            if (end - begin > 1) {
                add_child(add_over_groups(ranges, numbers.subspan(begin, end - begin), roots, depth + 1));
                continue;
            }
            const auto group = static_cast<std::size_t>(numbers[begin]);
            ranges[group].depth = depth;
            roots[group] = add(ranges[group], true);
            add_child(roots[group]);
        }
        return static_cast<std::int32_t>(number);
    }

    void build_parts(std::vector<std::int32_t>& order) {
        parts_.resize(pending_.size());
        for_ranges(static_cast<std::int64_t>(parts_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const Pending& pending = pending_[static_cast<std::size_t>(i)];
                Subtree& part = parts_[static_cast<std::size_t>(i)];
                const std::int32_t count = pending.range.count();
                part.leaves.reserve(static_cast<std::size_t>(count / 4 + 1));
                part.nodes.reserve(static_cast<std::size_t>(count / 16 + 1));
                if (count <= leaf_size_ && !pending.needs_node)
                    part.root = add_leaf(part, pending.range);
                else
                    part.root = add_node(part, pending.range, -1, 0);
                for (std::int32_t k = pending.range.begin; k < pending.range.end; ++k)
                    order[static_cast<std::size_t>(k)] = splitter_.item(pending.range, k);
            }
        });
    }

    static std::int32_t add_leaf(Subtree& part, const Range<T>& range) {
        part.leaves.push_back({range.begin, range.count()});
        return -static_cast<std::int32_t>(part.leaves.size());
    }

    std::int32_t add_node(Subtree& part, const Range<T>& range, std::int32_t parent, std::int32_t slot) {
        const auto number = static_cast<std::int32_t>(part.nodes.size());
        Range<T> ranges[kWidth];
        const int count = open(range, ranges);
        part.nodes.push_back({{}, parent, slot, count});
        for (int i = 0; i < count; ++i) {
            const std::int32_t child =
                ranges[i].count() <= leaf_size_ ? add_leaf(part, ranges[i]) : add_node(part, ranges[i], number, i);
            part.nodes[static_cast<std::size_t>(number)].child[i] = child;
        }
        return number;
    }

    // Joins the top nodes and then each part into one tree.
    void join(Topology& made) {
        const std::size_t count = parts_.size();
        node_offsets_.resize(count + 1);
        leaf_offsets_.resize(count + 1);
        node_offsets_[0] = static_cast<std::int32_t>(tops_.size());
        for (std::size_t i = 0; i < count; ++i) {
            node_offsets_[i + 1] = node_offsets_[i] + static_cast<std::int32_t>(parts_[i].nodes.size());
            leaf_offsets_[i + 1] = leaf_offsets_[i] + static_cast<std::int32_t>(parts_[i].leaves.size());
        }
        made.nodes.resize(static_cast<std::size_t>(node_offsets_[count]));
        made.leaves.resize(static_cast<std::size_t>(leaf_offsets_[count]));
        made.top_count = static_cast<std::int32_t>(tops_.size());
        made.parts.resize(count);
        for_ranges(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t k = begin; k < end; ++k) {
                const auto i = static_cast<std::size_t>(k);
                const std::int32_t nodes = node_offsets_[i], leaves = leaf_offsets_[i];
                std::ranges::copy(parts_[i].leaves, made.leaves.begin() + leaves);
                TreeNode* to = made.nodes.data() + nodes;
                for (TreeNode node : parts_[i].nodes) {
                    for (int slot = 0; slot < node.count; ++slot)
                        node.child[slot] += node.child[slot] < 0 ? -leaves : nodes;
                    if (node.parent >= 0) node.parent += nodes;
                    *to++ = node;
                }
                made.parts[i] = {nodes, node_offsets_[i + 1]};
                parts_[i].nodes = {};
                parts_[i].leaves = {};
            }
        });
        if (!tops_.empty()) made.nodes[0].parent = -1, made.nodes[0].slot = 0;
        for (std::size_t i = 0; i < tops_.size(); ++i) {
            TreeNode& node = made.nodes[i];
            node.count = static_cast<std::int32_t>(tops_[i].children.size());
            for (int slot = 0; slot < node.count; ++slot) {
                const std::int32_t child = number_of(tops_[i].children[static_cast<std::size_t>(slot)]);
                node.child[slot] = child;
                if (child < 0) continue;
                made.nodes[static_cast<std::size_t>(child)].parent = static_cast<std::int32_t>(i);
                made.nodes[static_cast<std::size_t>(child)].slot = slot;
            }
        }
    }

    // The number of a top node's child in the joined tree.
    std::int32_t number_of(std::int32_t child) const {
        if (child >= 0) return child;
        const auto part = static_cast<std::size_t>(-1 - child);
        const std::int32_t root = parts_[part].root;
        return root >= 0 ? node_offsets_[part] + root : root - leaf_offsets_[part];
    }

    Splitter<T> splitter_;
    std::int32_t count_, leaf_size_;
    std::vector<TopNode> tops_;
    std::vector<Pending> pending_;
    std::vector<Subtree> parts_;
    std::vector<std::int32_t> node_offsets_, leaf_offsets_;
};

}  // namespace

template <typename T>
Topology build_topology(TreeBuffer<BuildItem<T>> items, const TreeOptions& options, bool has_groups) {
    return TopologyBuilder<T>(std::move(items), options).build(has_groups);
}

template Topology build_topology(TreeBuffer<BuildItem<float>>, const TreeOptions&, bool);
template Topology build_topology(TreeBuffer<BuildItem<double>>, const TreeOptions&, bool);

}  // namespace weft::runtime::spatial
