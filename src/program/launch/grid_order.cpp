#include "program/launch/grid_order.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "program/host/host.h"
#include "program/host/settings.h"
#include "runtime/array.h"
#include "runtime/handles.h"
#include "runtime/spatial/hash_grid.h"
#include "support/error.h"
#include "transform/passes/follow_grid_order.h"

namespace weft::program {

namespace spatial = runtime::spatial;
using ir::ImplicitParameter;

namespace {

// At this many points a thread, the copies take about as long as they save.
constexpr std::int64_t kMostPointsOfThread = 32;

const spatial::HashGridDescriptor& grid_with(std::uint64_t id) {
    const spatial::PreviousObjectsPtr& previous = spatial::SnapshotScope::current();
    return *static_cast<const spatial::HashGridDescriptor*>(
        previous ? previous->find(id, ObjectKind::hash_grid) : spatial::find_descriptor(id, ObjectKind::hash_grid));
}

std::uint64_t id_at(const std::byte* block, std::int64_t offset) {
    std::uint64_t id = 0;
    std::memcpy(&id, block + offset, sizeof id);
    return id;
}

// The offset of the u64 leaf with this number among the arguments (transform::SortedCopy).
std::int64_t id_offset(const KernelFacts& kernel, int number) {
    std::int64_t found = -1;
    const std::span own(kernel.parameter_types.data(), kernel.own_count());
    transform::for_each_leaf(own, [&](Type type, int parameter, const std::vector<std::int64_t>& fields) {
        if (!(type == u64_type()) || number-- != 0) return;
        found = kernel.layout.offsets[static_cast<std::size_t>(parameter)];
        Type at = own[static_cast<std::size_t>(parameter)];
        for (const std::int64_t field : fields) {
            found += at.fields()[static_cast<std::size_t>(field)].offset;
            at = at.fields()[static_cast<std::size_t>(field)].type;
        }
    });
    WEFT_CHECK(found >= 0, "the number of a grid is missing");
    return found;
}

// The grid whose order a launch should follow, if one pays.
struct FoundGrid {
    std::uint64_t id = 0;
    const spatial::HashGridDescriptor* grid = nullptr;
};

class GridOrder final : public StrategicLaunch {
public:
    // The lease began before the grid was looked up.
    GridOrder(spatial::ReadLease read_lease, const FoundGrid& order, runtime::Device& device, bool has_host)
        : device_(device), has_host_(has_host), read_lease_(std::move(read_lease)), order_(order) {}

    // Copies the data of neighbours in that order. False if the arguments have fewer elements than there are
    // neighbours, or a grid has many more points than the launch has threads.
    bool fill_implicit_parameters(const KernelFacts& kernel, std::byte* block) override;
    void add_gradients(const std::byte* block) override;

private:
    struct Copy {
        std::int64_t of;  // offset of the array in the block
        const spatial::HashGridDescriptor* by;
        runtime::BufferPtr buffer;
    };

    struct Sum {
        std::int64_t of;
        const spatial::HashGridDescriptor* by;
        Type element;
        runtime::BufferPtr buffer;
    };

    FoundGrid found(std::uint64_t id);
    bool show_copy(const FoundGrid& by, std::int64_t of, std::int64_t element_bytes, const std::byte* block,
                   ArrayView& shown);

    runtime::Device& device_;
    bool has_host_;
    const spatial::ReadLease read_lease_;
    const FoundGrid order_;  // gives the order
    std::vector<FoundGrid> found_;
    std::vector<Copy> copies_;
    std::vector<Sum> sums_;
    // The code finds the grids that the copies were made from.
    std::optional<spatial::SnapshotScope> snapshot_scope_;
};

class GridOrderStrategy final : public LaunchStrategy {
public:
    // Deterministic sums add in the threads' own order.
    bool is_possible(const KernelFacts& kernel, const runtime::Device& device, const Grid& grid) const override {
        return kernel.tid_rank == 1 && device.is_host_memory && spatial::may_need_order(grid.count) &&
               !(kernel.grid_order_rounds && is_deterministic(std::nullopt));
    }

