#include "runtime/spatial/bvh.h"

#include "runtime/bytes.h"
#include "runtime/spatial/arguments.h"

namespace weft::runtime::spatial {

struct Bvh::Contents {
    virtual ~Contents() = default;
    virtual void refit(const Array& lowers, const Array& uppers) = 0;
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
        tree.refit(points_of<T>(lowers), points_of<T>(uppers));
        described.tree = tree.tree();
    }
    const void* descriptor() const override { return &described; }
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
    const Array host_lowers = on_host(lowers_), host_uppers = on_host(uppers_);
    if (lowers_.dtype.scalar() == Scalar::f64)
        return std::make_shared<ContentsOf<double>>(lowers_, uppers_, host_lowers, host_uppers, options, groups);
    return std::make_shared<ContentsOf<float>>(lowers_, uppers_, host_lowers, host_uppers, options, groups);
}

void Bvh::refit() { contents_->refit(on_host(lowers_), on_host(uppers_)); }

void Bvh::rebuild(const TreeOptions& options) {
    std::shared_ptr<Contents> made = make(options);
    former_ = std::exchange(contents_, std::move(made));
}

const void* Bvh::descriptor() const { return contents_->descriptor(); }

}  // namespace weft::runtime::spatial
