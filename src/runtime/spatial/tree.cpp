#include "runtime/spatial/tree.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <type_traits>

#include "devlib/spatial/refit.h"
#include "runtime/spatial/parallel.h"
#include "runtime/spatial/tree_descriptor.h"

namespace weft::runtime::spatial {

namespace {

using devlib::kWidth;
using devlib::Node;
using devlib::set_union;

constexpr std::int64_t kItemGrain = 4096;

// Limit of coordinates during the build, so that areas stay finite.
template <typename T>
constexpr T kMostCoordinate = std::is_same_v<T, float> ? T(1e18) : T(1e150);

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <typename T>
bool is_number(T value) {
    return value - value == 0;
}

// Items for the builder. box(i, lower, upper) sets the box of an item; false if queries never find the item, which is
// then placed at the centre of the others.
template <typename T, typename BoxOf>
TreeBuffer<BuildItem<T>> make_items(std::int64_t count, std::span<const std::int32_t> groups, const BoxOf& box) {
    TreeBuffer<BuildItem<T>> items(count);
    std::vector<std::int32_t> lost;
    std::mutex mutex;
    for_ranges(count, kItemGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            BuildItem<T>& item = items[i];
            item.item = static_cast<std::int32_t>(i);
            item.group = groups.empty() ? 0 : groups[static_cast<std::size_t>(i)];
            if (box(i, item.lower, item.upper)) {
                for (int axis = 0; axis < 3; ++axis) {
                    item.lower[axis] = std::clamp(item.lower[axis], -kMostCoordinate<T>, kMostCoordinate<T>);
                    item.upper[axis] = std::clamp(item.upper[axis], -kMostCoordinate<T>, kMostCoordinate<T>);
                }
                continue;
            }
            const std::lock_guard lock(mutex);
            lost.push_back(item.item);
            std::fill_n(item.lower, 3, kInfinity<T>);
            std::fill_n(item.upper, 3, -kInfinity<T>);
        }
    });
    if (lost.empty()) return items;
    for (int axis = 0; axis < 3; ++axis) {
        T lower = kInfinity<T>, upper = -kInfinity<T>;
        for (std::int64_t i = 0; i < count; ++i) {
            const BuildItem<T>& item = items[i];
            lower = std::min(lower, item.lower[axis]);
            upper = std::max(upper, item.upper[axis]);
        }
        const T middle = lower <= upper ? lower / 2 + upper / 2 : 0;
        for (const std::int32_t i : lost) items[i].lower[axis] = items[i].upper[axis] = middle;
    }
    return items;
}

}  // namespace

template <typename T, template <typename> typename Block>
std::int64_t TreeMemory<T, Block>::size_bytes() const {
    return nodes_.size() * static_cast<std::int64_t>(sizeof(Node<T>)) +
           blocks_.size() * static_cast<std::int64_t>(sizeof(Block<T>));
}

template <typename T, template <typename> typename Block>
void TreeMemory<T, Block>::build(TreeBuffer<BuildItem<T>> items, const TreeOptions& options, bool has_groups) {
    const auto item_count = static_cast<std::int32_t>(items.size());
    Topology topology = build_topology(std::move(items), options, has_groups);
    const auto node_count = static_cast<std::int64_t>(topology.nodes.size());
    nodes_ = TreeBuffer<Node<T>>(node_count);
    for_ranges(node_count, kItemGrain / 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            nodes_[i] = without_boxes<T>(topology.nodes[static_cast<std::size_t>(i)]);
    });
    blocks_ = TreeBuffer<Block<T>>(static_cast<std::int64_t>(topology.leaves.size()));
    for_ranges(blocks_.size(), kItemGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const TreeLeaf leaf = topology.leaves[static_cast<std::size_t>(i)];
            for (int lane = 0; lane < kWidth; ++lane)
                blocks_[i].item[lane] =
                    lane < leaf.count ? topology.order[static_cast<std::size_t>(leaf.begin + lane)] : -1;
        }
    });
    parts_ = std::move(topology.parts);
    top_count_ = topology.top_count;
    groups_ = std::move(topology.groups);
    group_roots_ = std::move(topology.group_roots);
    tree_.item_count = item_count;
    update_descriptor();
}

template <typename T, template <typename> typename Block>
TreeMemory<T, Block>::TreeMemory(const TreeMemory& of)
    : nodes_(of.nodes_.copy()),
      blocks_(of.blocks_.copy()),
      parts_(of.parts_),
      top_count_(of.top_count_),
      groups_(of.groups_),
      group_roots_(of.group_roots_),
      tree_(of.tree_) {
    update_descriptor();
}

template <typename T, template <typename> typename Block>
void TreeMemory<T, Block>::update_descriptor() {
    set_addresses<T, Block>(tree_, nodes_.data(), blocks_.data(), groups_.data(), group_roots_.data());
    tree_.group_count = static_cast<std::int32_t>(groups_.size());
    tree_.node_count = static_cast<std::int32_t>(nodes_.size());
}

