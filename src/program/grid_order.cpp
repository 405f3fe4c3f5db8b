#include "program/grid_order.h"

#include <cstring>
#include <memory>

#include "program/host.h"
#include "program/settings.h"

namespace weft::program {

namespace spatial = runtime::spatial;

// Sums that are to be the same in every run are those of threads in their own order.
GridOrder::GridOrder(const KernelFacts& kernel, runtime::Device& device, const std::byte* block, const Grid& grid)
    : device_(device) {
    if (kernel.grid_queries.empty() || kernel.tid_rank != 1 || !device.is_host_memory) return;
    if (!spatial::may_need_order(grid.count)) return;
    if (runtime::current_stream(device).recording()) return;  // it will run later, perhaps with another grid
    if (kernel.grid_order_rounds && settings().deterministic) return;
    reading_.emplace();
    for (const GridQuery& query : kernel.grid_queries) {
        std::memcpy(&id_, block + query.id, sizeof id_);
        grid_ = spatial::order_for(id_, grid.count, {view_at(block, query.points), query.place, query.scalar});
        if (grid_) return;
    }
    reading_.reset();
}

bool GridOrder::show(const KernelFacts& kernel, std::byte* block) {
    const std::size_t own = kernel.own_count();
    for (std::size_t i = 0; i < kernel.implicit_parameters.size(); ++i) {
        const auto& [kind, of] = kernel.implicit_parameters[i];
        if (kind == ir::ImplicitParameter::Kind::order) view_at(block, kernel.layout.offsets[own + i]) = grid_->points;
        if (kind != ir::ImplicitParameter::Kind::sorted || of < 0) continue;
        const ArrayView& given = view_at(block, kernel.layout.offsets[static_cast<std::size_t>(of)]);
        if (!show_copy(kernel, own + i, given, block)) return false;
    }
    if (copies_.empty() || spatial::Finding::current()) return true;
    // Another thread may build the grid anew meanwhile.
    auto found = std::make_shared<spatial::FormerObjects>(/*are_all=*/false);
    found->add(id_, grid_, nullptr);
    finding_.emplace(std::move(found));
    return true;
}

bool GridOrder::show_copy(const KernelFacts& kernel, std::size_t parameter, const ArrayView& of, std::byte* block) {
    const std::int64_t count = grid_->points.shape[0];
    if (!of.data || of.shape[0] < count) return false;
    const std::int64_t bytes = kernel.parameter_types[parameter].element().size_bytes();
    const runtime::BufferPtr& copy = copies_.emplace_back(runtime::allocate(count * bytes, device_));
    without_host(count * bytes, [&] { spatial::sort_elements(of, bytes, grid_->points, copy->data); });
    ArrayView& shown = view_at(block, kernel.layout.offsets[parameter]);
    shown = ArrayView{};
    shown.data = copy->data;
    shown.shape[0] = count;
    shown.strides[0] = bytes;
    return true;
}

}  // namespace weft::program
