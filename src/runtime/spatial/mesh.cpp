#include "runtime/spatial/mesh.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "runtime/bytes.h"
#include "runtime/spatial/arguments.h"
#include "runtime/spatial/device_tree.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"

namespace weft::runtime::spatial {

namespace {

constexpr const char* kMeshApi = "Mesh()";

[[noreturn]] void throw_wrong_index(std::int64_t at, std::int32_t index, std::int64_t point_count) {
    throw UsageError(kMeshApi,
                     "indices[" + std::to_string(at) + "] (corner " + std::to_string(at % 3) + " of face " +
                         std::to_string(at / 3) + ") is " + std::to_string(index) + ", and there are " +
                         std::to_string(point_count) + " points: expected 0 <= index < " + std::to_string(point_count),
                     ErrorCategory::value);
}

// Throws on the first index without a point; the second function by the device's kernels.
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
    throw_wrong_index(at, indices[static_cast<std::size_t>(at)], point_count);
}
void check_indices_there(const Array& indices, std::int64_t point_count) {
    const auto* const numbers = static_cast<const std::int32_t*>(indices.view.data);
    const std::int64_t at = indices.device->geometry()->first_wrong(numbers, indices.size(), point_count);
    if (at == indices.size()) return;
    std::int32_t index = 0;
    read_bytes(*indices.device, &index, numbers + at, sizeof index);
    throw_wrong_index(at, index, point_count);
}

}  // namespace

struct Mesh::Contents {
    virtual ~Contents() = default;
    virtual void refit(const Array& points) = 0;
    virtual void set_arrays(const Array& points, const Array& indices, const std::optional<Array>& velocities) = 0;
    virtual const void* descriptor() const = 0;
    virtual const void* bvh_descriptor() const = 0;
    virtual std::unique_ptr<Contents> copy() const = 0;
    virtual std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                        const ArrayView& indices) const = 0;
};

// In memory that the host and the kernels of its device read.
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
    void refit(const Array& points) override {
        tree.refit(points_of<T>(on_host(points)));
        described.tree = described_tree.tree = tree.tree();
    }
    void set_arrays(const Array& points, const Array& indices, const std::optional<Array>& velocities) override {
        described.points = fields_of(points), described.indices = fields_of(indices);
        described.velocities = velocities ? fields_of(*velocities) : devlib::ArrayFields();
    }
    const void* descriptor() const override { return &described; }
    const void* bvh_descriptor() const override { return &described_tree; }
};

// On a device with geometry of its own.
template <typename T>
struct Mesh::DeviceContents final : Mesh::Contents {
    // Both descriptors in one piece of memory, as the device has them.
    struct Described {
        devlib::MeshDescriptor<T> mesh;
        devlib::BvhDescriptor<T> bvh;
    };

    Device& device;
    DeviceTree<T, devlib::TriangleBlock> tree;
    Described described;
    BufferPtr memory;

