#include "codegen/cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/value.h"

namespace weft::codegen {

namespace {

using ir::Op;
using ir::Operation;

// A loop whose length is not known counts as this many iterations.
constexpr double kUnknownTrips = 32.0;

double trips(const Operation& loop) {
    if (loop.op != Op::for_) return kUnknownTrips;
    double bounds[3];
    for (std::size_t i = 0; i < 3; ++i) {
        const Operation* definition = loop.operands[i]->definition;
        if (!definition || definition->op != Op::constant) return kUnknownTrips;
        bounds[i] = definition->numbers[0].as_double();
    }
    return bounds[2] == 0.0 ? 0.0 : std::max(0.0, std::ceil((bounds[1] - bounds[0]) / bounds[2]));
}

// Nanoseconds of one scalar operation.
double weight(Op op) {
    switch (op) {
        case Op::constant:
        case Op::make:
        case Op::splat:
        case Op::extract:
        case Op::insert:
        case Op::transpose:
        case Op::yield:
        case Op::return_:
        case Op::tid:
        case Op::dim:
        case Op::view:
        case Op::components:
        case Op::member:
        case Op::grad_of:
        case Op::block_dim:
        case Op::if_:
        case Op::for_:
        case Op::while_:
            return 0.0;
        case Op::load:
        case Op::store:
            return 0.5;
        case Op::sqrt:
        case Op::div:
        case Op::rem:
            return 2.0;
        case Op::cbrt:
        case Op::sin:
        case Op::cos:
        case Op::tan:
        case Op::asin:
        case Op::acos:
        case Op::atan:
        case Op::sinh:
        case Op::cosh:
        case Op::tanh:
        case Op::exp:
        case Op::log:
        case Op::log2:
        case Op::log10:
        case Op::erf:
        case Op::erfc:
        case Op::atan2:
            return 8.0;
        case Op::pow:
            return 20.0;
        case Op::erfinv:
        case Op::erfcinv:
            return 150.0;
        case Op::atomic_add:
        case Op::atomic_sub:
        case Op::atomic_min:
        case Op::atomic_max:
        case Op::atomic_and:
        case Op::atomic_or:
        case Op::atomic_xor:
        case Op::atomic_exch:
        case Op::atomic_cas:
            return 40.0;
        case Op::call_library:
        case Op::print:
            return 200.0;
        default:
            return 0.3;
    }
}

double cost_of(const ir::Region& region) {
    double sum = 0.0;
    for (const Operation* operation : region.operations) {
        double nested = 0.0;
        for (const ir::Region* inner : operation->regions) nested += cost_of(*inner);
        bool loops = operation->op == Op::for_ || operation->op == Op::while_;
        sum += loops ? (nested + 0.5) * trips(*operation) : nested;
        int leaves = 1;
        if (!operation->results.empty())
            leaves = leaf_count(operation->result()->type);
        else if (!operation->operands.empty())
            leaves = leaf_count(operation->operands.back()->type);
        sum += weight(operation->op) * leaves;
        if (operation->op == Op::matmul) sum += 0.3 * leaves * operation->operands[0]->type.cols();
    }
    return sum;
}

}  // namespace

double estimate_cost(const ir::Function& kernel, int lanes) { return 0.2 + cost_of(kernel.body) / lanes; }

}  // namespace weft::codegen
