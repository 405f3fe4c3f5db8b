// A hash grid in the memory of a device with geometry of its own. Builds write to the same memory in the order of the
// current stream, as long as it is large enough. The last kernel of a build writes the descriptor, so that a graph with
// a build describes the memory that it has filled.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/array.h"
#include "runtime/handles.h"
#include "runtime/spatial/device_geometry.h"

namespace weft::runtime::spatial {

class DeviceGrid final : public Object {
public:
    // Empty. `dims` as HashGrid checks them.
    DeviceGrid(Device& device, const std::int64_t (&dims)[3]);

    // Of a descriptor, and after it that of the grid of groups. The address stays.
    devlib::HashGridFields* fields() const { return static_cast<devlib::HashGridFields*>(described_->data); }
    DeviceTable& table() const { return device_.geometry()->table(); }

    // Precondition for both: one call at a time. `id` is that of this object.
    void build(const Array& points, double inverse_width, const Array* groups, std::uint64_t id);
    void reserve(std::int64_t points, bool with_groups);

    // Changes when a graph builds the grid.
    std::uint64_t version() const override;
    // Shares the memory of the sorted points, which later builds of this grid leave to the copy. In a capture the graph
    // copies the description.
    Contents copy() const override;

private:
    struct Sorted {
        BufferPtr starts, points, groups;
    };
    struct Memory {
        std::int64_t points = 0;  // at most
        bool has_groups = false;
        Sorted all, grouped;
        BufferPtr workspace;
        bool fits(std::int64_t count, bool with_groups) const {
            return points >= count && (has_groups || !with_groups);
        }
    };
    using MemoryPtr = std::shared_ptr<const Memory>;

    // Writes the address of the grid of groups to the descriptor.
    void show_groups();
    MemoryPtr make_memory(std::int64_t points, bool with_groups) const;
    MemoryPtr memory_for(std::int64_t points, bool with_groups);
    // False if snapshots of this capture cannot get a copy.
    bool keep_previous(std::uint64_t id);
    devlib::HashGridFields describe(const Sorted& sorted, std::int64_t count, double inverse_width) const;

    Device& device_;
    const std::int64_t dims_[3];
    BufferPtr described_;
    MemoryPtr reserved_;
    bool is_shared_ = false;      // the present memory belongs to a copy
    std::uint64_t built_in_ = 0;  // the number of the capture with the last build; 0: none
    mutable std::mutex mutex_;    // of those that follow, which builds write and other threads read
    MemoryPtr present_;           // of the last build
    // Memory that the descriptor may point to as well, if a graph has been launched.
    std::vector<MemoryPtr> of_graphs_;
};

}  // namespace weft::runtime::spatial