    DeviceContents(Device& on, const TriangleTree<T>& from)
        : device(on),
          tree(on, from.tree(), from.block_count(), from.corners()),
          memory(allocate(sizeof described, on)) {
        described.mesh.scalar_bytes = described.bvh.scalar_bytes = sizeof(T);
        write_descriptor();
    }
    // A packed tree, built on the device.
    DeviceContents(const Array& points, const DeviceItems& items, std::span<const std::int32_t> groups,
                   const MeshOptions& options)
        : device(*points.device),
          tree(device, items, groups, options.tree.leaf_size, options.support_winding_number),
          memory(allocate(sizeof described, device)) {
        described.mesh.scalar_bytes = described.bvh.scalar_bytes = sizeof(T);
        write_descriptor();
        tree.rebuild(points.view.data, nullptr, trees());
    }
    DeviceContents(const DeviceContents& of)
        : device(of.device), tree(of.tree), described(of.described), memory(allocate(sizeof described, device)) {
        write_descriptor();
        of.copy_boxes(memory);
    }
    std::unique_ptr<Contents> copy() const override { return std::make_unique<DeviceContents>(*this); }
    std::shared_ptr<const void> descriptor_with(const ArrayView& points, const ArrayView& velocities,
                                                const ArrayView& indices) const override {
        Described other = described;
        other.mesh.points = fields_of(points), other.mesh.velocities = fields_of(velocities);
        other.mesh.indices = fields_of(indices);
        const BufferPtr made = allocate(sizeof other, device);
        other.mesh.bvh = bvh_at(made);
        write(made, other);
        copy_boxes(made);
        return {made, made->data};
    }
    void refit(const Array& points) override { tree.refit(points.view.data, nullptr, trees()); }
    void set_arrays(const Array& points, const Array& indices, const std::optional<Array>& velocities) override {
        described.mesh.points = fields_of(points), described.mesh.indices = fields_of(indices);
        described.mesh.velocities = velocities ? fields_of(*velocities) : devlib::ArrayFields();
        // The box of the tree is the device's to write.
        constexpr std::int64_t kArrayBytes = 3 * sizeof(devlib::ArrayFields);
        static_assert(offsetof(devlib::MeshDescriptor<T>, scalar_bytes) == kArrayBytes);
        device.geometry()->write(memory->data, &described.mesh, kArrayBytes);
    }
    const void* descriptor() const override { return memory->data; }
    const void* bvh_descriptor() const override { return bvh_at(memory); }

private:
    std::array<devlib::Tree<T>*, 2> trees() const { return {&at(memory)->mesh.tree, &at(memory)->bvh.tree}; }
    static Described* at(const BufferPtr& of) { return static_cast<Described*>(of->data); }
    static const void* bvh_at(const BufferPtr& of) { return &at(of)->bvh; }
    // The boxes of both trees, which the device has written.
    void copy_boxes(const BufferPtr& to) const {
        copy_box(device, at(to)->mesh.tree, at(memory)->mesh.tree);
        copy_box(device, at(to)->bvh.tree, at(memory)->bvh.tree);
    }
    void write(const BufferPtr& to, const Described& from) const {
        device.geometry()->write(to->data, &from, sizeof from);
    }
    void write_descriptor() {
        described.mesh.tree = described.bvh.tree = tree.tree();
        described.mesh.bvh = bvh_at(memory);
        write(memory, described);
    }
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
    if (face_count() > std::numeric_limits<std::int32_t>::max())
        throw UsageError(kMeshApi, "indices: expected at most 2147483647 faces, got " + std::to_string(face_count()),
                         ErrorCategory::value);
    const std::vector<std::int32_t> group_numbers = read_groups(groups, face_count(), points, "points", kMeshApi);
    const bool is_packed = points.device->geometry() && options.tree.method == TreeMethod::linear;
    const Array host_points = is_packed ? points : on_host(points);
    const Array host_indices = is_packed ? indices : on_host(indices);
    const std::span corners(static_cast<const std::int32_t*>(host_indices.view.data),
                            static_cast<std::size_t>(host_indices.size()));
    if (is_packed)
        check_indices_there(indices, points.size());
    else
        check_indices(corners, points.size());
    const auto make = [&]<typename T>(T) -> std::unique_ptr<Contents> {
        const DeviceItems items{face_count(), corners.data()};
        if (is_packed) return std::make_unique<DeviceContents<T>>(points, items, group_numbers, options);
        auto made = std::make_unique<ContentsOf<T>>(host_points, corners, options, group_numbers);
        if (points.device->geometry() == nullptr) return made;
        return std::make_unique<DeviceContents<T>>(*points.device, made->tree);
    };
    contents_ = points.dtype.scalar() == Scalar::f64 ? make(double()) : make(float());
    contents_->set_arrays(points_, indices_, velocities_);
}

Mesh::Mesh(const Mesh& of)
    : points_(of.points_), indices_(of.indices_), velocities_(of.velocities_), contents_(of.contents_->copy()) {}

Mesh::~Mesh() = default;

void Mesh::refit() { contents_->refit(points_); }

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
