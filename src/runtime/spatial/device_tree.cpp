#include "runtime/spatial/device_tree.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "runtime/bytes.h"
#include "runtime/spatial/packed_topology.h"
#include "runtime/spatial/tree_descriptor.h"

namespace weft::runtime::spatial {

namespace {

using devlib::kWidth;

template <typename E>
BufferPtr upload(Device& device, std::span<const E> from) {
    return spatial::upload(device, from.data(), static_cast<std::int64_t>(from.size_bytes()));
}

BufferPtr copy_of(const BufferPtr& from) {
    if (!from) return nullptr;
    BufferPtr made = allocate(from->size_bytes, *from->device);
    copy_bytes(*from->device, made->data, from->data, from->size_bytes);
    return made;
}

template <typename E>
E* data_of(const BufferPtr& of) {
    return of ? static_cast<E*>(of->data) : nullptr;
}

// The distance of each node from the lowest one below it. Children have larger numbers than their parent.
template <typename T>
std::vector<std::int32_t> levels_of(std::span<const devlib::Node<T>> nodes) {
    std::vector<std::int32_t> levels(nodes.size());
    for (std::size_t number = nodes.size(); number-- > 1;) {
        std::int32_t& above = levels[static_cast<std::size_t>(nodes[number].parent)];
        above = std::max(above, levels[number] + 1);
    }
    return levels;
}

// The runs of the items of a packed tree, none of which has items of two groups: begin and end of each. Their halves
// are whole leaves.
std::vector<std::int32_t> runs_of(std::span<const std::int64_t> counts) {
    std::vector<std::int32_t> runs;
    std::int64_t begin = 0;
    for (const std::int64_t count : counts) {
        for (std::int64_t first = 0; first < count; first += devlib::kRunItems) {
            if (count - first <= kWidth) continue;  // a leaf has no order
            runs.push_back(static_cast<std::int32_t>(begin + first));
            runs.push_back(static_cast<std::int32_t>(begin + std::min<std::int64_t>(first + devlib::kRunItems, count)));
        }
        begin += count;
    }
    return runs;
}

}  // namespace

BufferPtr upload(Device& device, const void* from, std::int64_t size_bytes) {
    BufferPtr made = allocate(size_bytes, device);
    if (size_bytes > 0) device.geometry()->write(made->data, from, size_bytes);
    return made;
}

template <typename T, template <typename> typename Block>
DeviceTree<T, Block>::DeviceTree(Device& device, const devlib::Tree<T>& from, std::int64_t blocks,
                                 std::span<const std::int32_t> corners)
    : device_(device), blocks_count_(blocks), tree_(from) {
    const std::span nodes(from.nodes, static_cast<std::size_t>(from.node_count));
    const auto count = static_cast<std::size_t>(from.group_count);
    if constexpr (std::is_same_v<Block<T>, devlib::TriangleBlock<T>>)
        blocks_ = upload(device, std::span(from.triangles, static_cast<std::size_t>(blocks)));
    else
        blocks_ = upload(device, std::span(from.boxes, static_cast<std::size_t>(blocks)));
    if (from.moments) moments_ = upload(device, std::span(from.moments, nodes.size()));
    if (!corners.empty()) corners_ = upload(device, corners);
    if (count > 0) {
        groups_ = upload(device, std::span(from.groups, count));
        group_roots_ = upload(device, std::span(from.group_roots, count));
    }
    set_nodes(nodes);
    update_descriptor();
}

template <typename T, template <typename> typename Block>
void DeviceTree<T, Block>::set_nodes(std::span<const devlib::Node<T>> nodes) {
    nodes_ = upload(device_, nodes);
    std::vector<std::int32_t> places(static_cast<std::size_t>(blocks_count_));
    for (std::size_t number = 0; number < nodes.size(); ++number)
        for (int slot = 0; slot < nodes[number].count; ++slot)
            if (const std::int32_t child = nodes[number].child[slot]; child < 0)
                places[static_cast<std::size_t>(-1 - child)] = static_cast<std::int32_t>(number) * kWidth + slot;
    places_ = upload(device_, std::span<const std::int32_t>(places));
    const std::vector<std::int32_t> levels = levels_of(nodes);
    std::vector<std::int32_t> by_level(nodes.size());
    std::iota(by_level.begin(), by_level.end(), 0);
    std::ranges::stable_sort(by_level, {}, [&](std::int32_t of) { return levels[static_cast<std::size_t>(of)]; });
    for (std::size_t i = 1; i <= by_level.size(); ++i)
        if (i == by_level.size() ||
            levels[static_cast<std::size_t>(by_level[i])] != levels[static_cast<std::size_t>(by_level[i - 1])])
            level_ends_.push_back(static_cast<std::int64_t>(i));
    by_level_ = upload(device_, std::span<const std::int32_t>(by_level));
}

template <typename T, template <typename> typename Block>
DeviceTree<T, Block>::DeviceTree(Device& device, const DeviceItems& items, std::span<const std::int32_t> groups,
                                 int leaf_size, bool with_moments)
    : device_(device), items_(items), is_packed_(true) {
    std::map<std::int32_t, std::int64_t> by_group;
    for (const std::int32_t group : groups) ++by_group[group];
    std::vector<std::int64_t> counts;
    std::vector<std::int32_t> numbers;
    for (const auto& [group, count] : by_group) {
        numbers.push_back(group);
        counts.push_back(count);
    }
    if (counts.empty() && items.count > 0) counts.push_back(items.count);
    const Topology topology = packed_topology(counts, leaf_size);
    std::vector<devlib::Node<T>> nodes(topology.nodes.size());
    std::ranges::transform(topology.nodes, nodes.begin(), without_boxes<T>);
    std::vector<std::int32_t> leaf_ends;
    for (const TreeLeaf& leaf : topology.leaves) leaf_ends.push_back(leaf.begin + leaf.count);
    const auto bytes_of = [](std::size_t count, std::size_t each) { return static_cast<std::int64_t>(count * each); };
    blocks_count_ = static_cast<std::int64_t>(leaf_ends.size());
    blocks_ = allocate(bytes_of(leaf_ends.size(), sizeof(Block<T>)), device);
    if (items.indices) corners_ = allocate(bytes_of(leaf_ends.size(), 3 * kWidth * sizeof(std::int32_t)), device);
    if (with_moments) moments_ = allocate(bytes_of(nodes.size(), sizeof(devlib::Moments<T>)), device);
    leaf_ends_ = upload(device, std::span<const std::int32_t>(leaf_ends));
    if (std::has_single_bit(static_cast<unsigned>(leaf_size)))
        runs_ = upload(device, std::span<const std::int32_t>(runs_of(counts)));
    if (!numbers.empty()) {
        groups_ = upload(device, std::span<const std::int32_t>(numbers));
        group_roots_ = upload(device, std::span<const std::int32_t>(topology.group_roots));
        item_groups_ = upload(device, groups);
    }
    tree_.item_count = static_cast<std::int32_t>(items.count);
    tree_.node_count = static_cast<std::int32_t>(nodes.size());
    tree_.group_count = static_cast<std::int32_t>(numbers.size());
    set_nodes(nodes);
    update_descriptor();
}

template <typename T, template <typename> typename Block>
DeviceTree<T, Block>::DeviceTree(const DeviceTree& of)
    : device_(of.device_),
      blocks_count_(of.blocks_count_),
      nodes_(copy_of(of.nodes_)),
      blocks_(copy_of(of.blocks_)),
      moments_(copy_of(of.moments_)),
      corners_(of.is_packed_ ? copy_of(of.corners_) : of.corners_),
      groups_(of.groups_),
      group_roots_(of.group_roots_),
      item_groups_(of.item_groups_),
      places_(of.places_),
      by_level_(of.by_level_),
      leaf_ends_(of.leaf_ends_),
      runs_(of.runs_),
      items_(of.items_),
      is_packed_(of.is_packed_),
      level_ends_(of.level_ends_),
      tree_(of.tree_) {
    update_descriptor();
}

template <typename T, template <typename> typename Block>
void DeviceTree<T, Block>::update_descriptor() {
    set_addresses<T, Block>(tree_, data_of<devlib::Node<T>>(nodes_), data_of<Block<T>>(blocks_),
                            data_of<std::int32_t>(groups_), data_of<std::int32_t>(group_roots_));
    tree_.moments = data_of<devlib::Moments<T>>(moments_);
}

template <typename T, template <typename> typename Block>
void DeviceTree<T, Block>::refit(const void* first, const void* second, std::array<devlib::Tree<T>*, 2> described) {
    if (tree_.node_count == 0) return;
    const devlib::RefitPlan plan{nodes_->data,
                                 blocks_->data,
                                 data_of<void>(moments_),
                                 data_of<std::int32_t>(corners_),
                                 first,
                                 second,
                                 data_of<std::int32_t>(places_),
                                 data_of<std::int32_t>(by_level_),
                                 0,
                                 0,
                                 {described[0], described[1]}};
    const Scalar scalar = std::is_same_v<T, double> ? Scalar::f64 : Scalar::f32;
    device_.geometry()->refit(plan, scalar, blocks_count_, level_ends_);
}

template <typename T, template <typename> typename Block>
void DeviceTree<T, Block>::rebuild(const void* first, const void* second, std::array<devlib::Tree<T>*, 2> described) {
    if (tree_.node_count == 0) return;
    devlib::BuildPlan plan{};
    plan.first = first, plan.second = second;
    plan.indices = items_.indices, plan.items = items_.count;
    plan.groups = data_of<std::int32_t>(item_groups_);
    plan.leaf_ends = data_of<std::int32_t>(leaf_ends_);
    plan.blocks = blocks_->data;
    plan.corners = data_of<std::int32_t>(corners_);
    plan.block_count = blocks_count_;
    plan.runs = data_of<std::int32_t>(runs_);
    plan.run_count = runs_ ? runs_->size_bytes / static_cast<std::int64_t>(2 * sizeof(std::int32_t)) : 0;
    device_.geometry()->build(plan, std::is_same_v<T, double> ? Scalar::f64 : Scalar::f32);
    refit(first, second, described);
}

template class DeviceTree<float, devlib::TriangleBlock>;
template class DeviceTree<double, devlib::TriangleBlock>;
template class DeviceTree<float, devlib::BoxBlock>;
template class DeviceTree<double, devlib::BoxBlock>;

}  // namespace weft::runtime::spatial
