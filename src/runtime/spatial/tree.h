// Trees over triangles and over boxes, with their geometry (devlib/spatial/layout.h): built, and refitted in place
// after their items have moved.
//
// Queries never find a triangle with a corner that is not finite, nor a box with a NaN or with lower > upper. Other
// boxes may be infinite. If the numbers become valid again, a refit makes the item visible again. Items may be
// degenerate (points, lines), and many may be equal.
//
// The builders use all threads of the CPU. A tree may be read by any number of threads at once, but not during a refit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "devlib/spatial/layout.h"
#include "runtime/spatial/topology.h"
#include "runtime/spatial/tree_buffer.h"

namespace weft::runtime::spatial {

// Points of three numbers, at any stride.
template <typename T>
struct Points {
    const std::byte* data = nullptr;
    std::int64_t stride_bytes = 3 * sizeof(T);

    const T* operator[](std::int64_t i) const { return reinterpret_cast<const T*>(data + i * stride_bytes); }
};

// The common part of both kinds. Block is devlib::BoxBlock or devlib::TriangleBlock.
template <typename T, template <typename> typename Block>
class TreeMemory {
public:
    const devlib::Tree<T>& tree() const { return tree_; }
    std::int64_t block_count() const { return blocks_.size(); }
    std::int64_t size_bytes() const;

protected:
    TreeMemory() = default;
    // Copies the tree into memory of its own.
    TreeMemory(const TreeMemory& of);
    TreeMemory& operator=(const TreeMemory&) = delete;
    void build(TreeBuffer<BuildItem<T>> items, const TreeOptions& options, bool has_groups);
    // fill(block number, bounds, slot) writes a block and its box.
    template <typename Fill>
    void refit_with(const Fill& fill);
    // Called by refit_with() for each node, after those below it.
    virtual void sum_up(std::int32_t node) { static_cast<void>(node); }
    void update_descriptor();  // tree_ describes the present memory
    ~TreeMemory() = default;

    TreeBuffer<devlib::Node<T>> nodes_;
    TreeBuffer<Block<T>> blocks_;
    std::vector<SubtreeRange> parts_;
    std::int32_t top_count_ = 0;
    std::vector<std::int32_t> groups_, group_roots_;
    devlib::Tree<T> tree_;
};

template <typename T>
class TriangleTree final : public TreeMemory<T, devlib::TriangleBlock> {
public:
    // Three indices for each face; `groups` is empty or has a number for each face. Without moments, winding numbers
    // are computed by visiting every triangle. Precondition: every index has a point.
    TriangleTree(Points<T> points, std::span<const std::int32_t> indices, const TreeOptions& options,
                 std::span<const std::int32_t> groups = {}, bool with_moments = false);
    TriangleTree(const TriangleTree& of);
    void refit(Points<T> points);
    // Point numbers of all blocks' triangles, by block, corner and lane; -1 for unused lanes.
    std::span<const std::int32_t> corners() const {
        return {corners_.data(), static_cast<std::size_t>(corners_.size())};
    }

private:
    void sum_up(std::int32_t node) override;

    TreeBuffer<std::int32_t> corners_;
    TreeBuffer<devlib::Moments<T>> moments_;
};

template <typename T>
class BoxTree final : public TreeMemory<T, devlib::BoxBlock> {
public:
    BoxTree(Points<T> lowers, Points<T> uppers, std::int64_t count, const TreeOptions& options,
            std::span<const std::int32_t> groups = {});
    void refit(Points<T> lowers, Points<T> uppers);
};

}  // namespace weft::runtime::spatial
