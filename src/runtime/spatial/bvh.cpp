#include "runtime/spatial/bvh.h"

#include "runtime/bytes.h"
#include "runtime/spatial/arguments.h"
#include "runtime/spatial/device_tree.h"

namespace weft::runtime::spatial {

struct Bvh::Contents {
    virtual ~Contents() = default;
    virtual void refit(const Array& lowers, const Array& uppers) = 0;
    virtual bool is_packed() const { return false; }
    virtual void rebuild(const Array&, const Array&) {}
    virtual const void* descriptor() const = 0;
    virtual std::shared_ptr<Contents> copy() const = 0;
};

template <typename T>
struct Bvh::ContentsOf final : Bvh::Contents {
    BoxTree<T> tree;
    devlib::BvhDescriptor<T> described;

    // The arrays as the user has them, and in the host's memory.
    ContentsOf(const Array& lowers, const Array& uppers, const Array& host_lowers, const Array& host_uppers,
               const TreeOptions& options, std::span<const std::int32_t> groups)
        : tree(points_of<T>(host_lowers), points_of<T>(host_uppers), host_lowers.size(), options, groups) {
        described.lowers = fields_of(lowers), described.uppers = fields_of(uppers);
        described.scalar_bytes = sizeof(T);
        described.tree = tree.tree();
    }
    ContentsOf(const ContentsOf& of) : tree(of.tree), described(of.described) { described.tree = tree.tree(); }
    std::shared_ptr<Contents> copy() const override { return std::make_shared<ContentsOf>(*this); }
    void refit(const Array& lowers, const Array& uppers) override {
        tree.refit(points_of<T>(on_host(lowers)), points_of<T>(on_host(uppers)));
        described.tree = tree.tree();
    }
    const void* descriptor() const override { return &described; }
};

// On a device with geometry of its own.
template <typename T>
struct Bvh::DeviceContents final : Bvh::Contents {
    Device& device;
    DeviceTree<T, devlib::BoxBlock> tree;
    devlib::BvhDescriptor<T> described;
    BufferPtr memory;  // the descriptor on the device

    DeviceContents(const Array& lowers, const Array& uppers, const BoxTree<T>& from)
        : device(*lowers.device),
          tree(device, from.tree(), from.block_count(), {}),
          memory(allocate(sizeof described, device)) {
        described.lowers = fields_of(lowers), described.uppers = fields_of(uppers);
        described.scalar_bytes = sizeof(T);
        write_descriptor();
    }
    // A packed tree, built on the device.
    DeviceContents(const Array& lowers, const Array& uppers, const DeviceItems& items, const TreeOptions& options,
                   std::span<const std::int32_t> groups)
        : device(*lowers.device),
          tree(device, items, groups, options.leaf_size, /*with_moments=*/false),
          memory(allocate(sizeof described, device)) {
        described.lowers = fields_of(lowers), described.uppers = fields_of(uppers);
        described.scalar_bytes = sizeof(T);
        write_descriptor();
        rebuild(lowers, uppers);
    }
    DeviceContents(const DeviceContents& of)
        : device(of.device), tree(of.tree), described(of.described), memory(allocate(sizeof described, device)) {
        write_descriptor();
        copy_box(device, *tree_there(), *of.tree_there());
    }
    std::shared_ptr<Contents> copy() const override { return std::make_shared<DeviceContents>(*this); }
    void refit(const Array& lowers, const Array& uppers) override {
        tree.refit(lowers.view.data, uppers.view.data, {tree_there(), nullptr});
    }
    bool is_packed() const override { return tree.is_packed(); }
    void rebuild(const Array& lowers, const Array& uppers) override {
        tree.rebuild(lowers.view.data, uppers.view.data, {tree_there(), nullptr});
    }
    const void* descriptor() const override { return memory->data; }

private:
    devlib::Tree<T>* tree_there() const { return &static_cast<devlib::BvhDescriptor<T>*>(memory->data)->tree; }
    void write_descriptor() {
        described.tree = tree.tree();
        device.geometry()->write(memory->data, &described, sizeof described);
    }
};

Bvh::Bvh(const Array& lowers, const Array& uppers, const TreeOptions& options, const std::optional<Array>& groups)
    : lowers_(lowers), uppers_(uppers), groups_(groups) {
    require_points(lowers, "lowers", "Bvh()");
    require_like(uppers, "uppers", lowers, "lowers", "Bvh()");
    contents_ = make(options);
}

Bvh::Bvh(const Bvh& of)
    : lowers_(of.lowers_), uppers_(of.uppers_), groups_(of.groups_), contents_(of.contents_->copy()) {}

Bvh::~Bvh() = default;

std::shared_ptr<Bvh::Contents> Bvh::make(const TreeOptions& options) const {
    const std::vector<std::int32_t> groups = read_groups(groups_, lowers_.size(), lowers_, "lowers", "Bvh()");
    const bool is_packed = lowers_.device->geometry() && options.method == TreeMethod::linear;
    const Array host_lowers = is_packed ? lowers_ : on_host(lowers_);
    const Array host_uppers = is_packed ? uppers_ : on_host(uppers_);
    const auto made = [&]<typename T>(T) -> std::shared_ptr<Contents> {
        if (is_packed)
            return std::make_shared<DeviceContents<T>>(lowers_, uppers_, DeviceItems{lowers_.size(), nullptr}, options,
                                                       groups);
        auto on_host = std::make_shared<ContentsOf<T>>(lowers_, uppers_, host_lowers, host_uppers, options, groups);
        if (lowers_.device->geometry() == nullptr) return on_host;
        return std::make_shared<DeviceContents<T>>(lowers_, uppers_, on_host->tree);
    };
    return lowers_.dtype.scalar() == Scalar::f64 ? made(double()) : made(float());
}

void Bvh::refit() { contents_->refit(lowers_, uppers_); }

void Bvh::rebuild(const TreeOptions& options) {
    std::shared_ptr<Contents> made = make(options);
    previous_ = std::exchange(contents_, std::move(made));
}

bool Bvh::is_packed() const { return contents_->is_packed(); }
void Bvh::rebuild_in_place() { contents_->rebuild(lowers_, uppers_); }

const void* Bvh::descriptor() const { return contents_->descriptor(); }

}  // namespace weft::runtime::spatial
