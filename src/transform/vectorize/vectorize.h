// Decides how the kernel of one thread becomes the kernel of W threads, without rewriting it: what each value looks
// like across the lanes, and whether the whole kernel can run on lanes. codegen/ writes LLVM IR from the kernel and
// this plan.
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
        varying,
    } kind = Kind::uniform;
    std::int64_t stride = 0;
    // Of a varying integer: neighbours in most groups, as max(i - 1, 0) is everywhere but at the border. An access with
    // such an index tests at run time whether it is a plain vector access.
    bool runs = false;

    bool operator==(const LaneShape&) const = default;
};

struct VectorPlan {
    int lanes = 1;                                           // 1: the scalar kernel
    std::unordered_map<const ir::Value*, LaneShape> shapes;  // absent: uniform
    // Why a kernel, or one operation of it, runs slower than it could: one sentence each.
    struct Remark {
        const ir::Operation* operation;
        std::string text;
    };
    std::vector<Remark> remarks;

    LaneShape shape(const ir::Value* value) const;
};

// Plans `kernel` (calls inlined) for groups of `lanes` threads. A kernel that cannot run on lanes gets lanes = 1 and a
// remark. Works at any lane count; 1 gives the trivial plan.
VectorPlan vectorize(const ir::Function& kernel, int lanes);

}  // namespace weft::transform
