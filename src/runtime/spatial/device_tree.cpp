#include "runtime/spatial/device_tree.h"

#include <algorithm>
#include <numeric>

#include "runtime/bytes.h"

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
    nodes_ = upload(device, nodes);
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
    std::vector<std::int32_t> places(static_cast<std::size_t>(blocks));
    for (std::size_t number = 0; number < nodes.size(); ++number)
        for (int slot = 0; slot < nodes[number].count; ++slot)
            if (const std::int32_t child = nodes[number].child[slot]; child < 0)
                places[static_cast<std::size_t>(-1 - child)] = static_cast<std::int32_t>(number) * kWidth + slot;
    places_ = upload(device, std::span<const std::int32_t>(places));
    const std::vector<std::int32_t> levels = levels_of(nodes);
    std::vector<std::int32_t> by_level(nodes.size());
    std::iota(by_level.begin(), by_level.end(), 0);
    std::ranges::stable_sort(by_level, {}, [&](std::int32_t of) { return levels[static_cast<std::size_t>(of)]; });
    for (std::size_t i = 1; i <= by_level.size(); ++i)
        if (i == by_level.size() ||
            levels[static_cast<std::size_t>(by_level[i])] != levels[static_cast<std::size_t>(by_level[i - 1])])
            level_ends_.push_back(static_cast<std::int64_t>(i));
    by_level_ = upload(device, std::span<const std::int32_t>(by_level));
    show();
}

template <typename T, template <typename> typename Block>
DeviceTree<T, Block>::DeviceTree(const DeviceTree& of)
    : device_(of.device_),
      blocks_count_(of.blocks_count_),
      nodes_(copy_of(of.nodes_)),
      blocks_(copy_of(of.blocks_)),
      moments_(copy_of(of.moments_)),
      corners_(of.corners_),
      groups_(of.groups_),
      group_roots_(of.group_roots_),
      places_(of.places_),
      by_level_(of.by_level_),
      level_ends_(of.level_ends_),
      tree_(of.tree_) {
    show();
}

template <typename T, template <typename> typename Block>
void DeviceTree<T, Block>::show() {
    tree_.nodes = data_of<devlib::Node<T>>(nodes_);
    if constexpr (std::is_same_v<Block<T>, devlib::TriangleBlock<T>>)
        tree_.triangles = data_of<Block<T>>(blocks_);
    else
        tree_.boxes = data_of<Block<T>>(blocks_);
    tree_.moments = data_of<devlib::Moments<T>>(moments_);
    tree_.groups = data_of<std::int32_t>(groups_);
    tree_.group_roots = data_of<std::int32_t>(group_roots_);
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

template class DeviceTree<float, devlib::TriangleBlock>;
template class DeviceTree<double, devlib::TriangleBlock>;
template class DeviceTree<float, devlib::BoxBlock>;
template class DeviceTree<double, devlib::BoxBlock>;

}  // namespace weft::runtime::spatial