    std::unique_ptr<StrategicLaunch> begin(const KernelFacts& kernel, runtime::Device& device, const std::byte* block,
                                           const Grid& grid, bool has_host) const override {
        if (!is_possible(kernel, device, grid)) return nullptr;
        // A recorded launch runs later, perhaps with another grid.
        if (runtime::current_stream(device).recording()) return nullptr;
        spatial::ReadLease read_lease;
        for (const GridQuery& query : kernel.grid_queries) {
            const std::uint64_t id = id_at(block, query.id);
            if (const auto* found =
                    spatial::order_for(id, grid.count, {view_at(block, query.points), query.point, query.scalar}))
                return std::make_unique<GridOrder>(std::move(read_lease), FoundGrid{id, found}, device, has_host);
        }
        return nullptr;
    }

    void choose(Variant& variant) const override { variant.grid_order = true; }
};

bool GridOrder::fill_implicit_parameters(const KernelFacts& kernel, std::byte* block) {
    const std::size_t own = kernel.own_count();
    for (std::size_t i = 0; i < kernel.implicit_parameters.size(); ++i) {
        const ImplicitParameter& implicit = kernel.implicit_parameters[i];
        ArrayView& shown = view_at(block, kernel.layout.offsets[own + i]);
        if (implicit.kind == ImplicitParameter::Kind::order) shown = order_.grid->points;
        if (implicit.kind != ImplicitParameter::Kind::sorted || implicit.of < 0) continue;
        const auto copy = transform::SortedCopy::from(implicit.of);
        const std::int64_t given = kernel.arrays[static_cast<std::size_t>(copy.of)].offset;
        const std::int64_t bytes = kernel.parameter_types[own + i].element().size_bytes();
        const FoundGrid by = copy.grid < 0 ? order_ : found(id_at(block, id_offset(kernel, copy.grid)));
        if (!show_copy(by, given, bytes, block, shown)) return false;
        if (!copy.has_gradient || !shown.data || !view_at(block, given).grad) continue;
        const std::int64_t size = shown.shape[0] * bytes;
        const Type element = kernel.parameter_types[own + i].element();
        shown.grad = sums_.emplace_back(given, by.grid, element, runtime::allocate_zeroed(size, device_)).buffer->data;
    }
    if (copies_.empty() || spatial::SnapshotScope::current()) return true;
    // Another thread may rebuild the grids during the launch.
    if (found_.empty()) found_.push_back(order_);
    auto all = std::make_shared<spatial::PreviousObjects>(/*are_all=*/false);
    for (const FoundGrid& one : found_) all->add(one.id, one.grid, nullptr);
    snapshot_scope_.emplace(std::move(all));
    return true;
}

void GridOrder::add_gradients(const std::byte* block) {
    for (const Sum& sum : sums_) {
        const Scalar scalar = sum.element.scalar();
        const std::int64_t count = sum.element.size_bytes() / info(scalar).bytes();
        const void* const from = sum.buffer->data;
        without_host(sum.buffer->size_bytes,
                     [&] { spatial::add_sorted(from, scalar, count, sum.by->points, view_at(block, sum.of)); });
    }
}

// All copies of a launch see one state of each grid.
FoundGrid GridOrder::found(std::uint64_t id) {
    if (found_.empty()) found_.push_back(order_);
    for (const FoundGrid& one : found_)
        if (one.id == id) return one;
    return found_.emplace_back(id, &grid_with(id));
}

bool GridOrder::show_copy(const FoundGrid& by, std::int64_t of, std::int64_t element_bytes, const std::byte* block,
                          ArrayView& shown) {
    shown = ArrayView{};
    const ArrayView& given = view_at(block, of);
    const std::int64_t count = by.grid->points.shape[0];
    if (count > kMostPointsOfThread * order_.grid->points.shape[0]) return false;
    shown.shape[0] = count;
    shown.strides[0] = element_bytes;
    if (count == 0) return true;
    if (!given.data || given.shape[0] < count) return false;
    for (const Copy& copy : copies_)
        if (copy.of == of && copy.by == by.grid) {
            shown.data = copy.buffer->data;
            return true;
        }
    shown.data = copies_.emplace_back(of, by.grid, runtime::allocate(count * element_bytes, device_)).buffer->data;
    const auto sort = [&] { spatial::sort_elements(given, element_bytes, by.grid->points, shown.data); };
    if (has_host_)
        without_host(count * element_bytes, sort);
    else
        sort();
    return true;
}

}  // namespace

const LaunchStrategy& grid_order() {
    static const GridOrderStrategy only;
    return only;
}

}  // namespace weft::program
