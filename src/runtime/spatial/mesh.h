// Triangle meshes and their trees: wp.Mesh.
//
// The tree has its own copy of the faces, so that queries read neither the user's indices nor points. Values that the
// user writes to these later cannot lead outside of memory. Changed points take effect at refit().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "devlib/spatial/layout.h"
#include "runtime/array.h"
#include "runtime/spatial/topology.h"

namespace weft::runtime::spatial {

struct MeshOptions {
    TreeOptions tree;
    bool support_winding_number = false;
};

class Mesh {
public:
    // Points and velocities of vec3f or vec3d; indices of int32, three for each face; `groups` has a number for each
    // face. The arrays are kept alive. Throws UsageError if they do not fit each other, or if an index has no point.
    Mesh(const Array& points, const Array& indices, const std::optional<Array>& velocities, const MeshOptions& options,
         const std::optional<Array>& groups);
    ~Mesh();
    // The same mesh, with an own copy of the tree.
    Mesh(const Mesh& of);
    Mesh& operator=(const Mesh&) = delete;

    // Updates the tree to the present points.
    void refit();
    // Replaces the points by others of the same number, type and device, and refits the tree; replaces or removes the
    // velocities.
    void set_points(const Array& points);
    void set_velocities(const std::optional<Array>& velocities);
    // Updates the descriptor to the arrays' present gradients.
    void set_gradients(const Array& points, const Array* velocities);

    const Array& points() const { return points_; }
    const Array& indices() const { return indices_; }
    const std::optional<Array>& velocities() const { return velocities_; }
    std::int64_t face_count() const { return indices_.size() / 3; }
    // A devlib::MeshDescriptor<float> or <double>; bvh_descriptor() is a devlib::BvhDescriptor of the same tree,
    // without arrays.
    const void* descriptor() const;
    // A copy of the descriptor with other points, velocities and indices; a view without data stands for none.
    std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                const ArrayView& indices) const;
    const void* bvh_descriptor() const;

private:
    struct Contents;
    template <typename T>
    struct ContentsOf;
    template <typename T>
    struct DeviceContents;

    Array points_, indices_;
    std::optional<Array> velocities_;
    std::unique_ptr<Contents> contents_;
};

}  // namespace weft::runtime::spatial
