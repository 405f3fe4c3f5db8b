#include "transform/analysis/arithmetic.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool is_f32_or_f64(Type type) {
    if (!type.is_scalar() && !type.is_numeric_aggregate()) return false;
    return type.scalar() == Scalar::f32 || type.scalar() == Scalar::f64;
}

bool is_sum(Op op) { return op == Op::add || op == Op::sub || op == Op::reduce_add; }

void find_uses(const Region& region, Arithmetic& found) {
    for (const Operation* operation : region.operations) {
        for (const Value* operand : operation->operands) {
            ++found.uses[operand];
            const Operation* product = operand->definition;
            if (is_sum(operation->op) && product && product->op == Op::mul && product->parent == operation->parent &&
                is_f32_or_f64(operand->type))
                found.fused_products.insert(operand);
        }
        for (const Region* nested : operation->regions) find_uses(*nested, found);
    }
}

void find_angles(const Region& region, Arithmetic& found) {
    std::unordered_map<const Value*, const Operation*> sines, cosines;
    for (const Operation* operation : region.operations) {
        for (const Region* nested : operation->regions) find_angles(*nested, found);
        if (operation->op != Op::sin && operation->op != Op::cos) continue;
        const Value* angle = operation->operands[0];
        const Scalar scalar = angle->type.scalar();
        if (scalar != Scalar::f32 && scalar != Scalar::f64) continue;
        const bool is_sine = operation->op == Op::sin;
        (is_sine ? sines : cosines).try_emplace(angle, operation);
        const auto& others = is_sine ? cosines : sines;
        const auto other = others.find(angle);
        if (other == others.end() || found.angle_partners.contains(other->second)) continue;
        found.angle_partners[operation] = other->second;
        found.angle_partners[other->second] = operation;
        found.paired_angles.insert(angle);
    }
}

}  // namespace

Arithmetic find_arithmetic(const ir::Function& function, bool fuses) {
    Arithmetic found;
    found.fuses = fuses;
    find_uses(function.body, found);
    std::erase_if(found.fused_products, [&](const Value* product) { return !fuses || found.uses.at(product) != 1; });
    if (function.is_adjoint) find_angles(function.body, found);
    return found;
}

}  // namespace weft::transform
