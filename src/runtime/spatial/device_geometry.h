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

protected:
    ~DeviceGeometry() = default;
};

}  // namespace weft::runtime::spatial
