// Arithmetic that is computed together: products with the sums that use them, sines with cosines of the same angle. An
// analysis decides this, not a back end, so that every target and every lane count gives the same bits.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

struct Arithmetic {
    std::unordered_map<const ir::Value*, int> uses;  // as operands; absent: none
    bool fuses = true;                               // products with sums: codegen::Options::fuse_fp
    // Products in f32 and f64 whose only use is a sum of the same region: a multiply-add, rounded once.
    std::unordered_set<const ir::Value*> fused_products;
    // Of adjoints: sines and cosines of one angle in one region, each by the other.
    std::unordered_map<const ir::Operation*, const ir::Operation*> angle_partners;
    std::unordered_set<const ir::Value*> paired_angles;

    bool is_used(const ir::Value* value) const { return uses.contains(value); }
};

Arithmetic find_arithmetic(const ir::Function& function, bool fuses);

}  // namespace weft::transform
