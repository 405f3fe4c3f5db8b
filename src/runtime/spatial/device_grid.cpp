#include "runtime/spatial/device_grid.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/bytes.h"
#include "runtime/recording.h"

namespace weft::runtime::spatial {

namespace {

devlib::ArrayFields integers(const BufferPtr& memory, std::int64_t count) {
    devlib::ArrayFields fields;
    fields.data = memory->data;
    fields.shape[0] = count;
    fields.strides[0] = 4;
    return fields;
}

}  // namespace

DeviceGrid::DeviceGrid(Device& device, const std::int64_t (&dims)[3])
    : device_(device), dims_{dims[0], dims[1], dims[2]} {
    const auto make = [&] {
        described_ = allocate_zeroed(2 * sizeof(devlib::HashGridFields), device_);
        show_groups();
    };
    if (current_recording(device_)) {
        // Once, not in each launch of the graph.
        const WithoutRecording without;
        const std::shared_ptr<Stream> own = device_.make_stream();
        const UseStream use(own);
        make();
        own->synchronize();
    } else {
        make();
    }
}

void DeviceGrid::show_groups() {
    const std::uint64_t grouped = reinterpret_cast<std::uintptr_t>(fields() + 1);
    device_.geometry()->write(&fields()->grouped, &grouped, sizeof grouped);
}

DeviceGrid::MemoryPtr DeviceGrid::make_memory(std::int64_t points, bool with_groups) const {
    const std::int64_t cells = dims_[0] * dims_[1] * dims_[2];
    const auto sorted = [&] {
        return Sorted{allocate(4 * (cells + 1), device_), allocate(4 * points, device_), nullptr};
    };
    auto made = std::make_shared<Memory>();
    made->points = points;
    made->has_groups = with_groups;
    made->all = sorted();
    if (with_groups) {
        made->grouped = sorted();
        made->grouped.groups = allocate(4 * points, device_);
    }
    made->workspace = allocate(device_.geometry()->grid_workspace(points, cells), device_);
    return made;
}

DeviceGrid::MemoryPtr DeviceGrid::memory_for(std::int64_t points, bool with_groups) {
    MemoryPtr next = present_;
    if (!next || is_shared_ || !next->fits(points, with_groups))
        next = reserved_ && reserved_->fits(points, with_groups) ? std::exchange(reserved_, nullptr)
                                                                 : make_memory(points, with_groups);
    std::vector<MemoryPtr> unused;  // freed without the lock
    const std::lock_guard lock(mutex_);
    const MemoryPtr previous = std::exchange(present_, next);
    is_shared_ = false;
    const auto note = [&](const MemoryPtr& memory) {
        if (memory && std::ranges::find(of_graphs_, memory) == of_graphs_.end()) of_graphs_.push_back(memory);
    };
    if (current_recording(device_)) {
        // Until the graph is launched, the descriptor points to the previous memory.
        note(previous);
        note(next);
    } else {
        // The descriptor will point to the memory of this build, so that only graphs need others.
        const auto is_unused = [&](const MemoryPtr& each) { return each != next && each.use_count() == 1; };
        std::ranges::copy_if(of_graphs_, std::back_inserter(unused), is_unused);
        std::erase_if(of_graphs_, [&](const MemoryPtr& each) { return std::ranges::count(unused, each) > 0; });
        unused.push_back(previous);
    }
    return next;
}

// Gives the snapshots of tapes a copy. A build that is captured changes nothing yet for those outside of the capture:
// the version tells a backward pass after a launch of the graph that the grid has changed. Those of the capture get a
// copy if the graph has built what they have seen, in memory that this build then leaves alone. Else they have seen the
// grid as the graph finds it, which may be in the memory that the graph itself has filled at its last launch.
bool DeviceGrid::keep_previous(std::uint64_t id) {
    const Recording* const recording = current_recording(device_);
    if (!is_kept(id)) return true;
    // The body of a condition may not run, or run repeatedly.
    if (recording && (built_in_ != recording->number() || recording->is_in_branch())) return false;
    keep_apart(id);
    is_shared_ = true;
    return true;
}

devlib::HashGridFields DeviceGrid::describe(const Sorted& sorted, std::int64_t count, double inverse_width) const {
    devlib::HashGridFields fields;
    fields.starts = integers(sorted.starts, dims_[0] * dims_[1] * dims_[2] + 1);
    fields.points = integers(sorted.points, count);
    if (sorted.groups) fields.groups = integers(sorted.groups, count);
    fields.inverse_width = inverse_width;
    for (int axis = 0; axis < 3; ++axis) fields.dims[axis] = static_cast<std::int32_t>(dims_[axis]);
    fields.count = static_cast<std::int32_t>(count);
    return fields;
}

void DeviceGrid::build(const Array& points, double inverse_width, const Array* groups, std::uint64_t id) {
    const bool has_kept = keep_previous(id);
    const std::int64_t count = points.size();
    const MemoryPtr memory = memory_for(count, groups != nullptr);

    GridBuild all;
    all.points = points.view.data;
    all.point_stride = points.view.strides[0];
    all.scalar = points.dtype.scalar();
    all.workspace = memory->workspace->data;
    GridBuild grouped = all;
    all.description = describe({memory->all.starts, memory->all.points, nullptr}, count, inverse_width);
    all.description.grouped = reinterpret_cast<std::uintptr_t>(fields() + 1);
    all.described = fields();
    if (groups) {
        grouped.groups = groups->view.data;
        grouped.group_stride = groups->view.strides[0];
        grouped.description = describe(memory->grouped, count, inverse_width);
        grouped.described = fields() + 1;
    } else {
        all.emptied = fields() + 1;
    }
    const auto work = [&geometry = *device_.geometry(), all, grouped] {
        if (grouped.described) geometry.build_grid(grouped);
        geometry.build_grid(all);
    };
    if (Recording* const recording = current_recording(device_)) {
        recording->memory().hold(memory);
        recording->memory().hold(described_);
        recording->memory().note_written(memory->all.starts);
        recording->add("HashGrid.build", work, {all.points, grouped.groups});
        if (!has_kept) note_captured_build();
        built_in_ = recording->is_in_branch() ? 0 : recording->number();
    } else {
        work();
        built_in_ = 0;
    }
    count_change();
}

// The present grid keeps its memory.
void DeviceGrid::reserve(std::int64_t points, bool with_groups) {
    if (present_ && !is_shared_ && present_->fits(points, with_groups)) return;
    if (!reserved_ || !reserved_->fits(points, with_groups)) reserved_ = make_memory(points, with_groups);
}

std::uint64_t DeviceGrid::version() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const MemoryPtr& memory : of_graphs_) sum += memory->all.starts->version;
    return sum;
}

Contents DeviceGrid::copy() const {
    auto made = std::make_shared<DeviceGrid>(device_, dims_);
    {
        const std::lock_guard lock(mutex_);
        made->present_ = present_;
        made->of_graphs_ = of_graphs_;
    }
    const auto work = [made, described = described_, device = &device_] {
        copy_bytes(*device, made->fields(), described->data, 2 * sizeof(devlib::HashGridFields));
        made->show_groups();
    };
    if (Recording* const recording = current_recording(device_))
        recording->add("copy of a hash grid", work, {made->fields(), fields()});
    else
        work();
    return {made->fields(), made, &table()};
}

}  // namespace weft::runtime::spatial
