// The shape of each value of a kernel across the lanes of a group of threads, and whether the kernel can run in lanes
// at all. The results hold for every lane count greater than one.
//
// Lanes are neighbours on the last axis of the launch: lane l of a group runs thread (i, j, k0 + l).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The shape of a value across the lanes of one group. A numeric aggregate has one shape for all its components.
struct LaneShape {
    enum class Kind : std::uint8_t {
        uniform,  // the same in every lane: stays scalar
        linear,   // integer scalar: first lane's value + stride * lane; an index with stride 1 is a plain vector access
        varying,  // LLVM's term is divergent
    } kind = Kind::uniform;
    std::int64_t stride = 0;
    // A varying integer whose lanes are consecutive numbers in most groups: those of max(i - 1, 0) are, except at the
    // border. An access with such an index tests at run time whether it is a plain vector access.
    bool mostly_contiguous = false;

    bool operator==(const LaneShape&) const = default;
};

struct Uniformity {
    bool runs_in_lanes = false;
    std::unordered_map<const ir::Value*, LaneShape> shapes;  // absent: uniform, as all values of a single thread are
    // Why a kernel cannot run in lanes, or why one operation of it runs slower in lanes than it could: one sentence
    // each.
    struct Remark {
        const ir::Operation* operation;
        std::string text;
    };
    std::vector<Remark> remarks;

    LaneShape shape(const ir::Value* value) const;
};

Uniformity find_uniformity(const ir::Function& kernel);

}  // namespace weft::transform
