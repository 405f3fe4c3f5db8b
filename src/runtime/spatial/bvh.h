// Trees over boxes that the user's arrays hold: what wp.Bvh is made of.
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
    // Boxes with numbers of f32 or f64; `groups` has a number for each. The arrays are kept. Throws UsageError where
    // they do not fit each other.
    Bvh(const Array& lowers, const Array& uppers, const TreeOptions& options, const std::optional<Array>& groups);
    ~Bvh();
    // The same boxes, with a tree in memory of its own.
    Bvh(const Bvh& of);
    Bvh& operator=(const Bvh&) = delete;

    // To the boxes as they are now: with the same tree, or with a new one. What was behind descriptor() before a
    // rebuild lives as long as former().
    void refit();
    void rebuild(const TreeOptions& options);

    const Array& lowers() const { return lowers_; }
    const Array& uppers() const { return uppers_; }
    // A devlib::BvhDescriptor of float or double.
    const void* descriptor() const;
    std::shared_ptr<const void> former() const { return former_; }

private:
    struct Contents;
    template <typename T>
    struct ContentsOf;

    std::shared_ptr<Contents> make(const TreeOptions& options) const;

    Array lowers_, uppers_;
    std::optional<Array> groups_;
    std::shared_ptr<Contents> contents_;
    std::shared_ptr<const void> former_;
};

}  // namespace weft::runtime::spatial
