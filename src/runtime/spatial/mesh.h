// Triangle meshes and their trees: what wp.Mesh is made of.
//
// The tree has its own copy of the faces, so that queries read neither the indices nor the points of the user: what
// these say after the construction can not lead out of memory. Points that were changed count after refit().
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
    // Points and velocities of vec3f or vec3d, indices of int32, three for each face; `groups` has a number for each
    // face. The arrays are kept. Throws UsageError where they do not fit each other, and where an index is that of no
    // point.
    Mesh(const Array& points, const Array& indices, const std::optional<Array>& velocities, const MeshOptions& options,
         const std::optional<Array>& groups);
    ~Mesh();
    // The same mesh, with a tree in memory of its own.
    Mesh(const Mesh& of);
    Mesh& operator=(const Mesh&) = delete;

    // To the points as they are now.
    void refit();
    // Other points, of the same number, type and device; the tree is refitted. Other velocities, or none.
    void set_points(const Array& points);
    void set_velocities(const std::optional<Array>& velocities);
    // Shows kernels the gradients that the arrays have now.
    void set_gradients(const Array& points, const Array* velocities);

    const Array& points() const { return points_; }
    const Array& indices() const { return indices_; }
    const std::optional<Array>& velocities() const { return velocities_; }
    std::int64_t face_count() const { return indices_.size() / 3; }
    // A devlib::MeshDescriptor of float or double; and a devlib::BvhDescriptor of the same tree, without arrays.
    const void* descriptor() const;
    // A copy of the former with other points, velocities and indices; a view without data stands for none.
    std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                const ArrayView& indices) const;
    const void* bvh_descriptor() const;

private:
    struct Contents;
    template <typename T>
    struct ContentsOf;

    Array points_, indices_;
    std::optional<Array> velocities_;
    std::unique_ptr<Contents> contents_;
};

}  // namespace weft::runtime::spatial
