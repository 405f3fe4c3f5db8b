#include "runtime/spatial/mesh.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "runtime/bytes.h"
#include "runtime/spatial/arguments.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"

namespace weft::runtime::spatial {

namespace {

constexpr const char* kMeshApi = "Mesh()";

// Throws on the first index without a point.
void check_indices(std::span<const std::int32_t> indices, std::int64_t point_count) {
    std::atomic<std::int64_t> first{std::numeric_limits<std::int64_t>::max()};
    for_ranges(static_cast<std::int64_t>(indices.size()), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t index = indices[static_cast<std::size_t>(i)];
            if (index >= 0 && index < point_count) continue;
            std::int64_t before = first.load();
            while (i < before && !first.compare_exchange_weak(before, i)) {
            }
            return;
        }
    });
    const std::int64_t at = first.load();
    if (at == std::numeric_limits<std::int64_t>::max()) return;
    throw UsageError(kMeshApi,
                     "indices[" + std::to_string(at) + "] (corner " + std::to_string(at % 3) + " of face " +
                         std::to_string(at / 3) + ") is " + std::to_string(indices[static_cast<std::size_t>(at)]) +
                         ", and there are " + std::to_string(point_count) + " points: expected 0 <= index < " +
                         std::to_string(point_count),
                     ErrorCategory::value);
}

}  // namespace

struct Mesh::Contents {
    virtual ~Contents() = default;
    virtual void refit(const Array& host_points) = 0;
    virtual void set_arrays(const Array& points, const Array& indices, const std::optional<Array>& velocities) = 0;
    virtual const void* descriptor() const = 0;
    virtual const void* bvh_descriptor() const = 0;
    virtual std::unique_ptr<Contents> copy() const = 0;
    virtual std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                        const ArrayView& indices) const = 0;
};

template <typename T>
struct Mesh::ContentsOf final : Mesh::Contents {
    TriangleTree<T> tree;
    devlib::MeshDescriptor<T> described;
    devlib::BvhDescriptor<T> described_tree;

    ContentsOf(const Array& host_points, std::span<const std::int32_t> indices, const MeshOptions& options,
               std::span<const std::int32_t> groups)
        : tree(points_of<T>(host_points), indices, options.tree, groups, options.support_winding_number) {
        described.scalar_bytes = described_tree.scalar_bytes = sizeof(T);
        described.tree = described_tree.tree = tree.tree();
        described.bvh = &described_tree;
    }
    ContentsOf(const ContentsOf& of) : tree(of.tree), described(of.described), described_tree(of.described_tree) {
        described.tree = described_tree.tree = tree.tree();
    }
    std::unique_ptr<Contents> copy() const override { return std::make_unique<ContentsOf>(*this); }
    std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                const ArrayView& indices) const override {
        auto made = std::make_shared<devlib::MeshDescriptor<T>>(described);
        made->points = fields_of(points), made->velocities = fields_of(velocities), made->indices = fields_of(indices);
        return made;
    }
    void refit(const Array& host_points) override {
        tree.refit(points_of<T>(host_points));
        described.tree = described_tree.tree = tree.tree();
    }
    void set_arrays(const Array& points, const Array& indices, const std::optional<Array>& velocities) override {
        described.points = fields_of(points), described.indices = fields_of(indices);
        described.velocities = velocities ? fields_of(*velocities) : devlib::ArrayFields();
    }
    const void* descriptor() const override { return &described; }
    const void* bvh_descriptor() const override { return &described_tree; }
};

Mesh::Mesh(const Array& points, const Array& indices, const std::optional<Array>& velocities,
           const MeshOptions& options, const std::optional<Array>& groups)
    : points_(points), indices_(indices), velocities_(velocities) {
    require_points(points, "points", kMeshApi);
    require_integers(indices, "indices", points, "points", kMeshApi);
    if (velocities) require_like(*velocities, "velocities", points, "points", kMeshApi);
    if (indices.size() % 3 != 0)
        throw UsageError(kMeshApi, "indices: expected three for each face, got " + std::to_string(indices.size()),
                         ErrorCategory::value);
    const std::vector<std::int32_t> group_numbers = read_groups(groups, face_count(), points, "points", kMeshApi);
    const Array host_points = on_host(points), host_indices = on_host(indices);
    const std::span corners(static_cast<const std::int32_t*>(host_indices.view.data),
                            static_cast<std::size_t>(host_indices.size()));
    check_indices(corners, points.size());
    if (points.dtype.scalar() == Scalar::f64)
        contents_ = std::make_unique<ContentsOf<double>>(host_points, corners, options, group_numbers);
    else
        contents_ = std::make_unique<ContentsOf<float>>(host_points, corners, options, group_numbers);
    contents_->set_arrays(points_, indices_, velocities_);
}

Mesh::Mesh(const Mesh& of)
    : points_(of.points_), indices_(of.indices_), velocities_(of.velocities_), contents_(of.contents_->copy()) {}

Mesh::~Mesh() = default;

void Mesh::refit() { contents_->refit(on_host(points_)); }

void Mesh::set_points(const Array& points) {
    require_like(points, "points", points_, "the mesh", "Mesh.points");
    points_ = points;
    contents_->set_arrays(points_, indices_, velocities_);
    refit();
}

void Mesh::set_velocities(const std::optional<Array>& velocities) {
    if (velocities) require_like(*velocities, "velocities", points_, "points", "Mesh.velocities");
    velocities_ = velocities;
    contents_->set_arrays(points_, indices_, velocities_);
}

void Mesh::set_gradients(const Array& points, const Array* velocities) {
    void* const of_velocities = velocities ? velocities->view.grad : nullptr;
    const bool is_known =
        points_.view.grad == points.view.grad && (!velocities_ || velocities_->view.grad == of_velocities);
    if (is_known) return;
    points_.view.grad = points.view.grad;
    if (velocities_) velocities_->view.grad = of_velocities;
    contents_->set_arrays(points_, indices_, velocities_);
}

const void* Mesh::descriptor() const { return contents_->descriptor(); }
std::shared_ptr<const void> Mesh::descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                  const ArrayView& indices) const {
    return contents_->descriptor_with(points, velocities, indices);
}
const void* Mesh::bvh_descriptor() const { return contents_->bvh_descriptor(); }

}  // namespace weft::runtime::spatial
