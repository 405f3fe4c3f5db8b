// What each value of a kernel looks like across the lanes of a group of threads, and whether the kernel can run in
// lanes at all. It is the same for every number of lanes greater than one.
//
// Lanes are neighbours on the last axis of the launch: lane l of a group runs thread (i, j, k0 + l).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// What a value is across the lanes of one group. A numeric aggregate has one shape for all its components.
struct LaneShape {
    enum class Kind : std::uint8_t {
        uniform,  // the same in every lane: stays scalar
        linear,   // integer scalar: first lane's value + stride * lane; an index with stride 1 is a plain vector access
        varying,  // divergent, as LLVM says
    } kind = Kind::uniform;
    std::int64_t stride = 0;
    // A varying integer whose lanes are consecutive numbers in most groups, as those of max(i - 1, 0) are everywhere
    // but at the border. An access with such an index tests at run time whether it is a plain vector access.
    bool mostly_contiguous = false;

    bool operator==(const LaneShape&) const = default;
};

struct Uniformity {
    bool runs_in_lanes = false;
    std::unordered_map<const ir::Value*, LaneShape> shapes;  // absent: uniform, as all values of a single thread are
    // Why a kernel, or one operation of it, runs slower in lanes than it could: one sentence each. Of a kernel that
    // cannot run in lanes: why not.
    struct Remark {
        const ir::Operation* operation;
        std::string text;
    };
    std::vector<Remark> remarks;

    LaneShape shape(const ir::Value* value) const;
};

Uniformity find_uniformity(const ir::Function& kernel);

}  // namespace weft::transform
