// Trees over boxes in the user's arrays: wp.Bvh.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "devlib/spatial/layout.h"
#include "runtime/array.h"
#include "runtime/spatial/topology.h"

namespace weft::runtime::spatial {

class Bvh {
public:
    // Boxes of f32 or f64 coordinates; `groups` has a number for each box. The arrays are kept alive. Throws UsageError
    // if they do not fit each other.
    Bvh(const Array& lowers, const Array& uppers, const TreeOptions& options, const std::optional<Array>& groups);
    ~Bvh();
    // The same boxes, with an own copy of the tree.
    Bvh(const Bvh& of);
    Bvh& operator=(const Bvh&) = delete;

    // Updates the tree to the present boxes: refit() keeps its structure, rebuild() makes a new one. The descriptor()
    // from before a rebuild lives as long as previous().
    void refit();
    void rebuild(const TreeOptions& options);
    // Whether a device built the tree, so that it can do so again in the same memory, also in a graph.
    bool is_packed() const;
    void rebuild_in_place();

    const Array& lowers() const { return lowers_; }
    const Array& uppers() const { return uppers_; }
    // A devlib::BvhDescriptor<float> or <double>.
    const void* descriptor() const;
    std::shared_ptr<const void> previous() const { return previous_; }

private:
    struct Contents;
    template <typename T>
    struct ContentsOf;
    template <typename T>
    struct DeviceContents;

    std::shared_ptr<Contents> make(const TreeOptions& options) const;

    Array lowers_, uppers_;
    std::optional<Array> groups_;
    std::shared_ptr<Contents> contents_;
    std::shared_ptr<const void> previous_;
};

}  // namespace weft::runtime::spatial