template <typename T, template <typename> typename Block>
template <typename Fill>
void TreeMemory<T, Block>::refit_with(const Fill& fill) {
    if (tree_.node_count == 0) return;
    const auto refit_nodes = [&](std::int32_t begin, std::int32_t end) {
        for (std::int32_t number = end; number-- > begin;) {
            Node<T>& node = nodes_[number];
            for (int slot = 0; slot < node.count; ++slot) {
                const std::int32_t child = node.child[slot];
                if (child < 0)
                    fill(-1 - child, node.bounds, slot);
                else
                    set_union(node.bounds, slot, nodes_[child].bounds);
            }
            sum_up(number);
        }
    };
    for_ranges(static_cast<std::int64_t>(parts_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const SubtreeRange& part = parts_[static_cast<std::size_t>(i)];
            refit_nodes(part.node_begin, part.node_end);
        }
    });
    refit_nodes(0, top_count_);

    T whole[2][3][kWidth];
    set_union(whole, 0, nodes_[0].bounds);
    for (int axis = 0; axis < 3; ++axis) {
        const bool is_empty = whole[0][axis][0] > whole[1][axis][0];
        tree_.lower[axis] = is_empty ? 0 : whole[0][axis][0];
        tree_.upper[axis] = is_empty ? 0 : whole[1][axis][0];
    }
}

// ---- triangles ----

template <typename T>
TriangleTree<T>::TriangleTree(Points<T> points, std::span<const std::int32_t> indices, const TreeOptions& options,
                              std::span<const std::int32_t> groups, bool with_moments) {
    const auto count = static_cast<std::int64_t>(indices.size()) / 3;
    TreeBuffer<BuildItem<T>> items = make_items<T>(count, groups, [&](std::int64_t face, T* lower, T* upper) {
        const T* const a = points[indices[static_cast<std::size_t>(3 * face)]];
        const T* const b = points[indices[static_cast<std::size_t>(3 * face + 1)]];
        const T* const c = points[indices[static_cast<std::size_t>(3 * face + 2)]];
        bool finite = true;
        for (int axis = 0; axis < 3; ++axis) {
            lower[axis] = std::min({a[axis], b[axis], c[axis]});
            upper[axis] = std::max({a[axis], b[axis], c[axis]});
            finite = finite && is_number(a[axis]) && is_number(b[axis]) && is_number(c[axis]);
        }
        return finite;
    });
    this->build(std::move(items), options, !groups.empty());
    if (with_moments) {
        moments_ = TreeBuffer<devlib::Moments<T>>(this->nodes_.size());
        this->tree_.moments = moments_.data();
    }
    auto& blocks = this->blocks_;
    corners_ = TreeBuffer<std::int32_t>(blocks.size() * 3 * kWidth);
    for_ranges(blocks.size(), kItemGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            for (int corner = 0; corner < 3; ++corner)
                for (int lane = 0; lane < kWidth; ++lane) {
                    const std::int32_t face = blocks[i].item[lane];
                    corners_[(i * 3 + corner) * kWidth + lane] =
                        face < 0 ? -1 : indices[static_cast<std::size_t>(face * std::int64_t{3} + corner)];
                    for (int axis = 0; axis < 3; ++axis)
                        blocks[i].corner[corner][axis][lane] = std::numeric_limits<T>::quiet_NaN();
                }
    });
    refit(points);
}

template <typename T>
TriangleTree<T>::TriangleTree(const TriangleTree& of)
    : TreeMemory<T, devlib::TriangleBlock>(of), corners_(of.corners_.copy()), moments_(of.moments_.copy()) {
    if (moments_.size() != 0) this->tree_.moments = moments_.data();
}

template <typename T>
void TriangleTree<T>::refit(Points<T> points) {
    this->refit_with([&](std::int32_t number, T(&bounds)[2][3][kWidth], int slot) {
        devlib::refit_triangles(
            this->blocks_[number], &corners_[static_cast<std::int64_t>(number) * 3 * kWidth],
            [&](std::int32_t point) { return points[point]; }, bounds, slot);
    });
}

template <typename T>
void TriangleTree<T>::sum_up(std::int32_t number) {
    if (moments_.size() != 0)
        devlib::sum_up_moments(this->nodes_.data(), this->blocks_.data(), moments_.data(), number);
}

// ---- boxes ----

template <typename T>
BoxTree<T>::BoxTree(Points<T> lowers, Points<T> uppers, std::int64_t count, const TreeOptions& options,
                    std::span<const std::int32_t> groups) {
    TreeBuffer<BuildItem<T>> items = make_items<T>(count, groups, [&](std::int64_t i, T* lower, T* upper) {
        std::copy_n(lowers[i], 3, lower);
        std::copy_n(uppers[i], 3, upper);
        return lower[0] <= upper[0] && lower[1] <= upper[1] && lower[2] <= upper[2];
    });
    this->build(std::move(items), options, !groups.empty());
    refit(lowers, uppers);
}

template <typename T>
void BoxTree<T>::refit(Points<T> lowers, Points<T> uppers) {
    this->refit_with([&](std::int32_t number, T(&bounds)[2][3][kWidth], int slot) {
        devlib::refit_boxes(
            this->blocks_[number], [&](std::int32_t item) { return lowers[item]; },
            [&](std::int32_t item) { return uppers[item]; }, bounds, slot);
    });
}

template class TreeMemory<float, devlib::TriangleBlock>;
template class TreeMemory<double, devlib::TriangleBlock>;
template class TreeMemory<float, devlib::BoxBlock>;
template class TreeMemory<double, devlib::BoxBlock>;
template class TriangleTree<float>;
template class TriangleTree<double>;
template class BoxTree<float>;
template class BoxTree<double>;

}  // namespace weft::runtime::spatial
