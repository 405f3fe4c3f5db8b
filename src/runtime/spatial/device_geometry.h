// Geometry on a device whose memory the host cannot reach: its table of ids, and its kernels for trees. All work is in
// the order of the current stream.
#pragma once

#include <cstdint>
#include <span>

#include "devlib/cuda/geometry.h"
#include "runtime/handles.h"
#include "types/type.h"

namespace weft::runtime::spatial {

class DeviceGeometry {
public:
    virtual DeviceTable& table() = 0;
    // Writes bytes of the host's, which may be freed when it returns, to the device's memory.
    virtual void write(void* to, const void* from, std::int64_t size_bytes) = 0;
    // Refits a tree of so many blocks. `level_ends`: where each level ends in RefitPlan::by_level. Other fields of the
    // plan than `begin` and `count` are set.
    virtual void refit(const devlib::RefitPlan& plan, Scalar scalar, std::int64_t blocks,
                       std::span<const std::int64_t> level_ends) = 0;

    // Sorts the items of a packed tree and fills its leaves. The fields of the plan up to `items`, and from `leaf_ends`
    // on, are set.
    virtual void build(devlib::BuildPlan plan, Scalar scalar) = 0;
    // The position of the first index that names none of so many points; `count` if there is none. Waits.
    virtual std::int64_t first_wrong(const std::int32_t* indices, std::int64_t count, std::int64_t points) = 0;

protected:
    ~DeviceGeometry() = default;
};

}  // namespace weft::runtime::spatial
